// The token file of a server that runs: who is in it, at its doors, and what SIGHUP does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "tests/integration/cli.h"
#include "tests/integration/http_wire.h"
#include "tests/support/eventually.h"

namespace shirabe::cmd {
namespace {

using testing::HasSubstr;

constexpr char kAdmin[] = "an-administrators-token";
constexpr char kReader[] = "a-token-that-reads-metrics";
constexpr char kOthers[] = "0123456789abcdef0123456789abcdef";  // as those of attempts look

class RightsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Fd(open("/dev/tty", O_RDONLY | O_CLOEXEC)).valid()) {
      GTEST_SKIP() << "SIGHUP ends a server that has a terminal, and this one would have yours";
    }
    WriteTokens(absl::StrCat("metrics ", kReader, "\nuser red ", kOthers, "\n"));
    const std::string ready = cli_.Path("ready");
    server_ = cli_.Start({"serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file",
                          ready, "--token-file", cli_.Path("tokens")});
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << server_->Err();
    const auto written = nlohmann::json::parse(ReadFile(ready).value());
    grpc_ = written.value("grpc", "");
    const std::string http = written.value("http", "");
    port_ = std::stoi(http.substr(http.rfind(':') + 1));
  }

  void WriteTokens(const std::string& more) {
    const std::string text = absl::StrCat(kAdmin, "\n", more);
    ASSERT_TRUE(WriteFileAtomic(cli_.Path("tokens"), text).ok());
    ASSERT_EQ(chmod(cli_.Path("tokens").c_str(), 0600), 0);
  }
  bool Reload(const std::string& said) {
    server_->Signal(SIGHUP);
    return Eventually([&] { return server_->Err().find(said) != std::string::npos; });
  }

  service::WireReply Get(const std::string& path, const std::string& token) {
    service::Wire wire(port_);
    EXPECT_TRUE(wire.Send(service::RequestText("GET " + path, token)));
    return wire.ReadReply();
  }

  Cli cli_;
  std::unique_ptr<Running> server_;
  std::string grpc_;
  int port_ = 0;
};

TEST_F(RightsFileTest, AReaderOfMetricsComesInAtNoOtherDoor) {
  const service::WireReply metrics = Get("/metrics", kReader);
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr("shirabe_build_info"));
  EXPECT_EQ(Get("/metrics", kOthers).status, 403);
  for (const char* path :
       {"/api/v1/experiments", "/api/v1/namespaces/red/experiments", "/api/v1/algorithms",
        "/api/v1/watch", "/api/v1/namespaces/red/experiments/x/trials/1"}) {
    EXPECT_EQ(Get(path, kReader).status, 403) << path;
  }
  cli_.Write("reader", kReader);
  ASSERT_EQ(chmod(cli_.Path("reader").c_str(), 0600), 0);
  const Outcome outcome =
      cli_.Run({"get", "experiments", "--server", grpc_, "--token-file", cli_.Path("reader")});
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("this token is for reading /metrics, and nothing else"));
}

TEST_F(RightsFileTest, SighupReadsTheFileAgain) {
  ASSERT_EQ(Get("/metrics", kReader).status, 200);
  ASSERT_EQ(Get("/api/v1/namespaces/red/experiments", kOthers).status, 200);
  WriteTokens(absl::StrCat("user blue ", kReader, "\n"));
  ASSERT_TRUE(Reload("read the token file again")) << server_->Err();
  EXPECT_EQ(Get("/metrics", kReader).status, 403);
  EXPECT_EQ(Get("/api/v1/namespaces/blue/experiments", kReader).status, 200);
  EXPECT_EQ(Get("/api/v1/namespaces/red/experiments", kOthers).status, 403);  // a trial's, it seems
  WriteTokens("nonsense\n");
  ASSERT_TRUE(Reload("the tokens stay as they were")) << server_->Err();
  EXPECT_EQ(Get("/api/v1/namespaces/blue/experiments", kReader).status, 200);
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait().code, 0);
}

}  // namespace
}  // namespace shirabe::cmd
