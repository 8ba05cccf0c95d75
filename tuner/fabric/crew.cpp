#include "tuner/fabric/crew.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tuner/base/text.hpp"

namespace rdmatune::fabric {
namespace {

constexpr std::size_t kMostComplaints = 200;

struct Pipe {
    Fd read;
    Fd write;
};

std::optional<Pipe> makePipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
    return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void makeNonBlocking(int fd) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> out;
    for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
    out.push_back(nullptr);
    return out;
}

/// Only calls that are safe between fork and exec.
[[noreturn]] void becomeProgram(const std::string& program, char* const* arguments,
                                char* const* environment, const int (&streams)[3],
                                bool die_with_parent, pid_t parent) {
    setpgid(0, 0);
    if (die_with_parent) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
    }
    for (int stream = 0; stream < 3; ++stream)
        if (dup2(streams[stream], stream) < 0) _exit(127);
    // srun starts its plugins with signals blocked, and this program ignores SIGPIPE.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
    execvpe(program.c_str(), arguments, environment);
    const char* why = std::strerror(errno);
    for (const char* part : {"rdma-tune: cannot run ", program.c_str(), ": ", why, "\n"})
        if (write(2, part, std::strlen(part)) < 0) break;
    _exit(127);
}

}  // namespace

Crew::~Crew() {
    finish(Clock::now());
}

Status Crew::start(const Invocation& command) {
    auto in = makePipe();
    auto out = makePipe();
    auto err = makePipe();
    if (!in || !out || !err)
        return Error{std::string("cannot make pipes for ") + command.arguments.front() + ": " +
                     std::strerror(errno)};
    const std::vector<char*> arguments = pointers(command.arguments);
    const std::vector<char*> environment = pointers(command.environment);
    const int streams[3] = {in->read.get(), out->write.get(), err->write.get()};
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        return Error{std::string("cannot start ") + command.arguments.front() + ": " +
                     std::strerror(errno)};
    if (pid == 0)
        becomeProgram(command.arguments.front(), arguments.data(), environment.data(), streams,
                      command.die_with_parent, parent);
    setpgid(pid, pid);
    adopt(std::move(in->write), std::move(out->read));
    Member& member = members_.back();
    member.pid = pid;
    member.errors = std::move(err->read);
    makeNonBlocking(member.errors.get());
    member.error_lines = LineReader(member.errors.get());
    return Done{};
}

void Crew::adopt(Fd input, Fd output) {
    Member& member = members_.emplace_back();
    member.input = std::move(input);
    member.output = std::move(output);
    makeNonBlocking(member.input.get());
    makeNonBlocking(member.output.get());
    member.lines = LineReader(member.output.get());
}

void Crew::broadcast(std::string_view text, Deadline deadline) {
    for (Member& member : members_)
        if (member.input.valid() && !writeText(member.input.get(), text, deadline))
            member.input.reset();
}

void Crew::readComplaints(Member& member) {
    while (member.errors.valid()) {
        const auto line = member.error_lines.poll();
        if (!line) {
            if (member.error_lines.ended()) member.errors.reset();
            return;
        }
        if (complaints_.size() < kMostComplaints) complaints_.push_back(*line);
    }
}

bool Crew::gone() const {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& m) { return !m.output.valid(); });
}

std::set<int> Crew::ended() const {
    std::set<int> out;
    if (members_.size() == 1) {
        for (const std::string& line : complaints_) out.merge(endedTasks(line));
        return out;
    }
    int number = 0;
    for (const Member& member : members_) {
        if (!member.output.valid()) out.insert(number);
        ++number;
    }
    return out;
}

std::optional<std::string> Crew::nextLine(Deadline deadline) {
    for (;;) {
        std::vector<pollfd> entries;
        for (Member& member : members_) {
            readComplaints(member);
            while (member.output.valid()) {
                const auto line = member.lines.poll();
                if (!line) {
                    if (member.lines.ended()) member.output.reset();
                    break;
                }
                return line;
            }
            if (member.output.valid()) entries.push_back({member.output.get(), POLLIN, 0});
            if (member.errors.valid()) entries.push_back({member.errors.get(), POLLIN, 0});
        }
        const auto left = deadline - Clock::now();
        if (gone() || left <= Clock::duration::zero()) return std::nullopt;
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
        if (poll(entries.data(), entries.size(), static_cast<int>(std::min<long>(ms, 60'000))) <
                0 &&
            errno != EINTR)
            return std::nullopt;
    }
}

std::optional<Message> Crew::next(Deadline deadline) {
    while (const auto line = nextLine(deadline))
        if (auto message = Message::parse(*line)) return message;
    return std::nullopt;
}

std::string Crew::drain(Deadline deadline) {
    std::string text;
    while (const auto line = nextLine(deadline)) text += *line + "\n";
    return text;
}

bool Crew::running() const {
    return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.pid > 0; });
}

void Crew::signalAll(int signal) {
    for (const Member& member : members_)
        if (member.pid > 0) kill(-member.pid, signal);
}

void Crew::reap(Deadline deadline) {
    for (;;) {
        for (Member& member : members_) {
            readComplaints(member);
            // An agent that still talks must not block on a full pipe while it is waited for.
            while (member.output.valid() && member.lines.poll()) continue;
            if (member.pid > 0 && waitpid(member.pid, nullptr, WNOHANG) != 0) member.pid = -1;
        }
        if (!running() || Clock::now() >= deadline) return;
        std::vector<pollfd> entries;
        for (const Member& member : members_)
            if (member.pid > 0 && member.output.valid() && !member.lines.ended())
                entries.push_back({member.output.get(), POLLIN, 0});
        // An exit shows as a closed pipe; a program may also close its pipes first and exit later.
        poll(entries.data(), entries.size(), entries.empty() ? 1 : 5);
    }
}

void Crew::finish(Deadline deadline) {
    for (Member& member : members_) member.input.reset();
    reap(deadline);
    if (running()) {
        signalAll(SIGTERM);
        reap(Clock::now() + std::chrono::milliseconds(300));
    }
    if (running()) {
        signalAll(SIGKILL);
        reap(Clock::now() + std::chrono::milliseconds(300));
    }
    for (Member& member : members_) readComplaints(member);
    members_.clear();
}

std::set<int> endedTasks(std::string_view line) {
    if (!line.starts_with("srun: error: ")) return {};
    std::string_view numbers;
    for (const std::string_view word : {": task ", ": tasks "})
        if (const auto at = line.find(word); at != std::string_view::npos)
            numbers = line.substr(at + word.size());
    const auto end = numbers.find(": ");
    if (end == std::string_view::npos) return {};
    const std::string_view what = numbers.substr(end + 2);
    if (!what.starts_with("Killed") && !what.starts_with("Exited") &&
        !what.starts_with("Terminated") && !what.starts_with("Aborted") &&
        !what.starts_with("Segmentation") && !what.starts_with("Out Of Memory"))
        return {};
    std::set<int> out;
    constexpr int kMost = 1 << 20;
    for (const std::string_view part : split(numbers.substr(0, end), ',')) {
        const auto dash = part.find('-');
        const auto first = parseInt<int>(part.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parseInt<int>(part.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first || *last > kMost) return {};
        for (int number = *first; number <= *last; ++number) out.insert(number);
    }
    return out;
}

Result<std::vector<std::string>> shellWords(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool begun = false;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
            if (begun) words.push_back(std::exchange(word, {}));
            begun = false;
            continue;
        }
        begun = true;
        if (c == '\\' && quote != '\'' && i + 1 < text.size())
            word += text[++i];
        else if (quote == 0 && (c == '\'' || c == '"'))
            quote = c;
        else if (c == quote)
            quote = 0;
        else
            word += c;
    }
    if (quote != 0) return Error{"a quotation mark is not closed in: " + std::string(text)};
    if (begun) words.push_back(word);
    return words;
}

}  // namespace rdmatune::fabric
