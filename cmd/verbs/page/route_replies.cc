#include "cmd/verbs/page/route_replies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/text/json_text.h"
#include "cmd/page_server.h"
#include "service/common/authorization.h"
#include "service/http/http_router.h"
#include "view/record_json.h"

namespace shirabe::cmd {
namespace {

// Replies of another client, as others may read them.
class RedactedClient : public ForwardingClient {
 public:
  RedactedClient(client::Client& client, const view::Redactor& redactor)
      : ForwardingClient(client), redactor_(redactor) {}

  Status Call(const client::Method& method, const google::protobuf::Message& request,
              const client::Sink& sink) override {
    return ForwardingClient::Call(method, request, [&](google::protobuf::Message& reply) {
      redactor_.Redact(reply);
      return sink(reply);
    });
  }
  // A path of this machine, or of the server.
  std::string LogLocation(const AttemptKey& /*key*/) override { return ""; }

 private:
  const view::Redactor& redactor_;
};

// The error in the body of a reply, whose message is for people.
Status FailureOf(const service::HttpReply& reply) {
  const auto tree = ParseJson<view::Json>(reply.body);
  const bool said = tree.ok() && tree->is_object() && tree->contains("message");
  const std::string message = said ? tree->value("message", "") : "";
  if (reply.status == 404) return absl::NotFoundError(message);
  return absl::UnavailableError(message.empty() ? absl::StrCat("status ", reply.status) : message);
}

}  // namespace

struct RouteReplies::Routes {
  explicit Routes(std::unique_ptr<client::LocalClient> of)
      : client(std::move(of)),
        router({.client = client.get(), .tokens = &tokens, .clock = RealClock()}) {}

  StatusOr<Reply> Get(const std::string& target) {
    service::HttpReply reply =
        router.Handle({.method = "GET", .target = "/" + target, .headers = {}});
    if (reply.status >= 300) return FailureOf(reply);
    std::string body = std::move(reply.body);
    for (bool more = reply.source != nullptr; more;) {
      ASSIGN_OR_RETURN(const service::Piece piece, reply.source->Next());
      body += piece.text;
      more = !piece.end;
    }
    return Reply{reply.type, std::move(body)};
  }

  const service::Tokens tokens = service::Tokens::Open();
  const std::unique_ptr<client::LocalClient> client;
  service::Router router;
};

RouteReplies::RouteReplies(client::Client& client, view::Redactor redactor)
    : redactor_(std::move(redactor)),
      stored_(std::make_unique<Routes>(std::make_unique<ForwardingClient>(client))),
      redacted_(std::make_unique<Routes>(std::make_unique<RedactedClient>(client, redactor_))) {}

RouteReplies::~RouteReplies() = default;

StatusOr<RouteReplies::Reply> RouteReplies::Get(const std::string& target) {
  return redacted_->Get(target);
}

StatusOr<RouteReplies::Reply> RouteReplies::GetAsStored(const std::string& target) {
  return stored_->Get(target);
}

RouteReplies::Reply RouteReplies::ShowEvents(std::vector<v1::Event> events) const {
  view::Json items = view::Json::array();
  for (v1::Event& event : events) {
    redactor_.Redact(event);
    items.push_back(view::EventJson(event));
  }
  return {"application/json", view::PrintJsonLine({{"items", std::move(items)}, {"revision", 0}})};
}

StatusOr<RouteReplies::Reply> RouteReplies::GetTail(const std::string& target, size_t max_bytes) {
  ASSIGN_OR_RETURN(Reply reply, stored_->Get(target));
  // More than is kept, so that no secret is cut where that begins.
  const size_t dropped = reply.body.size() - std::min(reply.body.size(), 8 * max_bytes);
  reply.body = redactor_.Redact(absl::string_view(reply.body).substr(dropped));
  if (dropped == 0 && reply.body.size() <= max_bytes) return reply;
  const size_t kept = std::min(reply.body.size(), max_bytes);
  const size_t cut = reply.body.find('\n', reply.body.size() - kept);
  const size_t from = cut == std::string::npos ? reply.body.size() - kept : cut + 1;
  reply.body = absl::StrCat("(the first ", dropped + from, " bytes are left out of this report)\n",
                            reply.body.substr(from));
  return reply;
}

}  // namespace shirabe::cmd
