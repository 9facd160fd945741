// TLS, and clients that must show a certificate. The certificates are made by the openssl tool.
#include <stdlib.h>

#include <filesystem>

#include "service/http/http_server.h"
#include "service/server.h"
#include "tests/integration/http_wire.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;

class HttpTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(home_);
    if (system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no openssl tool";
    Make("ca", "-x509 -days 2");
    Make("server", "-x509 -days 2 -addext subjectAltName=IP:127.0.0.1");
    Make("client", "");
    Run("openssl x509 -req -in client.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
        "-out client.crt");
  }
  ~HttpTlsTest() override { std::filesystem::remove_all(home_); }

  void Run(const std::string& command) {
    ASSERT_EQ(system(absl::StrCat("cd ", home_, " && ", command, " >log 2>&1").c_str()), 0)
        << command;
  }
  void Make(const std::string& name, const std::string& kind) {
    Run(absl::StrCat("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=",
                     name, " -keyout ", name, ".key -out ", name, ".pem ", kind));
  }
  std::string File(const std::string& name) const { return home_ + "/" + name; }
  StatusOr<std::unique_ptr<HttpServer>> Start(const TlsFiles& tls) {
    return HttpServer::Start({.context = http_.context(), .tls = &tls});
  }

  // The first bytes of the reply to a request; "" if there was none.
  std::string Ask(int port, bool with_certificate) {
    const Wire wire(port);
    return AskOverTls(wire.fd(), RequestText("GET /api/v1/algorithms/tpe", kAdminToken),
                      {.authority = File("server.pem"),
                       .certificate = with_certificate ? File("client.crt") : "",
                       .key = File("client.key")});
  }

  const std::string home_ = absl::StrCat(testing::TempDir(), "http-tls-", getpid());
  HttpFixture http_;
};

TEST_F(HttpTlsTest, SpeaksTlsToThoseWhoDo) {
  const auto server = Start({.certificate = File("server.pem"), .key = File("server.key")});
  ASSERT_TRUE(server.ok()) << server.status();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Ask((*server)->port(), false), HasSubstr("200 OK"));
  Wire plain((*server)->port());
  plain.Send(RequestText("GET /version", ""));
  EXPECT_TRUE(plain.ReadToEnd());
  EXPECT_EQ(plain.data().find("200 OK"), std::string::npos);
  Wire silent((*server)->port());  // ends with the server
}

TEST_F(HttpTlsTest, AsksClientsForACertificate) {
  const auto server = Start(
      {.certificate = File("server.pem"), .key = File("server.key"), .client_ca = File("ca.pem")});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Ask((*server)->port(), true), HasSubstr("200 OK"));
  EXPECT_EQ(Ask((*server)->port(), false), "");
}

TEST_F(HttpTlsTest, SaysWhichFileIsWrong) {
  const auto none = Start({.certificate = File("none.pem"), .key = File("server.key")});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(none.status()), HasSubstr("none.pem"));
  const auto other = Start({.certificate = File("server.pem"), .key = File("ca.key")});
  EXPECT_THAT(Message(other.status()), HasSubstr("--tls-key"));
}

}  // namespace
}  // namespace shirabe::service
