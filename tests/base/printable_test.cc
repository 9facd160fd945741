#include "base/printable.h"

#include <gtest/gtest.h>

namespace shirabe {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("loss=0.5\tstep 3\n調べ"), "loss=0.5\tstep 3\n調べ");
}

TEST(Printable, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("a\xFF\xC3-b"), "a?\?-b");
  EXPECT_EQ(Printable("cut \xE8\xAA"), "cut ??");
}

TEST(Printable, TakesControlOfNoTerminal) {
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(Printable("\x1B[2Jgone\r\x7F"), " [2Jgone  ");
}

}  // namespace
}  // namespace shirabe
