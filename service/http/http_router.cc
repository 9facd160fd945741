#include "service/http/http_router.h"

#include <exception>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/log.h"
#include "base/rate_limits.h"
#include "base/sha256.h"
#include "service/common/authorization.h"
#include "service/common/server_metrics.h"
#include "service/http/etag.h"
#include "service/http/grpc_web.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"

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

// Who has turns and quotas: a person may have any number of tokens.
std::string CallerOf(const Principal& principal, const std::string& authorization,
                     const std::string& peer) {
  if (principal.role == Principal::Role::kTrial) return peer;
  if (principal.role == Principal::Role::kClusterUser) return "person " + principal.name;
  return HexSha256(authorization);
}

Status ChargeRateLimit(RateLimiter* limiter, const std::string& caller) {
  if (limiter == nullptr) return absl::OkStatus();
  return TooMany(limiter->Acquire(caller));
}

HttpReply Failure(const std::string& target, const std::exception& error) {
  Log(LogLevel::kError, "a request failed", {{"target", target}, {"why", error.what()}});
  return ErrorReply(absl::InternalError("the server has failed at this request; see its log"));
}

HttpReply OptionsReply(std::string allow) {
  HttpReply reply{.status = 204, .type = ""};
  reply.headers.emplace_back("Allow", std::move(allow));
  return reply;
}

}  // namespace

bool Router::IsCall(const HttpRequest& request) const {
  return context_.grpc_web != nullptr && GrpcWeb::IsFor(request);
}

StatusOr<HttpTarget> Router::TargetOf(const HttpRequest& request) const {
  const std::string& base = context_.base_path;
  if (base.empty() || !absl::StartsWith(request.target, base)) return ParseTarget(request.target);
  const std::string rest = request.target.substr(base.size());
  if (!rest.empty() && rest[0] != '/' && rest[0] != '?') return ParseTarget(request.target);
  return ParseTarget(rest.empty() || rest[0] == '?' ? "/" + rest : rest);
}

RequestClass Router::Classify(const HttpRequest& head) const {
  RequestClass request_class{.caller = head.peer};
  if (IsCall(head)) {
    ClassifyGrpcWeb(head, request_class);
    return request_class;
  }
  const auto target = TargetOf(head);
  std::string allow;
  const auto match = target.ok() ? FindRoute(head.method, *target, &allow) : target.status();
  if (!match.ok()) {
    request_class.refusal = match.status();
    request_class.no_route = true;
    return request_class;
  }
  const Route& route = *match->route;
  request_class.at_once = route.at_once;
  request_class.when_full = route.at_once || route.rights.audience() == v1::Rights::METRICS;
  request_class.slow = route.slow;
  request_class.takes_body = route.request != nullptr;
  if (route.open()) return request_class;
  const auto caller = ClassifyToken(head, head.Header("authorization"), request_class);
  if (caller && request_class.refusal.ok())
    request_class.refusal = CheckMethodAccess(*caller, route.rights);
  return request_class;
}

void Router::ClassifyGrpcWeb(const HttpRequest& head, RequestClass& request_class) const {
  request_class.slow = true;
  request_class.takes_body = true;
  const auto caller = ClassifyToken(head, GrpcWeb::AuthorizationOf(head), request_class);
  // A trial's token is proved by what the message says: nothing of it has been read.
  if (caller && caller->role == Principal::Role::kTrial)
    request_class.refusal = caller->CheckRead("");
}

// Who calls, where that is known without asking the cluster.
std::optional<Principal> Router::ClassifyToken(const HttpRequest& head,
                                               const std::string& authorization,
                                               RequestClass& request_class) const {
  request_class.refusal = CheckOrigin(head, context_.loopback_only);
  request_class.must_ask = context_.tokens->MustAsk(authorization);
  request_class.must_authenticate = request_class.must_ask;
  if (!request_class.refusal.ok() || request_class.must_authenticate) return std::nullopt;
  auto principal = context_.tokens->Check(authorization, head.peer);
  request_class.refusal = principal.status();
  if (!principal.ok()) return std::nullopt;
  request_class.must_authenticate = principal->role == Principal::Role::kTrial;
  request_class.known = !request_class.must_authenticate;
  if (request_class.known) request_class.caller = CallerOf(*principal, authorization, head.peer);
  return *std::move(principal);
}

StatusOr<std::string> Router::Authenticate(const HttpRequest& head) const {
  const std::string authorization =
      IsCall(head) ? GrpcWeb::AuthorizationOf(head) : head.Header("authorization");
  ASSIGN_OR_RETURN(const Principal caller, context_.tokens->Check(authorization, head.peer));
  const std::string id = CallerOf(caller, authorization, head.peer);
  if (IsCall(head)) return id;
  ASSIGN_OR_RETURN(const HttpTarget target, TargetOf(head));
  std::string allow;
  ASSIGN_OR_RETURN(Match match, FindRoute(head.method, target, &allow));
  RETURN_IF_ERROR(CheckMethodAccess(caller, match.route->rights));
  if (caller.role != Principal::Role::kTrial) return id;
  RETURN_IF_ERROR(BindParameters(target, match));
  const Call call{.request = head, .context = context_, .parameters = std::move(match.parameters)};
  RETURN_IF_ERROR(context_.client->CheckToken(call.Trial(), caller.token));
  return id;
}

Status Router::Admit(const Route& route, Call& call) {
  const HttpRequest& request = call.request;
  RETURN_IF_ERROR(CheckOrigin(request, context_.loopback_only));
  if (route.at_once) return absl::OkStatus();
  if (route.open()) return ChargeRateLimit(context_.limiter, request.peer);
  auto caller = context_.tokens->Check(request.Header("authorization"), request.peer);
  if (!caller.ok()) RETURN_IF_ERROR(ChargeRateLimit(context_.limiter, request.peer));
  RETURN_IF_ERROR(caller.status());
  call.principal = *std::move(caller);
  call.principal.listener = "http";
  call.caller = CallerOf(call.principal, request.Header("authorization"), request.peer);
  RETURN_IF_ERROR(ChargeRateLimit(context_.limiter, call.caller));
  RETURN_IF_ERROR(CheckMethodAccess(call.principal, route.rights));
  call.client = Guard(*context_.client, call.principal, context_.rights);
  return absl::OkStatus();
}

// What the table of rights says, before the body is looked at.
Status Router::CheckCaller(const Route& route, const Call& call) const {
  if (route.open()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckAccess(call.principal, route.rights, call.Text("namespace")));
  if (call.principal.role != Principal::Role::kTrial) return absl::OkStatus();
  return context_.client->CheckToken(call.Trial(), call.principal.token);
}

// Whose call it is, the service behind it asks.
StatusOr<HttpReply> Router::AnswerCall(const HttpRequest& request) const {
  RETURN_IF_ERROR(CheckOrigin(request, context_.loopback_only));
  RETURN_IF_ERROR(ChargeRateLimit(context_.limiter, request.peer));
  return context_.grpc_web->Answer(request);
}

StatusOr<HttpReply> Router::Answer(const HttpRequest& request, const Route*& route) {
  if (IsCall(request)) return AnswerCall(request);
  ASSIGN_OR_RETURN(const HttpTarget target, TargetOf(request));
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
  RETURN_IF_ERROR(BindParameters(target, *match));
  call.parameters = std::move(match->parameters);
  RETURN_IF_ERROR(CheckCaller(*route, call));
  RETURN_IF_ERROR(CheckBody(*route, request));
  ASSIGN_OR_RETURN(HttpReply reply, route->handle(call));
  if (route->method != "GET" || route->at_once) return reply;
  return Conditional(request, std::move(reply));
}

HttpReply Router::Handle(const HttpRequest& request) {
  const absl::Duration began = context_.clock->Monotonic();
  const Route* route = nullptr;
  HttpReply reply;
  try {
    auto answer = Answer(request, route);
    reply = answer.ok() ? std::move(*answer) : ErrorReply(answer.status());
  } catch (const std::exception& error) {  // a library's, at its edge: memory has run out
    reply = Failure(request.target, error);
  }
  if (reply.pending == nullptr) {
    RecordCall(route, reply, began);
  } else {
    reply.pending->set_origin({.route = route, .began = began});
  }
  return reply;
}

std::optional<HttpReply> Router::TryAnswer(PendingReply& pending, bool last) {
  const auto& [route, began] = pending.origin();
  HttpReply reply;
  try {
    auto answer = pending.TryAnswer(last);
    if (!answer) return std::nullopt;
    reply = answer->ok() ? std::move(**answer) : ErrorReply(answer->status());
  } catch (const std::exception& error) {  // as above
    reply = Failure(route == nullptr ? "a call" : route->path, error);
  }
  RecordCall(route, reply, began);
  return reply;
}

HttpReply Router::Refuse(const HttpRequest& request, const Status& problem) {
  const auto target = TargetOf(request);
  std::string allow;
  const auto match = target.ok() ? FindRoute(request.method, *target, &allow) : target.status();
  HttpReply reply = ErrorReply(problem);
  RecordCall(match.ok() ? match->route : nullptr, reply, context_.clock->Monotonic());
  return reply;
}

void Router::RecordCall(const Route* route, const HttpReply& reply, absl::Duration began) const {
  if (context_.metrics == nullptr) return;
  context_.metrics->RecordHttpCall({.method = route == nullptr ? "" : route->method,
                                    .route = route == nullptr ? "" : route->path,
                                    .status = reply.status,
                                    .took = context_.clock->Monotonic() - began});
}

}  // namespace shirabe::service
