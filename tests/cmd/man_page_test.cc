#include "cmd/verb_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"

namespace shirabe::cmd {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Printed(const std::string& verb, const Arguments& arguments) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(FindVerb(verb)->run(arguments).ok()) << verb;
  EXPECT_TRUE(FlushOut().ok());
  return testing::internal::GetCapturedStdout();
}

TEST(ManPageTest, TextIsPrintedAsItIs) {
  EXPECT_EQ(ManText(".x 'a' -f \\n"), "\\&.x \\(aqa\\(aq \\-f \\en");
  EXPECT_EQ(ManText("TRIAL… 调"), "\\&TRIAL\\[u2026] \\[u8C03]");
}

TEST(ManPageTest, ASectionLeavesOutWhatAllVerbsHave) {
  Options common("", "");
  Options options("get NAME", "Gets.");
  bool watch = false;
  std::string db;
  common.Text("--db", &db, "ADDRESS", "the store");
  options.Text("--db", &db, "ADDRESS", "the store");
  options.Flag("-w,--watch", &watch, "go on");
  EXPECT_EQ(ManSection(options, common),
            ".SS shirabe \\&get\n.PP\n\\fBshirabe \\&get NAME\\fR\n.PP\n\\&Gets.\n"
            ".TP\n\\fB\\&\\-w, \\-\\-watch\\fR\n\\&go on\n");
}

TEST(ManPageTest, HasEveryVerbAndEveryOption) {
  const std::string manual = Printed("__man", {});
  for (const std::string& name : VerbNames()) {
    EXPECT_THAT(manual, HasSubstr(absl::StrCat(".SS shirabe ", ManText(name), "\n")));
    const std::string help = Printed(name, {"--help"});
    for (size_t at = help.find("  -"); at != std::string::npos; at = help.find("  -", at + 1)) {
      const std::string option = help.substr(at + 2, help.find("  ", at + 2) - at - 2);
      const std::string names = option.substr(0, option.find(' ', option.rfind('-')));
      EXPECT_THAT(manual, HasSubstr(absl::StrCat("\\fB", ManText(names), "\\fR"))) << name;
    }
  }
  EXPECT_THAT(manual, Not(HasSubstr("shirabe \\&pod")));
}

}  // namespace
}  // namespace shirabe::cmd
