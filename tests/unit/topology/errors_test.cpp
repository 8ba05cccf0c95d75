// What is said of files that are no saved machine, or a damaged one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/topology/cases.hpp"
#include "tests/unit/topology/sys_tree.hpp"

namespace rdmatune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string errorOf(std::string_view text) {
    const Result<Node> node = readTopologyText(text, "t.txt");
    return node.ok() ? "read" : node.error().message;
}

TEST(TopologyErrors, FilesThatCannotBeRead) {
    const Result<Node> none = readTopologyFile("/nonexistent/topo.xml");
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().message,
              "/nonexistent/topo.xml: cannot be opened: No such file or directory");
    const testing::SysTree tree;
    const std::string folder = tree.path("").string();
    const Result<Node> directory = readTopologyFile(folder);
    ASSERT_FALSE(directory.ok());
    EXPECT_THAT(directory.error().message, HasSubstr("this is a directory"));
}

TEST(TopologyErrors, EmptyAndForeignText) {
    EXPECT_THAT(errorOf(""), StartsWith("t.txt: the file is empty; expected hwloc XML"));
    EXPECT_THAT(errorOf(" \n\t "), HasSubstr("the file is empty"));
    EXPECT_THAT(errorOf("hello\nworld\n"), HasSubstr("no header line"));
    EXPECT_THAT(errorOf("<html><body/></html>"), HasSubstr("neither <topology>"));
    EXPECT_THAT(errorOf("<!-- only a remark -->"), HasSubstr("neither <topology>"));
    EXPECT_THAT(errorOf("<!-- never ends"), HasSubstr("neither <topology>"));
    EXPECT_THAT(errorOf(std::string_view("\xff\xfe\tG\0P\0", 7)), HasSubstr("UTF-16 text"));
    EXPECT_THAT(errorOf(std::string(100000, '\0')), HasSubstr("no header line"));
}

TEST(TopologyErrors, MarkupBeforeTheRootIsSkipped) {
    EXPECT_EQ(errorOf("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- <topology> -->\n<!DOCTYPE x>\n"
                      "<system version=\"1\"><cpu numaid=\"0\" affinity=\"3\"/></system>"),
              "read");
}

TEST(TopologyErrors, HwlocXml) {
    EXPECT_THAT(errorOf("<topology version=\"2.0\"><object type=\"Machine\">"),
                AllOf(StartsWith("t.txt:1: "), HasSubstr("expected a whole <topology> file")));
    EXPECT_THAT(errorOf("<topology version=\"2.0\"></topology>"),
                HasSubstr("no <object type=\"Machine\"> inside"));
    EXPECT_EQ(errorOf("<topology version=\"9.0\"></topology>"),
              "t.txt:1: <topology> has version \"9.0\"; expected 1 or 2");
    EXPECT_EQ(errorOf("<topology>\n<object type=\"Machine\">\n<object type=\"PCIDev\"/>\n"
                      "</object></topology>"),
              "t.txt:3: <object> needs a pci_busid such as \"0000:03:00.0\", not \"\"");
    EXPECT_EQ(errorOf("<topology>\n<object type=\"Machine\">\n<object type=\"OSDev\" "
                      "osdev_type=\"3\"/>\n</object></topology>"),
              "t.txt:3: <object> is an OpenFabrics device and needs a name");
}

std::string ncclError(const std::string& inside) {
    return errorOf("<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\">\n" + inside +
                   "\n</cpu>\n</system>");
}

TEST(TopologyErrors, NcclXmlNamesTheLine) {
    EXPECT_EQ(ncclError("<pci busid=\"0000:10:1c\" class=\"0x030200\"/>"),
              "t.txt:3: <pci> needs a busid such as \"0000:10:1c.0\", not \"0000:10:1c\"");
    EXPECT_EQ(ncclError("\n<pci busid=\"0000:10:1c.0\" class=\"gpu\"/>"),
              "t.txt:4: <pci> needs a hexadecimal class such as \"0x030200\", not \"gpu\"");
    EXPECT_EQ(ncclError("<pci busid=\"0000:10:1c.0\" class=\"0x030200\"/>\n"
                        "<pci busid=\"0000:10:1c.0\" class=\"0x030200\"/>"),
              "t.txt:4: <pci> repeats the busid 0000:10:1c.0");
    EXPECT_EQ(ncclError("<pci busid=\"0000:10:1c.0\" class=\"0x020700\"><nic><net/></nic></pci>"),
              "t.txt:3: <net> needs a name");
    EXPECT_THAT(ncclError("<pci busid=\"0000:10:1c.0\""),
                AllOf(StartsWith("t.txt:"), HasSubstr("not well-formed XML")));
}

TEST(TopologyErrors, NcclXmlCpus) {
    EXPECT_EQ(errorOf("<system version=\"1\">\n</system>"),
              "t.txt:1: <system> has no <cpu>; expected <cpu numaid=...> with <pci> inside");
    EXPECT_EQ(errorOf("<system>\n<cpu numaid=\"zero\"/></system>"),
              "t.txt:2: <cpu> needs a whole number as numaid, not \"zero\"");
    EXPECT_EQ(errorOf("<system>\n<cpu numaid=\"0\" affinity=\"0-3\"/></system>"),
              "t.txt:2: <cpu> has an affinity that is no hexadecimal mask: \"0-3\"");
    EXPECT_EQ(errorOf("<system>\n<cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>"),
              "t.txt:3: <cpu> has the numaid of another <cpu>");
}

TEST(TopologyErrors, DeepXmlIsRefused) {
    std::string deep = "<system><cpu numaid=\"0\">";
    for (int i = 0; i < 5000; ++i) deep += "<pci>";
    EXPECT_THAT(errorOf(deep), HasSubstr("not well-formed XML"));
}

TEST(TopologyErrors, MatrixNamesTheLine) {
    EXPECT_EQ(
        errorOf("\tGPU0\tNIC0\nGPU0\t X \tNEAR\n"),
        "t.txt:2: \"NEAR\" stands where a distance to NIC0 should: expected X, PIX, PXB, PHB, "
        "NODE, SYS or NV#");
    EXPECT_EQ(errorOf("\tGPU0\tNIC0\nGPU0\t X \tPIX\nGPU0\t X \tPIX\n"),
              "t.txt:3: the row GPU0 is there twice, first in line 2");
    EXPECT_EQ(errorOf("\tGPU0\tGPU0\nGPU0\t X \tPIX\n"), "t.txt:1: the column GPU0 is there twice");
    EXPECT_EQ(errorOf("\tGPU0\tNIC0\nGPU9\t X \tPIX\n"),
              "t.txt:2: the row \"GPU9\" has no column of that name");
    EXPECT_EQ(errorOf("\tGPU0\tNIC0\nGPU0\t X \tPIX\t0-x\t0\n"),
              "t.txt:2: \"0-x\" is no CPU list; expected one such as 0-23,96-119");
    EXPECT_EQ(errorOf("# a remark\n\tGPU0\tNIC0\n\n"),
              "t.txt:2: no rows with distances (X, PIX, SYS, NV18 ...) follow this header");
}

TEST(TopologyErrors, AmdsOwnMatricesShowNoNics) {
    EXPECT_THAT(errorOf("===== ROCm System Management Interface =====\n"
                        "===== Weight between two GPUs =====\n"
                        "       GPU0  GPU1\nGPU0   0     15\nGPU1   15    0\n"),
                HasSubstr("shows no NICs; save the machine with `lstopo"));
    EXPECT_THAT(errorOf("ACCESS TABLE:\n             0000:0c:00.0\n0000:0c:00.0 ENABLED\n"
                        "WEIGHT TABLE:\n"),
                HasSubstr("shows no NICs"));
}

TEST(TopologyErrors, MatrixRowsThatDisagreeAreNoted) {
    const Result<Node> node =
        readTopologyText("\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tSYS\t X \n", "t.txt");
    ASSERT_TRUE(node.ok());
    EXPECT_EQ(node->distance[0][0], Distance::Pix);
    EXPECT_TRUE(testing::noted(*node, "GPU0 and NIC0 are PIX in one row and SYS in the other"));
}

TEST(TopologyErrors, EscapesDoNotReachTheTerminal) {
    EXPECT_EQ(errorOf("\tGPU0\tNIC0\nGPU0\t X \t\x07"
                      "beep\n")
                  .find('\x07'),
              std::string::npos);
    EXPECT_EQ(ncclError("<pci busid=\"\x1b[31m\" class=\"0\"/>").find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace rdmatune
