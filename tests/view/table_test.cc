#include "view/text_table.h"

#include <gtest/gtest.h>

namespace shirabe::view {
namespace {

TEST(TableTest, AlignsColumnsAndLeavesNoBlanksAtTheEnd) {
  Table table({"NAME", "STATE", "BEST"});
  table.Add({"a", "Running", "0.5"});
  table.Add({"longer-name", "Failed", ""});
  EXPECT_EQ(table.Render(),
            "NAME          STATE     BEST\n"
            "a             Running   0.5\n"
            "longer-name   Failed    -\n");
}

TEST(TableTest, TheHeaderCountsForTheWidthOnlyIfItIsShown) {
  Table table({"A-LONG-HEADER", "B"});
  table.Add({"x", "y"});
  EXPECT_EQ(table.Render(/*with_header=*/false), "x   y\n");
}

TEST(TableTest, PrintedBitByBitItStaysAligned) {
  Table table({"N", "S"});
  table.Add({"long", "x"});
  EXPECT_EQ(table.Render(), "N      S\nlong   x\n");
  table.Add({"a", "y"});
  EXPECT_EQ(table.Render(), "a      y\n");
  EXPECT_EQ(table.Render(), "");
}

TEST(TableTest, ATableWithoutRowsIsEmpty) {
  EXPECT_EQ(Table({"A", "B"}).Render(), "");
  EXPECT_EQ(Table({"A", "B"}).Render(/*with_header=*/false), "");
}

TEST(TableTest, WideCharactersCountTwoAndAccentsNone) {
  EXPECT_EQ(DisplayWidth("調べ"), 4);
  EXPECT_EQ(DisplayWidth("é"), 1);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
  EXPECT_EQ(DisplayWidth("🚀"), 2);
  Table table({"K", "V"});
  table.Add({"調べ", "x"});
  table.Add({"abcd", "y"});
  EXPECT_EQ(table.Render(false), "調べ   x\nabcd   y\n");
}

TEST(TableTest, NothingInACellReachesTheTerminalAsAControl) {
  Table table({"M"});
  table.Add(
      {"a\nb\x1b[31mc\x7f\xc2\x9b"
       "d\xff"});
  EXPECT_EQ(table.Render(false), "a?b?[31mc??d?\n");
}

TEST(TableTest, TruncateCutsBetweenCharacters) {
  EXPECT_EQ(Truncate("abc", 2), "ab");
  EXPECT_EQ(Truncate("調べ", 3), "調");
  EXPECT_EQ(Truncate("abc", 10), "abc");
  EXPECT_EQ(Truncate("abc", 0), "");
}

}  // namespace
}  // namespace shirabe::view
