// The conductor's state and steps; conductor.cpp brings the agents together, conductor_measure.cpp
// lets them measure, conductor_result.cpp makes the profile.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/fabric/conductor.hpp"

namespace rdmatune::fabric {

template <class Duration>
std::chrono::milliseconds toMilliseconds(Duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

/// What a pass of the patterns left open between agents that are there.
struct Missing {
    int latencies = 0;
    int bandwidths = 0;
};

class Conductor {
  public:
    Conductor(Crew& crew, const Assignment& assignment)
        : crew_(crew),
          assignment_(assignment),
          end_(assignment.start + seconds(assignment.budget_s)),
          mark_(assignment.start) {}

    Outcome run();

  private:
    static Clock::duration seconds(double value) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
    }
    [[nodiscard]] Clock::duration left() const {
        return std::max(end_ - Clock::now(), Clock::duration::zero());
    }
    /// A budget beyond 10 s is given where things are slow (a crowded or emulated machine): times
    /// that are otherwise fixed grow with it.
    [[nodiscard]] double patience() const { return std::max(1.0, assignment_.budget_s / 10); }
    [[nodiscard]] Clock::duration patiently(std::chrono::milliseconds time) const {
        return seconds(std::chrono::duration<double>(time).count() * patience());
    }
    /// On top of what a step takes: the agents' answers must come back through the launcher, from
    /// machines that may be busy. Only an agent that hangs makes the others wait that long.
    [[nodiscard]] Clock::duration answerTime() const {
        return std::max<Clock::duration>(std::chrono::milliseconds(300), left() / 3);
    }
    void endPhase(const std::string& name) {
        const auto now = Clock::now();
        out_.phases.push_back({name, std::chrono::duration<double>(now - mark_).count()});
        mark_ = now;
    }
    bool failed(const std::string& why) {
        out_.reason = why;
        return false;
    }
    [[nodiscard]] std::string nameOf(int number) const {
        const auto at = static_cast<std::size_t>(number);
        return number >= 0 && at < assignment_.names.size() ? assignment_.names[at]
                                                            : "agent " + std::to_string(number);
    }
    [[nodiscard]] int positionOf(int number) const {
        const auto at = position_.find(number);
        return at == position_.end() ? -1 : at->second;
    }
    [[nodiscard]] std::string hostOf(int number) const {
        const int position = positionOf(number);
        return position < 0 ? nameOf(number)
                            : out_.members[static_cast<std::size_t>(position)].host;
    }
    void takeNote(const Message& message) {
        const std::string text = hostOf(message.number()) + ": " + message.text("text");
        if (noted_.insert(text).second) out_.notes.push_back(text);
    }

    bool collectHellos();
    bool setUp();
    bool connect(bool verbs);
    void measure();
    void go(const Tempo& tempo, std::vector<EdgeResult>& into);
    [[nodiscard]] Missing missing() const;
    [[nodiscard]] Thresholds limits() const;
    void checkRails();
    void retest();
    void collect();
    void assemble();
    void noteSilent(const std::set<int>& answered, const std::string& what);
    [[nodiscard]] Tempo tempoFor(Clock::duration available) const;
    [[nodiscard]] std::string launcherSaid() const;

    /// The next message; nothing at the deadline or once `settled`. Agents may die without a word.
    template <class Settled>
    std::optional<Message> hear(Deadline deadline, Settled settled) {
        while (!settled() && !crew_.gone() && Clock::now() < deadline) {
            constexpr auto kGlance = std::chrono::milliseconds(20);
            if (auto message = crew_.next(std::min<Deadline>(deadline, Clock::now() + kGlance)))
                return message;
        }
        return std::nullopt;
    }
    /// Takes messages until every member has said `last` or the deadline has come.
    template <class Handle>
    std::set<int> gather(const std::string& last, Deadline deadline, Handle handle) {
        std::set<int> answered;
        const auto settled = [&] {
            const std::set<int> ended = crew_.ended();
            for (const auto& [number, position] : position_)
                if (present_[static_cast<std::size_t>(position)] && !ended.contains(number) &&
                    !answered.contains(number))
                    return false;
            return true;
        };
        while (const auto message = hear(std::min(deadline, end_), settled)) {
            if (positionOf(message->number()) < 0) continue;
            if (message->kind() == "note")
                takeNote(*message);
            else
                handle(*message);
            const auto at = static_cast<std::size_t>(positionOf(message->number()));
            if (message->kind() == last && present_[at]) answered.insert(message->number());
        }
        return answered;
    }

    Crew& crew_;
    const Assignment& assignment_;
    Deadline end_;
    Clock::time_point mark_;
    Outcome out_;
    std::map<int, int> position_;  ///< agent number -> place in the schedule
    std::map<int, std::vector<Endpoint>> table_;
    std::string cookie_;
    int connecting_ = 0;  ///< commands so far that made agents connect
    std::set<std::string> noted_;
    std::set<std::string> lost_;
    std::vector<bool> present_;  ///< by position: has answered whenever it was asked
    ProfileTransport kind_ = ProfileTransport::Tcp;
    ProfileGdr gdr_ = ProfileGdr::NotTried;
    int rails_ = 1;
    std::vector<double> nominal_gbs_;
};

}  // namespace rdmatune::fabric
