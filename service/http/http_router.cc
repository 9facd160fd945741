#include "service/http/http_router.h"

#include <exception>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/log.h"
#include "base/quota.h"
#include "base/sha256.h"
#include "service/common/auth.h"
#include "service/common/metrics.h"
#include "service/http/grpc_web.h"
#include "service/http/http_match.h"
#include "service/http/http_message.h"

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
  if (principal.role == Principal::Role::kPerson) return "person " + principal.name;
  return HexSha256(authorization);
}

Status TakeTurn(RateLimiter* limiter, const std::string& caller) {
  if (limiter == nullptr) return absl::OkStatus();
  return TooMany(limiter->Take(caller));
}

HttpReply Failure(const std::string& target, const std::exception& error) {
  Log(LogLevel::kError, "a request failed", {{"target", target}, {"why", error.what()}});
  return ErrorReply(absl::InternalError("the server has failed at this request; its log says why"));
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

Reception Router::Receive(const HttpRequest& head) const {
  Reception reception{.caller = head.peer};
  if (IsCall(head)) {
    ReceiveCall(head, reception);
    return reception;
  }
  const auto target = ParseTarget(head.target);
  std::string allow;
  const auto match = target.ok() ? FindRoute(head.method, *target, &allow) : target.status();
  if (!match.ok()) {
    reception.refusal = match.status();
    reception.no_route = true;
    return reception;
  }
  const Route& route = *match->route;
  reception.at_once = route.at_once;
  reception.slow = route.slow;
  reception.takes_body = route.request != nullptr;
  if (route.access == Route::Access::kOpen) return reception;
  const auto caller = ReceiveToken(head, head.Header("authorization"), reception);
  if (caller && reception.refusal.ok()) reception.refusal = CheckDoor(*caller, route.id);
  return reception;
}

void Router::ReceiveCall(const HttpRequest& head, Reception& reception) const {
  reception.slow = true;
  reception.takes_body = true;
  const auto caller = ReceiveToken(head, GrpcWeb::AuthorizationOf(head), reception);
  // A trial's token is proved by what the message says: nothing of it has been read.
  if (caller && caller->role == Principal::Role::kTrial) reception.refusal = caller->MayUse("");
}

// Who calls, where that is known without asking anybody.
std::optional<Principal> Router::ReceiveToken(const HttpRequest& head,
                                              const std::string& authorization,
                                              Reception& reception) const {
  reception.refusal = CheckOrigin(head, context_.loopback_only);
  reception.must_ask = context_.tokens->MustAsk(authorization);
  reception.must_prove = reception.must_ask;
  if (!reception.refusal.ok() || reception.must_prove) return std::nullopt;
  auto principal = context_.tokens->Check(authorization, head.peer);
  reception.refusal = principal.status();
  if (!principal.ok()) return std::nullopt;
  reception.must_prove = principal->role == Principal::Role::kTrial;
  reception.known = !reception.must_prove;
  if (reception.known) reception.caller = CallerOf(*principal, authorization, head.peer);
  return *std::move(principal);
}

StatusOr<std::string> Router::Prove(const HttpRequest& head) const {
  const std::string authorization =
      IsCall(head) ? GrpcWeb::AuthorizationOf(head) : head.Header("authorization");
  ASSIGN_OR_RETURN(const Principal caller, context_.tokens->Check(authorization, head.peer));
  const std::string id = CallerOf(caller, authorization, head.peer);
  if (IsCall(head)) return id;
  ASSIGN_OR_RETURN(const HttpTarget target, ParseTarget(head.target));
  std::string allow;
  ASSIGN_OR_RETURN(Match match, FindRoute(head.method, target, &allow));
  RETURN_IF_ERROR(CheckDoor(caller, match.route->id));
  if (caller.role != Principal::Role::kTrial) return id;
  RETURN_IF_ERROR(TakeParameters(target, match));
  const Call call{.request = head, .context = context_, .parameters = std::move(match.parameters)};
  RETURN_IF_ERROR(context_.client->CheckToken(call.Trial(), caller.token));
  return id;
}

Status Router::Admit(const Route& route, Call& call) {
  const HttpRequest& request = call.request;
  RETURN_IF_ERROR(CheckOrigin(request, context_.loopback_only));
  if (route.at_once) return absl::OkStatus();
  if (route.access == Route::Access::kOpen) return TakeTurn(context_.limiter, request.peer);
  auto caller = context_.tokens->Check(request.Header("authorization"), request.peer);
  if (!caller.ok()) RETURN_IF_ERROR(TakeTurn(context_.limiter, request.peer));
  RETURN_IF_ERROR(caller.status());
  call.principal = *std::move(caller);
  call.principal.door = "http";
  call.caller = CallerOf(call.principal, request.Header("authorization"), request.peer);
  RETURN_IF_ERROR(TakeTurn(context_.limiter, call.caller));
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
    reply = Failure(request.target, error);
  }
  if (reply.pending == nullptr) {
    Note(route, reply, began);
  } else {
    reply.pending->route = route;
    reply.pending->began = began;
  }
  return reply;
}

std::optional<HttpReply> Router::Look(PendingReply& pending, bool last) {
  HttpReply reply;
  try {
    auto answer = pending.Look(last);
    if (!answer) return std::nullopt;
    reply = answer->ok() ? std::move(**answer) : ErrorReply(answer->status());
  } catch (const std::exception& error) {  // as above
    reply = Failure(pending.route == nullptr ? "a call" : pending.route->path, error);
  }
  Note(pending.route, reply, pending.began);
  return reply;
}

HttpReply Router::Refuse(const HttpRequest& request, const Status& problem) {
  const auto target = ParseTarget(request.target);
  std::string allow;
  const auto match = target.ok() ? FindRoute(request.method, *target, &allow) : target.status();
  HttpReply reply = ErrorReply(problem);
  Note(match.ok() ? match->route : nullptr, reply, context_.clock->Monotonic());
  return reply;
}

void Router::Note(const Route* route, const HttpReply& reply, absl::Duration began) const {
  if (context_.metrics == nullptr) return;
  context_.metrics->NoteHttp({.method = route == nullptr ? "" : route->method,
                              .route = route == nullptr ? "" : route->path,
                              .status = reply.status,
                              .took = context_.clock->Monotonic() - began});
}

}  // namespace shirabe::service
