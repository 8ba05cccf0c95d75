#include "tuner/fabric/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace rdmatune::fabric {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double robustSpread(const std::vector<double>& values) {
    const double center = median(values);
    std::vector<double> distances;
    distances.reserve(values.size());
    for (const double value : values) distances.push_back(std::abs(value - center));
    constexpr double kNormal = 1.4826;
    return kNormal * median(std::move(distances));
}

Latency latencyOf(std::vector<double> one_way_us) {
    if (one_way_us.empty()) return {};
    std::sort(one_way_us.begin(), one_way_us.end());
    const std::size_t last = one_way_us.size() - 1;
    return {one_way_us.front(), one_way_us[last / 2],
            one_way_us[static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(last)))],
            static_cast<int>(one_way_us.size())};
}

}  // namespace rdmatune::fabric
