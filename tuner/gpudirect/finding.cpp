#include "tuner/gpudirect/finding.hpp"

namespace rdmatune {

std::string_view toString(Severity severity) {
    switch (severity) {
        case Severity::Info:
            return "info";
        case Severity::Warning:
            return "warning";
        case Severity::Error:
            return "error";
    }
    return "info";
}

std::string_view toString(GdrWay way) {
    switch (way) {
        case GdrWay::No:
            return "no";
        case GdrWay::Dmabuf:
            return "dmabuf";
        case GdrWay::Peermem:
            return "peermem";
        case GdrWay::Unknown:
            return "unknown";
    }
    return "unknown";
}

}  // namespace rdmatune
