#pragma once

namespace rdmatune {
/// Release of the whole project; also compared between the agents of a job.
inline constexpr const char* kVersion = "0.1.0";
}  // namespace rdmatune
