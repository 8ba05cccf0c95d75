// The controller: leads the agents from their introductions to a profile, inside the time budget.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/binding/agreement.hpp"
#include "tuner/fabric/collective.hpp"
#include "tuner/fabric/crew.hpp"
#include "tuner/fabric/judge.hpp"
#include "tuner/fabric/slow_rails.hpp"
#include "tuner/fabric/wire.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::fabric {

struct Assignment {
    int agents = 0;      ///< how many were started; they are numbered from 0
    int step_nodes = 0;  ///< nodes of the step; more than `agents` when a sample is measured
    std::vector<std::string>
        names;  ///< node names by agent number, for those that stay silent; may be empty
    double budget_s = 5;
    Clock::time_point start;  ///< the budget counts from here
    double latency_factor = 2.1;
    double bandwidth_fraction = 0.93;
    bool verbs = true;  ///< use RDMA where all nodes have it
    bool gpu_memory = true;
    std::string rules;                          ///< compact form, goes into the profile as it is
    std::vector<std::size_t> collective_sizes;  ///< empty: no collectives
};

struct PhaseTime {
    std::string name;
    double seconds = 0;
};

/// Allreduce times of one agent.
struct NodeCollective {
    int position = 0;
    CollectiveTime time;
};

struct Outcome {
    bool usable = false;
    std::string reason;  ///< why there is no profile
    FabricProfile profile;
    Agreement agreement;
    std::vector<std::string> notes;  ///< for the user, each one sentence
    std::vector<Hello> members;      ///< by position
    std::vector<EdgeResult> edges;
    std::vector<PairResult> retests;
    std::vector<Verdict> verdicts;
    std::vector<SlowRail> slow_rails;
    std::vector<NodeCollective> collectives;
    std::vector<PhaseTime> phases;
    std::string rail;  ///< name of the first rail on the first node
};

/// Measures with the agents of `crew`. Ends at `start` + budget at the latest, whatever the agents
/// do; they have been told to end then, but not waited for. The caller ignores SIGPIPE: an agent
/// may die while it is spoken to.
[[nodiscard]] Outcome conduct(Crew& crew, const Assignment& assignment);

}  // namespace rdmatune::fabric
