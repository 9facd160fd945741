// `doctor --security` names what is open on a machine, and says so of nothing that is closed.
#include <sys/stat.h>

#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class DoctorTest : public AttackTest {
 protected:
  // Each finding as "state check: detail"; of the servers of this machine, ours only.
  std::vector<std::string> Findings(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"doctor", "--security", "-o", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const cmd::Outcome outcome = cli_.Run(words);
    std::vector<std::string> findings;
    const json list = json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
    const std::string ours = absl::StrCat("process ", server_->pid());
    for (const json& item : list["items"]) {
      const std::string check = item["check"].get<std::string>();
      if (check.rfind("process ", 0) == 0 && check != ours) continue;
      findings.push_back(absl::StrCat(item["state"].get<std::string>(), " ", check, ": ",
                                      item["detail"].get<std::string>()));
    }
    return findings;
  }
};

TEST_F(DoctorTest, AServerWithTokensIsClosed) {
  chmod(cli_.state().c_str(), 0700);
  Serve();
  const auto findings = Findings({"--server", grpc_});
  EXPECT_THAT(findings,
              Contains(HasSubstr("127.0.0.1:" + std::to_string(http_port_) + " asks for a token")));
  EXPECT_THAT(findings, Contains("ok stranger: callers without a token are refused"));
  EXPECT_THAT(findings, Not(Contains(HasSubstr("error"))));
}

TEST_F(DoctorTest, WhatIsOpenIsNamed) {
  const std::string ready = cli_.Path("ready");
  server_ = cli_.Start({"serve", "--insecure", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
                        "--ready-file", ready});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << server_->Err();
  const std::string grpc = json::parse(*ReadFile(ready))["grpc"].get<std::string>();
  chmod(cli_.state().c_str(), 0755);
  const auto findings = Findings({"--server", grpc});
  EXPECT_THAT(findings, Contains("warning process " + std::to_string(server_->pid()) + ": " + grpc +
                                 " takes every caller for the administrator"));
  EXPECT_EQ(cli_.Run({"doctor", "--security", "--server", grpc}).code, 1);
  EXPECT_THAT(findings, Contains("error stranger: it answers callers without a token"));
  EXPECT_THAT(findings,
              Contains("error home: other users of this machine can read " + cli_.state()));
}

}  // namespace
}  // namespace shirabe::attack
