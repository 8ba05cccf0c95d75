// Figures out of samples.
#pragma once

#include <vector>

#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

/// The middle value (the lower one of two); 0 for none. Takes its own copy.
[[nodiscard]] double median(std::vector<double> values);

/// Median distance from the median, scaled by 1.4826 so that it estimates a normal distribution's
/// standard deviation (Hampel 1974); a few wild values do not move it.
[[nodiscard]] double robustSpread(const std::vector<double>& values);

/// Minimum, median and 99th percentile of one-way times in microseconds.
[[nodiscard]] Latency latencyOf(std::vector<double> one_way_us);

}  // namespace rdmatune::fabric
