// Every saved machine, damaged in thousands of ways, is read or refused: never a crash, a hang, or
// a Node that breaks node.hpp's promises. The damage is the same in every run.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/unit/topology/cases.hpp"

namespace rdmatune {
namespace {

std::string contents(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// One to four small damages: bytes changed, cut out, doubled, or replaced by words that the
/// formats know, which get deeper into a reader than noise.
std::string damaged(std::string text, std::mt19937& random) {
    static constexpr std::array<std::string_view, 24> kWords = {
        "<object type=\"Bridge\">",
        "</object>",
        "<pci busid=\"0000:01:00.0\" class=\"0x060400\">",
        "</pci>",
        "<cpu numaid=\"0\">",
        "\"",
        "<",
        ">",
        "&#0;",
        "\n",
        "GPU0",
        "NIC0",
        "X",
        "PIX",
        "-1",
        "99999999999999999999",
        "0x",
        "ffff:ff:1f.7",
        "NIC Legend:",
        "0-65535",
        "type=\"PCIDev\"",
        "osdev_type=\"3\"",
        "{",
        "null"};
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    const std::size_t damages = 1 + below(4);
    for (std::size_t i = 0; i < damages; ++i) {
        const std::size_t at = below(text.size() + 1);
        const std::size_t length = below(std::min<std::size_t>(text.size() - at, 64) + 1);
        switch (below(5)) {
            case 0:
                if (at < text.size()) text[at] = static_cast<char>(random());
                break;
            case 1:
                text.erase(at, length);
                break;
            case 2:
                text.insert(below(text.size() + 1), text.substr(at, length));
                break;
            case 3:
                text.insert(at, kWords[below(kWords.size())]);
                break;
            default:
                text.replace(at, length, kWords[below(kWords.size())]);
                break;
        }
    }
    return text;
}

void expectSound(const Node& node) {
    ASSERT_EQ(node.distance.size(), node.gpus.size());
    for (std::size_t g = 0; g < node.gpus.size(); ++g) {
        ASSERT_EQ(node.distance[g].size(), node.hcas.size());
        ASSERT_EQ(node.gpus[g].index, static_cast<int>(g));
        ASSERT_GE(node.gpus[g].numa, -1);
    }
    for (const Hca& hca : node.hcas) {
        ASSERT_FALSE(hca.name.empty());
        ASSERT_GE(hca.port, 1);
    }
    const Result<Node> back = nodeFromJson(nodeToJson(node), "back");
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_TRUE(*back == node);
}

class Mutation : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Mutation, IsReadOrRefused) {
    const std::string whole = contents(GetParam());
    ASSERT_FALSE(whole.empty());
    std::mt19937 random(20240229);
    constexpr int kRounds = 1500;
    int read = 0;
    for (int i = 0; i < kRounds; ++i) {
        const Result<Node> node = readTopologyText(damaged(whole, random), "mutation");
        if (!node) {
            ASSERT_EQ(node.error().message.find("mutation"), 0U) << node.error().message;
            continue;
        }
        ++read;
        expectSound(*node);
        if (HasFatalFailure()) FAIL() << "in round " << i;
    }
    // Damage so gross that nothing is ever read would test nothing.
    EXPECT_GT(read, 0);
    EXPECT_LT(read, kRounds);
}

TEST_P(Mutation, EveryCutIsReadOrRefused) {
    const std::string whole = contents(GetParam());
    const std::size_t step = 1 + whole.size() / 300;
    for (std::size_t length = 0; length < whole.size(); length += step) {
        const Result<Node> node = readTopologyText(whole.substr(0, length), "cut");
        if (node) expectSound(*node);
        if (HasFatalFailure()) FAIL() << "cut after " << length << " bytes";
    }
}

std::string testName(const ::testing::TestParamInfo<std::filesystem::path>& info) {
    std::string name = info.param.stem().string();
    std::ranges::replace_if(
        name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Mutation,
                         ::testing::ValuesIn(testing::filesIn(testing::fixtures())), testName);

}  // namespace
}  // namespace rdmatune
