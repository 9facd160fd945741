// Any text as a request: a method, a target, a line end, a body. Whatever it is, the answer is a
// status that the interface has, and an error says what is wrong in JSON.
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "client/local_client.h"
#include "nlohmann/json.hpp"
#include "service/common/change_hub.h"
#include "service/common/server_metrics.h"
#include "service/http/http_router.h"

namespace shirabe::service {
namespace {

constexpr const char* kMethods[] = {"GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"};

class Server {
 public:
  Server() : tokens_(Tokens::Open()) {
    auto opened = client::LocalClient::Open(
        {.place = {.home = "/nonexistent", .db = "memory:"}, .read_only = false, .clock = &clock_});
    CHECK(opened.ok());
    client_ = std::move(*opened);
    hub_ = std::make_unique<ChangeHub>(*client_);
    // Nobody waits: neither for points nor for deletions.
    shutdown_wait_.End();
    router_ = std::make_unique<Router>(HttpContext{.client = client_.get(),
                                                   .tokens = &tokens_,
                                                   .clock = &clock_,
                                                   .hub = hub_.get(),
                                                   .metrics = &metrics_,
                                                   .shutdown_wait = &shutdown_wait_});
  }
  HttpReply Handle(const HttpRequest& request) { return router_->Handle(request); }
  bool IsSlow(const HttpRequest& request) const { return router_->Classify(request).slow; }

 private:
  ManualClock clock_;
  Tokens tokens_;
  std::unique_ptr<client::LocalClient> client_;
  std::unique_ptr<ChangeHub> hub_;
  Metrics metrics_;
  ShutdownWait shutdown_wait_;
  std::unique_ptr<Router> router_;
};

void Check(std::string_view text) {
  static Server server;
  if (text.empty()) return;
  HttpRequest request{.method = kMethods[static_cast<uint8_t>(text[0]) % std::size(kMethods)]};
  const size_t line = std::min(text.find('\n'), text.size());
  request.target = std::string(text.substr(1, line - (line > 0 ? 1 : 0)));
  if (line < text.size()) request.body = std::string(text.substr(line + 1));
  if (server.IsSlow(request)) return;  // would wait, by a clock that stands still
  HttpReply reply = server.Handle(request);
  CHECK(reply.status >= 200 && reply.status < 600 && reply.status != 500);
  CHECK(std::string_view(ReasonPhrase(reply.status)) != "Status");
  if (reply.status >= 400 && reply.type == "application/json") {
    const auto body = nlohmann::json::parse(reply.body, nullptr, false);
    CHECK(body.contains("code") && body.contains("message") && body.contains("details"));
  }
  const std::string head = HeadOf(reply, {});
  CHECK(head.find("\r\n\r\n") == head.size() - 4);
}

}  // namespace
}  // namespace shirabe::service

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shirabe::service::Check(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
