// Calls of a server that offers HTTP/2, which gRPC's is: they share one connection, until one of
// them is not answered.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/certificate.h"
#include "base/clock.h"
#include "net/http_client.h"

namespace shirabe::net {
namespace {

// Answers every call but those of /silent, and knows which connections they came over.
class Http2Server : public grpc::CallbackGenericService {
 public:
  Http2Server() {
    authority_ = *MakeAuthority("test", absl::Now());
    const KeyPair pair = *IssueCertificate(authority_, {"127.0.0.1"}, absl::Now());
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({pair.key, pair.certificate});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~Http2Server() override { server_->Shutdown(absl::ToChronoTime(absl::InfinitePast())); }

  HttpCall Call(const std::string& target) const {
    return {.request = {.method = "POST",
                        .target = target,
                        .content_type = "application/grpc",
                        .headers = {{"TE", "trailers"}}},
            .origin = absl::StrCat("https://127.0.0.1:", port_),
            .tls = {.ca = authority_.certificate}};
  }

  std::set<std::string> peers() {
    const std::lock_guard lock(mutex_);
    return peers_;
  }

 private:
  struct Reactor : grpc::ServerGenericBidiReactor {
    void OnCancel() override {
      if (silent) Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override {}  // the server owns it
    bool silent = false;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::lock_guard lock(mutex_);
    peers_.insert(context->peer());
    Reactor& reactor = reactors_.emplace_back();
    reactor.silent = context->method() == "/silent/call";
    if (!reactor.silent) reactor.Finish(grpc::Status::OK);
    return &reactor;
  }

  KeyPair authority_;
  int port_ = 0;
  std::mutex mutex_;
  std::set<std::string> peers_;
  std::list<Reactor> reactors_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(Http2Test, ManyCallsShareOneConnection) {
  Http2Server server;
  const auto client = HttpClient::Create();
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Duration begun = RealClock()->Monotonic();
  std::vector<std::thread> threads;
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) {
        const HttpExchange exchange = (*client)->Do(server.Call("/a/b"), nullptr, {});
        EXPECT_TRUE(exchange.status.ok()) << exchange.status;
        EXPECT_EQ(exchange.answer.status, 200);
        EXPECT_EQ(exchange.answer.Header("grpc-status"), "0");
        EXPECT_EQ(exchange.answer.reason, "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(RealClock()->Monotonic() - begun, absl::Seconds(10));
  EXPECT_EQ(server.peers().size(), 1u);
}

// It may be dead, and would swallow all that follow.
TEST(Http2Test, AConnectionThatDoesNotAnswerIsNotUsedAgain) {
  Http2Server server;
  const auto client = HttpClient::Create();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Do(server.Call("/a/b"), nullptr, {}).status.ok());
  HttpCall silent = server.Call("/silent/call");
  silent.limits.answer = absl::Milliseconds(200);
  const HttpExchange lost = (*client)->Do(silent, nullptr, {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(lost.status)) << lost.status;
  EXPECT_EQ(lost.stage, ExchangeStage::kSent);
  EXPECT_EQ(server.peers().size(), 1u);
  EXPECT_TRUE((*client)->Do(server.Call("/a/b"), nullptr, {}).status.ok());
  EXPECT_EQ(server.peers().size(), 2u);
}

}  // namespace
}  // namespace shirabe::net
