// Who shows a token: the file of tokens, what has the shape of an attempt's, and a cluster.
#include "service/common/authorization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file_io.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;
using Role = Principal::Role;

constexpr char kAdmin[] = "an-administrators-token";
constexpr char kRed[] = "a-token-of-the-user-of-red";
constexpr char kOfTrial[] = "0123456789abcdef0123456789ABCDEF";

class AuthTest : public testing::Test {
 protected:
  AuthTest() : path_(testing::TempDir() + "auth-" + std::to_string(getpid()) + "-tokens") {
    std::filesystem::remove(path_);
  }
  ~AuthTest() override { std::filesystem::remove(path_); }

  StatusOr<Tokens> Load(const std::string& text, mode_t mode = 0600) {
    CHECK(WriteFileAtomic(path_, text).ok());
    CHECK(chmod(path_.c_str(), mode) == 0);
    return Tokens::Load(path_);
  }
  Tokens Default() { return *Load(std::string(kAdmin) + "\nuser red " + kRed + "\n"); }
  static StatusOr<Principal> Show(const Tokens& tokens, const std::string& token) {
    return tokens.Check("Bearer " + token, "10.0.0.1");
  }

  const std::string path_;
};

TEST_F(AuthTest, KnowsWhomTheFileNames) {
  const Tokens tokens = Default();
  const auto admin = Show(tokens, kAdmin);
  ASSERT_TRUE(admin.ok()) << admin.status();
  EXPECT_EQ(admin->role, Role::kAdmin);
  EXPECT_EQ(admin->name, "admin");
  const auto red = Show(tokens, kRed);
  ASSERT_TRUE(red.ok()) << red.status();
  EXPECT_EQ(red->role, Role::kUser);
  EXPECT_EQ(red->ns, "red");
  EXPECT_EQ(red->name, "user of red");
}

// The later line would take it away from the first.
TEST_F(AuthTest, ATokenIsOfOneNamespaceOrTheAdministrators) {
  const std::string shared = std::string(" ") + kRed + "\n";
  const auto two = Load(std::string(kAdmin) + "\nuser red" + shared + "user blue" + shared);
  EXPECT_THAT(Message(two.status()), HasSubstr(":3: this token stands in line 2, too"));
  const auto both = Load(std::string(kAdmin) + "\nuser red " + kAdmin + "\n");
  EXPECT_THAT(Message(both.status()), HasSubstr(":2: this token stands in line 1, too"));
  EXPECT_TRUE(Load(std::string(kAdmin) + "\nuser red" + shared + "user red" + shared).ok());
}

TEST_F(AuthTest, AUserMayActInOneNamespace) {
  const auto red = Show(Default(), kRed);
  for (const Permission permission :
       {v1::Rights::READ, v1::Rights::CREATE, v1::Rights::CHANGE, v1::Rights::DELETE}) {
    EXPECT_TRUE(red->CheckPermission(permission, "red").ok());
    EXPECT_TRUE(absl::IsPermissionDenied(red->CheckPermission(permission, "blue")));
    EXPECT_TRUE(absl::IsPermissionDenied(red->CheckPermission(permission, "")));  // all of them
  }
  EXPECT_TRUE(absl::IsPermissionDenied(red->CheckReadMetrics()));
  EXPECT_TRUE(absl::IsPermissionDenied(red->CheckAdmin("this")));
}

TEST_F(AuthTest, AReaderOfMetricsMayReadThemAndNothingElse) {
  const auto tokens = Load(std::string(kAdmin) + "\nmetrics " + kRed + "\n");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const auto monitor = Show(*tokens, kRed);
  ASSERT_EQ(monitor->role, Role::kMonitor);
  using Rights = v1::Rights;
  EXPECT_TRUE(CheckAccess(*monitor, MakeRights(Rights::METRICS), "").ok());
  EXPECT_TRUE(CheckAccess(*monitor, MakeRights(Rights::ANYONE), "").ok());
  for (const auto audience :
       {Rights::NO_CALLER, Rights::CALLERS, Rights::NAMESPACE, Rights::TRIALS, Rights::PODS}) {
    const Status refused = CheckAccess(*monitor, MakeRights(audience), "red");
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << audience << refused;
  }
  EXPECT_TRUE(absl::IsPermissionDenied(monitor->CheckAdmin("this")));
  EXPECT_EQ(monitor->CanSee("red").value_or(true), false);
  EXPECT_THAT(Message(Load(std::string(kAdmin) + "\nmetric " + kRed + "\n").status()),
              HasSubstr(":2: expected"));
}

TEST_F(AuthTest, AFileThatIsReadAgainCountsForAllCopies) {
  Tokens tokens = Default();
  const Tokens copy = tokens;
  constexpr char kBlue[] = "a-token-of-the-user-of-blue";
  ASSERT_TRUE(Load(std::string(kAdmin) + "\nuser blue " + kBlue + "\n").ok());  // written
  EXPECT_TRUE(absl::IsUnauthenticated(Show(copy, kBlue).status()));
  ASSERT_TRUE(tokens.Reload().ok());
  EXPECT_EQ(Show(copy, kBlue)->ns, "blue");
  EXPECT_TRUE(absl::IsUnauthenticated(Show(copy, kRed).status()));
  // One with a mistake changes nothing, nor does one that others may read.
  ASSERT_FALSE(Load(std::string(kAdmin) + "\nusr blue " + kBlue + "\n").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(tokens.Reload()));
  ASSERT_FALSE(Load(std::string(kAdmin) + "\n", 0644).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(tokens.Reload()));
  std::filesystem::remove(path_);
  EXPECT_FALSE(tokens.Reload().ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(Show(copy, kBlue)->ns, "blue");
}

TEST_F(AuthTest, OthersOfTheSameLengthAreUnknown) {
  const Tokens tokens = Default();
  for (const std::string known : {kAdmin, kRed}) {
    std::string wrong = known;
    wrong.back() = '?';
    EXPECT_TRUE(absl::IsUnauthenticated(Show(tokens, wrong).status())) << wrong;
    EXPECT_TRUE(absl::IsUnauthenticated(Show(tokens, known + "x").status()));
    EXPECT_TRUE(absl::IsUnauthenticated(Show(tokens, known.substr(1)).status()));
  }
  for (const char* header : {"", "Bearer", "Bearer ", "Basic YTpi", kAdmin}) {
    EXPECT_TRUE(absl::IsUnauthenticated(tokens.Check(header, "10.0.0.1").status())) << header;
  }
}

TEST_F(AuthTest, OnlyWhatHasItsShapeIsTakenForATrials) {
  const Tokens tokens = Default();
  const auto trial = Show(tokens, kOfTrial);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->role, Role::kTrial);
  EXPECT_EQ(trial->token.size(), 16u);
  EXPECT_TRUE(absl::IsPermissionDenied(trial->CheckRead("red")));
  EXPECT_TRUE(absl::IsPermissionDenied(trial->CheckReadMetrics()));
  for (const char* other : {"x", "ff", "0123456789abcdef0123456789abcdeg", "0123456789abcdef"}) {
    EXPECT_TRUE(absl::IsUnauthenticated(Show(tokens, other).status())) << other;
  }
}

TEST_F(AuthTest, AClusterIsAskedOfWhatIsNoTrialsAndNotInTheFile) {
  Tokens tokens = Default();
  std::vector<std::string> asked;
  tokens.SetCluster(
      [&asked](const std::string& token, const std::string& from) -> StatusOr<Principal> {
        asked.push_back(token + " from " + from);
        return Principal{.role = Role::kClusterUser, .name = "ada"};
      });
  for (const char* own : {kAdmin, kRed, kOfTrial}) {
    EXPECT_FALSE(tokens.MustAsk(std::string("Bearer ") + own));
    EXPECT_TRUE(Show(tokens, own).ok());
  }
  EXPECT_THAT(asked, testing::IsEmpty());
  EXPECT_TRUE(tokens.MustAsk("Bearer a.d.a"));
  EXPECT_EQ(Show(tokens, "a.d.a")->name, "ada");
  EXPECT_THAT(asked, testing::ElementsAre("a.d.a from 10.0.0.1"));
}

TEST_F(AuthTest, AFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0660, 0601}) {
    const Status status = Load(std::string(kAdmin) + "\n", mode).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("chmod 600"));
  }
}

TEST_F(AuthTest, WhatTheFileMayNotHoldIsNamedWithItsLine) {
  const std::string admin = std::string(kAdmin) + "\n";
  const auto expect = [&](const std::string& text, const std::string& words) {
    const Status status = Load(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << status;
    EXPECT_THAT(status.message(), HasSubstr(words)) << text;
  };
  expect("fifteen-letters\n", ":1: a token of 15 characters can be guessed");
  expect(admin + "user red fifteen-letters\n", ":2: a token of 15 characters can be guessed");
  expect(admin + "user " + kRed + "\n", ":2: expected");
  expect(admin + "user ../red " + kRed + "\n", ":2: ");
  expect(admin + kRed + "\n", ":2: expected");
  expect("user red " + std::string(kRed) + "\n", "no administrator's token");
  EXPECT_TRUE(Load("sixteen-letters!\n").ok());
}

TEST_F(AuthTest, MakesAFileThatOnlyItsOwnerReads) {
  ASSERT_TRUE(Tokens::Load(path_).ok());
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto text = ReadFile(path_);
  ASSERT_TRUE(text.ok());
  EXPECT_GE(text->size(), 40u);
}

}  // namespace
}  // namespace shirabe::service
