// What happens to `nvidia-smi topo -m` between the terminal and the file: the matrix must come out
// the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/topology/cases.hpp"
#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::noted;

const char* const kMatrix =
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\tPIX\tSYS\t0-47,96-143\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tPXB\t48-95,144-191\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: rocep24s0f0np0\n";

Node mustReadText(const std::string& text) {
    const Result<Node> node = readTopologyText(text, "t.txt");
    EXPECT_TRUE(node.ok()) << node.error().message << "\n" << text;
    return node.ok() ? *node : Node{};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

/// Every line of the matrix through `change`.
std::string eachLine(const std::function<std::string(std::string_view)>& change) {
    std::string out;
    for (const auto line : split(kMatrix, '\n')) out += change(line) + '\n';
    return out;
}

/// The header alone changed.
std::string withHeader(const std::string& before, const std::string& after) {
    const std::string text(kMatrix);
    const auto end = text.find('\n');
    return "\t" + before + text.substr(1, end - 1) + after + text.substr(end);
}

std::string tag(const char* text) {
    return eachLine([&](std::string_view line) { return text + std::string(line); });
}

/// As a terminal of `width` columns breaks it.
std::string wrapped(std::size_t width) {
    return eachLine([&](std::string_view line) {
        std::string wide;
        for (const char c : line)
            wide += c == '\t' ? std::string(8 - wide.size() % 8, ' ') : std::string(1, c);
        std::string out;
        for (; wide.size() > width; wide.erase(0, width)) out += wide.substr(0, width) + '\n';
        return out + wide;
    });
}

TEST(MatrixPaste, IsReadAsItWasPrinted) {
    const Node plain = mustReadText(kMatrix);
    ASSERT_EQ(plain.gpus.size(), 2U);
    EXPECT_EQ(plain.hcas[1].name, "rocep24s0f0np0");
    EXPECT_EQ(plain.gpus[1].cpus.str(), "48-95,144-191");
    EXPECT_EQ(plain.gpus[1].numa, 1);
    EXPECT_EQ(plain.distance[1][1], Distance::Pxb);
    const std::pair<const char*, std::string> pastes[] = {
        {"underlined header", withHeader("\x1b[4m", "\x1b[0m")},
        {"escape lost", withHeader("[4m", "[0m")},
        {"escape as in JSON", withHeader("\\u001b[4m", "\\u001b[0m")},
        {"escape as in cat -v", withHeader("^[[4m", "^[[0m")},
        {"escape as a symbol", withHeader("\xe2\x90\x9b[4m", "\xe2\x90\x9b[0m")},
        {"cursor control", withHeader("\x1b[?25l", "\x1b[K")},
        {"a browser's blanks", replaced(kMatrix, "\t", "\xc2\xa0\xc2\xa0\xe2\x80\x83")},
        {"line ends of Windows", replaced(kMatrix, "\n", "\r\n")},
        {"a mail's quote", tag("> ")},
        {"a quote's quote", tag(">> ")},
        {"a code block", "```\n" + std::string(kMatrix) + "```\n"},
        {"a table", replaced(kMatrix, "\t", " | ")},
        {"srun -l", tag("0: ")},
        {"pdsh", tag("node017: ")},
        {"a time stamp", tag("2026-03-01T10:11:12.123Z ")},
        {"mpirun --tag-output", tag("[1,0]<stdout>: ")},
        {"a log's string", replaced(replaced(kMatrix, "\n", "\\n"), "\t", "\\t")},
        {"a prompt and nvidia-smi -L",
         "user@n1:~$ nvidia-smi -L\nGPU 0: NVIDIA H100 (UUID: GPU-0)\n  MIG 3g.20gb Device 0: x\n"
         "user@n1:~$ nvidia-smi topo -m\n" +
             std::string(kMatrix) + "user@n1:~$ exit\n"},
        {"a sentence that begins alike", "GPU0 and GPU1 are far apart:\n" + std::string(kMatrix)},
        {"80 columns", wrapped(80)},
        {"64 columns", wrapped(64)},
        {"40 columns", wrapped(40)},
    };
    for (const auto& [what, text] : pastes) {
        SCOPED_TRACE(what);
        EXPECT_EQ(mustReadText(text), plain);
    }
}

TEST(MatrixPaste, TwoTasksInterleaved) {
    const std::string text = eachLine([](std::string_view line) {
        const std::string other = replaced(std::string(line), "PIX", "SYS");
        return "1: " + std::string(line) + "\n0: " + other;
    });
    EXPECT_EQ(mustReadText(text), mustReadText(kMatrix)) << "the first one's lines";
}

TEST(MatrixPaste, SecondMatrixIsNotMixedIn) {
    const std::string rows = std::string(kMatrix).substr(0, std::string(kMatrix).find("\nLegend"));
    for (const std::string& first : {std::string(kMatrix), rows}) {
        Node node = mustReadText(first + "\nnode2\n" + replaced(kMatrix, "PIX", "SYS"));
        EXPECT_TRUE(noted(node, "A second matrix begins in line"));
        EXPECT_EQ(node.distance[0][0], Distance::Pix);
    }
}

TEST(MatrixPaste, HeaderIsMadeFromTheRows) {
    std::string text(kMatrix);
    text.erase(0, text.find('\n') + 1);
    const Node plain = mustReadText(kMatrix);
    Node node = mustReadText(text);
    EXPECT_TRUE(noted(node, "The header line is missing"));
    node.notes = plain.notes;
    EXPECT_EQ(node, plain);
    // GPU0's row is lost too: its distances come from the NICs'.
    text.erase(0, text.find('\n') + 1);
    node = mustReadText(text);
    ASSERT_EQ(node.gpus.size(), 2U);
    EXPECT_EQ(node.distance, plain.distance);
    // With NICs' rows alone nothing says how many GPUs there are.
    text.erase(0, text.find('\n') + 1);
    EXPECT_THAT(readTopologyText(text, "t.txt").error().message, HasSubstr("no header line"));
}

}  // namespace
}  // namespace rdmatune
