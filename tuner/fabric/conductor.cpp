#include "tuner/base/text.hpp"
#include "tuner/base/version.hpp"
#include "tuner/fabric/agree.hpp"
#include "tuner/fabric/commands.hpp"
#include "tuner/fabric/conductor_steps.hpp"
#include "tuner/fabric/handshake.hpp"

namespace rdmatune::fabric {
namespace {

using std::chrono::milliseconds;

/// Shares of the budget. The introductions include starting the agents.
constexpr double kHelloShare = 0.5;
constexpr double kSetupShare = 0.35;  // of what is left then

}  // namespace

Outcome Conductor::run() {
    if (collectHellos() && setUp()) {
        measure();
        checkRails();
        retest();
        collect();
    }
    crew_.broadcast(Message(kEverybody, "end").line(), Clock::now() + milliseconds(100));
    assemble();
    return std::move(out_);
}

std::string Conductor::launcherSaid() const {
    // An agent's own words are best, then the first error: what follows it is a consequence.
    for (const char* sign : {"rdma-tune: ", "error", ""})
        for (const std::string& line : crew_.complaints())
            if (const auto at = line.find(sign); at != std::string::npos && !trim(line).empty())
                return std::string(trim(sign[0] == 'r' ? line.substr(at + 11) : line));
    return {};
}

bool Conductor::collectHellos() {
    std::map<int, Hello> hellos;
    std::set<int> complete;
    std::string failure;
    const Deadline deadline = assignment_.start + seconds(assignment_.budget_s * kHelloShare);
    const auto settled = [&] {
        std::set<int> known = crew_.ended();
        known.insert(complete.begin(), complete.end());
        return static_cast<int>(known.size()) >= assignment_.agents;
    };
    while (const auto message = hear(deadline, settled)) {
        const int number = message->number();
        if (number < 0 || number >= assignment_.agents) continue;
        if (message->kind() == "failed") failure = nameOf(number) + ": " + message->text("why");
        if (readHello(*message, hellos[number])) complete.insert(number);
    }
    int silent = 0;
    std::set<std::string> heard;
    std::vector<std::string> foreign;
    for (int number = 0; number < assignment_.agents; ++number) {
        if (!complete.contains(number)) {
            ++silent;
            continue;
        }
        Hello& hello = hellos[number];
        if (hello.host.empty()) hello.host = nameOf(number);
        heard.insert(hello.host);
        if (hello.wire != kWireVersion) {
            foreign.push_back(hello.host);
            continue;
        }
        position_[number] = static_cast<int>(out_.members.size());
        table_[number] = hello.endpoints;
        out_.members.push_back(std::move(hello));
    }
    endPhase("start");
    present_.assign(out_.members.size(), true);
    if (!foreign.empty())
        return failed(nameNodes(foreign) + ": another version of rdma-tune is installed than " +
                      std::string(kVersion) + " here; install the same version on all nodes");
    if (out_.members.size() < 2) {
        const std::string said = !failure.empty() ? failure : launcherSaid();
        std::string why = out_.members.empty() ? "no agent answered"
                                               : "only " + out_.members[0].host + " answered";
        if (!crew_.gone()) why += " in time";
        return failed(said.empty() ? why : why + " (" + said + ")");
    }
    if (silent > 0) {
        // Slurm numbers the agents; which name has which number only they could have told.
        std::vector<std::string> names;
        for (const std::string& name : assignment_.names)
            if (!heard.contains(name)) names.push_back(name);
        const bool known = static_cast<int>(names.size()) == silent;
        out_.notes.push_back(
            "not measured: " + (known ? nameNodes(names) : std::to_string(silent) + " nodes") +
            " did not answer in time");
    }
    return true;
}

bool Conductor::setUp() {
    cookie_ = makeCookie();
    if (cookie_.empty()) return failed("the kernel gives no random numbers for the agents' secret");
    Agreed agreed = agree(out_.members);
    if (!agreed.refusal.empty()) return failed(agreed.refusal);
    out_.agreement = agreed.agreement;
    out_.notes.insert(out_.notes.end(), agreed.notes.begin(), agreed.notes.end());
    crew_.broadcast(tableLines(table_), end_);
    const bool verbs = assignment_.verbs && out_.agreement.rails > 0;
    bool connected = connect(verbs);
    if (!connected && verbs && left() > seconds(assignment_.budget_s * 0.2)) {
        out_.notes.push_back("RDMA cannot be measured, so TCP is: " + out_.reason);
        out_.reason.clear();
        connected = connect(false);
    }
    endPhase("connect");
    return connected;
}

bool Conductor::connect(bool verbs) {
    SetupCommand command;
    command.id = ++connecting_;
    command.cookie = cookie_;
    command.verbs = verbs;
    command.agreement = verbs ? out_.agreement.str() : std::string();
    command.gpu_memory = assignment_.gpu_memory;
    command.time = std::clamp(toMilliseconds(left() * kSetupShare), milliseconds(50),
                              toMilliseconds(patiently(milliseconds(2000))));
    crew_.broadcast(setupMessage(command).line(), end_);
    std::map<std::string, std::vector<std::string>> refused;
    nominal_gbs_.clear();
    rails_ = 1;
    const std::set<int> answered =
        gather("ready", Clock::now() + command.time + answerTime(), [&](const Message& message) {
            if (message.kind() == "lost") {
                const auto peer = message.integer("peer", -1);
                if (peer < 0 || peer >= static_cast<std::int64_t>(out_.members.size())) return;
                lost_.insert(hostOf(message.number()) + " cannot reach " +
                             out_.members[static_cast<std::size_t>(peer)].host + " (" +
                             message.text("why") + ")");
            }
            if (message.kind() != "ready") return;
            if (message.integer("ok") != 1) {
                refused[message.text("why")].push_back(hostOf(message.number()));
                return;
            }
            kind_ = static_cast<ProfileTransport>(
                std::clamp<std::int64_t>(message.integer("transport"), 0, 2));
            const auto gdr =
                static_cast<ProfileGdr>(std::clamp<std::int64_t>(message.integer("gdr"), 0, 3));
            // GPU memory counts only where every node measured on it, and by the same way.
            gdr_ = nominal_gbs_.empty() || gdr == gdr_ ? gdr : ProfileGdr::No;
            const auto rails = static_cast<int>(
                std::clamp<std::int64_t>(message.integer("rails", 1), 1, kProfileMaxRails));
            rails_ = nominal_gbs_.empty() ? rails : std::min(rails_, rails);
            nominal_gbs_.push_back(message.real("nominal") * 1e-3);
            if (positionOf(message.number()) == 0) out_.rail = message.text("rail");
        });
    noteSilent(answered, "did not connect in time");
    if (!refused.empty() && (verbs || refused.begin()->second.size() == out_.members.size())) {
        const auto& [why, hosts] = *refused.begin();
        return failed(nameNodes(hosts) + ": " + why);
    }
    for (const auto& [why, hosts] : refused)
        out_.notes.push_back(nameNodes(hosts) + " not measured: " + why);
    if (answered.size() < 2) return failed("the agents could not connect to each other in time");
    return true;
}

void Conductor::noteSilent(const std::set<int>& answered, const std::string& what) {
    std::vector<std::string> silent;
    for (const auto& [number, position] : position_) {
        const auto at = static_cast<std::size_t>(position);
        if (present_[at] && !answered.contains(number)) silent.push_back(out_.members[at].host);
        present_[at] = answered.contains(number);
    }
    if (silent.empty()) return;
    out_.notes.push_back(nameNodes(silent) + " " + what);
}

Outcome conduct(Crew& crew, const Assignment& assignment) {
    return Conductor(crew, assignment).run();
}

}  // namespace rdmatune::fabric
