#include "metrics/terminal_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace shirabe::metrics {
namespace {

std::string Strip(std::string_view line) {
  std::string scratch;
  return std::string(StripAnsi(line, scratch));
}

TEST(StripAnsi, TakesOutEverySequence) {
  EXPECT_EQ(Strip("plain"), "plain");
  EXPECT_EQ(Strip(""), "");
  EXPECT_EQ(Strip("\x1b[1;38;5;200mred\x1b[0m\x1b[2K\x1b[?25l"), "red");
  EXPECT_EQ(Strip("a\x1b]8;;http://x\x1b\\b\x1b]0;title\a!"), "ab!");
  EXPECT_EQ(Strip("a\x1b(Bb\x1b=c\x1b"
                  "7d"),
            "abcd");
}

TEST(StripAnsi, KeepsTheTextAfterABrokenSequence) {
  EXPECT_EQ(Strip("a\x1b[12\x01loss"), "a\x01loss");
  EXPECT_EQ(Strip("a\x1b]never ended loss=1"), "anever ended loss=1");
  EXPECT_EQ(Strip("a\x1b"), "a");
  EXPECT_EQ(Strip("a\x1b["), "a");
  EXPECT_EQ(Strip("\x1b\x1b[31mx"), "x");
}

TEST(Words, AreLettersOfAnyScript) {
  for (const char* word : {"a", "Z", "0", "_", "é", "µ", "損", "ß", "Ω"}) {
    EXPECT_TRUE(WordBefore(word, std::string_view(word).size())) << word;
    EXPECT_EQ(WordAt(word, 0), std::string_view(word).size()) << word;
  }
  for (const char* other : {" ", "-", "±", "│", "→", "🚀", "。", "\xff", "\xe3\x81", "\xc0\x80"}) {
    EXPECT_FALSE(WordBefore(other, std::string_view(other).size())) << other;
    EXPECT_EQ(WordAt(other, 0), 0u) << other;
  }
  EXPECT_FALSE(WordBefore("a", 0));
  EXPECT_EQ(WordAt("a", 1), 0u);
}

TEST(Excerpt, IsShortAndPrintable) {
  EXPECT_EQ(Excerpt("損失 = 1"), "損失 = 1");
  EXPECT_EQ(Excerpt(std::string_view("a\0\x1b\x7f\xff\xc2\x85", 7)),
            "a\\x00\\x1b\\x7f\\xff\\xc2\\x85");
  EXPECT_EQ(Excerpt("abcdef", 3), "abc…");
  EXPECT_EQ(Excerpt("abc", 3), "abc");
}

}  // namespace
}  // namespace shirabe::metrics
