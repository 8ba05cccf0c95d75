#include "tuner/base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tuner/base/result.hpp"

namespace rdmatune {
namespace {

using ::testing::ElementsAre;

TEST(Text, Trim) {
    EXPECT_EQ(trim("  a b \t\r\n"), "a b");
    EXPECT_EQ(trim(" \n"), "");
    EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitKeepsEmptyParts) {
    EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
    EXPECT_THAT(split("", ','), ElementsAre(""));
    EXPECT_THAT(split("abc", ','), ElementsAre("abc"));
}

TEST(Text, ParseIntTakesWholeNumbersOnly) {
    EXPECT_EQ(parseInt<int>("42"), 42);
    EXPECT_EQ(parseInt<int>("-7"), -7);
    for (const char* text : {"", " 1", "1 ", "1.0", "0x1", "+1", "99999999999", "one"})
        EXPECT_EQ(parseInt<int>(text), std::nullopt) << text;
    EXPECT_EQ(parseInt<unsigned char>("256"), std::nullopt);
    EXPECT_EQ(parseInt<unsigned>("-1"), std::nullopt);
}

TEST(Text, ParseReal) {
    EXPECT_EQ(parseReal("1.5"), 1.5);
    EXPECT_EQ(parseReal("2e3"), 2000);
    EXPECT_EQ(parseReal("-0.25"), -0.25);
    for (const char* text : {"", "1,5", "1.5s", " 1"}) EXPECT_EQ(parseReal(text), std::nullopt);
}

TEST(Text, ParseBool) {
    for (const char* text : {"1", "true", "YES", " On\n"}) EXPECT_EQ(parseBool(text), true) << text;
    for (const char* text : {"0", "False", "no", "OFF"}) EXPECT_EQ(parseBool(text), false) << text;
    for (const char* text : {"", "2", "yep", "o n"}) EXPECT_EQ(parseBool(text), std::nullopt);
}

TEST(Text, LowerAndJoin) {
    EXPECT_EQ(lower("AbC-1\xc4"), "abc-1\xc4");
    EXPECT_EQ(join(std::vector<std::string>{"a", "", "b"}, ", "), "a, , b");
    EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
}

TEST(Text, JoinsWhatIsSaidOfSeveralThings) {
    EXPECT_EQ(joinAlike({"a: no: really", "b: other", "c: no: really", "no name"}),
              "a, c: no: really; b: other; no name");
    EXPECT_EQ(joinAlike({"one", "one"}), "one");
    EXPECT_EQ(joinAlike({}), "");
}

TEST(Result, HoldsAValueOrAnError) {
    const Result<int> good = 3;
    ASSERT_TRUE(good);
    EXPECT_EQ(*good, 3);
    EXPECT_EQ(good.value(), 3);
    const Result<int> bad = Error{"file:1: expected a number"};
    EXPECT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().message, "file:1: expected a number");
    EXPECT_EQ(within("reading", bad.error()).message, "reading: file:1: expected a number");
    EXPECT_THROW((void)bad.value(), std::bad_variant_access);
    EXPECT_TRUE(Status(Done{}).ok());
}

TEST(Result, AStringCanBeTheValue) {
    const Result<std::string> text = std::string("x");
    EXPECT_EQ(text->size(), 1U);
}

}  // namespace
}  // namespace rdmatune
