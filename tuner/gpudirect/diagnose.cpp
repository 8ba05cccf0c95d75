// Apart from finding.cpp, so that whoever only passes a Diagnosis on needs no verbs library.
#include "tuner/gpudirect/finding.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/gpudirect/gdr_read.hpp"

namespace rdmatune {

Diagnosis diagnose(const Node& node, const SystemRoots& roots) {
    return judgeGdr(node, readGdrFacts(node, roots));
}

}  // namespace rdmatune
