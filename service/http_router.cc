#include "service/http_router.h"

#include <exception>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/log.h"
#include "base/rate_limiter.h"
#include "service/grpc_web.h"
#include "service/http_errors.h"
#include "service/http_match.h"
#include "service/metrics.h"
#include "service/rights.h"
#include "trial/sha256.h"

namespace shirabe::service {
namespace {

// What a body may be called; all of it is read as YAML, of which JSON is a part.
constexpr const char* kBodyTypes[] = {"application/json", "application/merge-patch+json",
                                      "application/yaml", "application/x-yaml",
                                      "text/yaml",        "text/x-yaml"};

bool IsBodyType(const std::string& content_type) {
  const std::string type(absl::StripAsciiWhitespace(
      absl::AsciiStrToLower(content_type.substr(0, content_type.find(';')))));
  for (const char* known : kBodyTypes) {
    if (type == known) return true;
  }
  return type.empty();
}

Status CheckBody(const Route& route, const HttpRequest& request) {
  if (route.request == nullptr) {
    if (request.body.empty() || request.body == "{}") return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(route.method, " ", route.path, " takes no body"));
  }
  const std::string& type = request.Header("content-type");
  if (IsBodyType(type)) return absl::OkStatus();
  return WithHttpStatus(absl::InvalidArgumentError(absl::StrCat(
                            "a body of type ", type, " is not read here: send application/json or ",
                            "application/yaml (curl: -H 'Content-Type: application/yaml' "
                            "--data-binary @FILE)")),
                        415);
}

// A page of another site, open in a browser of this machine, may send requests here. Where no token
// is asked for, nothing else would keep it from starting programs: so requests that a page of
// another site makes are refused, and names under which an attacker could publish our address.
Status CheckOrigin(const HttpRequest& request, bool loopback_only) {
  const std::string& host = request.Header("host");
  if (loopback_only && !host.empty() && !IsLoopback(HostOf(host))) {
    return absl::PermissionDeniedError(absl::StrCat(
        "without tokens, this server is called by localhost or 127.0.0.1, not by ", host));
  }
  const std::string& origin = request.Header("origin");
  if (origin.empty()) return absl::OkStatus();
  const size_t scheme = origin.find("://");
  if (scheme != std::string::npos && origin.substr(scheme + 3) == host) return absl::OkStatus();
  return absl::PermissionDeniedError("pages of another site (" + origin + ") may not call this");
}

std::string CallerOf(const Principal& principal, const HttpRequest& request) {
  if (principal.role == Principal::Role::kTrial) return request.peer;
  return trial::HexSha256(request.Header("authorization"));
}

Status TakeTurn(RateLimiter* limiter, const std::string& caller) {
  if (limiter == nullptr) return absl::OkStatus();
  const Status status = limiter->Take(caller);
  return status.ok() ? status : WithHttpStatus(status, 429);
}

HttpReply OptionsReply(std::string allow) {
  HttpReply reply{.status = 204, .type = ""};
  reply.headers.emplace_back("Allow", std::move(allow));
  return reply;
}

}  // namespace

bool Router::IsSlow(const HttpRequest& request) const {
  if (IsCall(request)) return true;
  const auto target = ParseTarget(request.target);
  if (!target.ok()) return false;
  std::string allow;
  const auto match = FindRoute(request.method, *target, &allow);
  return match.ok() && match->route->slow;
}

bool Router::IsCall(const HttpRequest& request) const {
  return context_.grpc_web != nullptr && GrpcWeb::IsFor(request);
}

Status Router::CheckHead(const HttpRequest& request) const {
  if (IsCall(request)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const HttpTarget target, ParseTarget(request.target));
  std::string allow;
  ASSIGN_OR_RETURN(const Match match, FindRoute(request.method, target, &allow));
  if (match.route->access == Route::Access::kOpen) return absl::OkStatus();
  // Another server need not be asked before the body is read, and not in this thread.
  if (context_.tokens->MustAsk(request.Header("authorization"))) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Principal caller, context_.tokens->Check(request.Header("authorization")));
  return CheckDoor(caller, match.route->id);
}

Status Router::Admit(const Route& route, Call& call) {
  const HttpRequest& request = call.request;
  RETURN_IF_ERROR(CheckOrigin(request, context_.loopback_only));
  if (route.access == Route::Access::kOpen) return TakeTurn(context_.limiter, request.peer);
  auto caller = context_.tokens->Check(request.Header("authorization"));
  if (!caller.ok()) RETURN_IF_ERROR(TakeTurn(context_.limiter, request.peer));
  RETURN_IF_ERROR(caller.status());
  call.principal = *std::move(caller);
  call.principal.door = "http";
  RETURN_IF_ERROR(TakeTurn(context_.limiter, CallerOf(call.principal, request)));
  RETURN_IF_ERROR(CheckDoor(call.principal, route.id));
  call.client = Guard(*context_.client, call.principal, context_.rights);
  return absl::OkStatus();
}

// What the table of rights says, before the body is looked at.
Status Router::CheckCaller(const Route& route, const Call& call) const {
  if (route.access == Route::Access::kOpen) return absl::OkStatus();
  RETURN_IF_ERROR(CheckRight(call.principal, route.id, call.Text("namespace")));
  if (call.principal.role != Principal::Role::kTrial) return absl::OkStatus();
  return context_.client->CheckToken(call.Trial(), call.principal.token);
}

// Whose call it is, the service behind it asks.
StatusOr<HttpReply> Router::AnswerCall(const HttpRequest& request) const {
  RETURN_IF_ERROR(CheckOrigin(request, context_.loopback_only));
  RETURN_IF_ERROR(TakeTurn(context_.limiter, request.peer));
  return context_.grpc_web->Answer(request);
}

StatusOr<HttpReply> Router::Answer(const HttpRequest& request, const Route*& route) {
  if (IsCall(request)) return AnswerCall(request);
  ASSIGN_OR_RETURN(const HttpTarget target, ParseTarget(request.target));
  std::string allow;
  auto match = FindRoute(request.method, target, &allow);
  if (!match.ok()) {
    if (allow.empty()) return match.status();
    if (request.method == "OPTIONS") return OptionsReply(allow);
    HttpReply reply = ErrorReply(match.status());
    reply.headers.emplace_back("Allow", allow);
    return reply;
  }
  route = match->route;
  Call call{.request = request, .context = context_};
  RETURN_IF_ERROR(Admit(*route, call));
  RETURN_IF_ERROR(TakeParameters(target, *match));
  call.parameters = std::move(match->parameters);
  RETURN_IF_ERROR(CheckCaller(*route, call));
  RETURN_IF_ERROR(CheckBody(*route, request));
  return route->handle(call);
}

HttpReply Router::Handle(const HttpRequest& request) {
  const absl::Duration began = context_.clock->Monotonic();
  const Route* route = nullptr;
  HttpReply reply;
  try {
    auto answer = Answer(request, route);
    reply = answer.ok() ? std::move(*answer) : ErrorReply(answer.status());
  } catch (const std::exception& error) {  // a library's, at its edge: memory has run out
    Log(LogLevel::kError, "a request failed", {{"target", request.target}, {"why", error.what()}});
    reply =
        ErrorReply(absl::InternalError("the server has failed at this request; its log says "
                                       "why"));
  }
  if (context_.metrics != nullptr) {
    context_.metrics->NoteHttp({.method = route == nullptr ? "" : route->method,
                                .route = route == nullptr ? "" : route->path,
                                .status = reply.status,
                                .took = context_.clock->Monotonic() - began});
  }
  return reply;
}

}  // namespace shirabe::service
