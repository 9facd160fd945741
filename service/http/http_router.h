// From a request to its reply: finds the route, checks who calls, how often, and what with, and
// calls the handler. Called by the server in its workers, and by tests without a server.
// Thread-safe; never throws.
#pragma once

#include <optional>
#include <string>

#include "service/http/route_table.h"

namespace shirabe::service {

// What the head of a request shows, without asking the cluster.
struct RequestClass {
  Status refusal = {};             // not OK: nothing more of it is read
  bool no_route = false;           // that is why: Handle says what there is instead
  bool known = false;              // shows a token that the server knows
  bool must_authenticate = false;  // shows one that must be asked about: see Authenticate
  bool must_ask = false;           // and not the store, but another server
  bool at_once = false;            // is answered without waiting for anything
  bool when_full = false;          // and also where there are too many connections
  bool slow = false;  // may take long, so that it should not hold up those who do not wait
  bool takes_body = false;
  std::string caller = {};  // who has quotas and takes turns: a token that is known, or an address
};

class Router {
 public:
  explicit Router(HttpContext context) : context_(context) {}

  // Quick, in any thread.
  RequestClass Classify(const HttpRequest& head) const;
  // Whose token it is, as RequestClass::caller, which may mean to ask the store or another server.
  // Handle asks again.
  StatusOr<std::string> Authenticate(const HttpRequest& head) const;
  HttpReply Handle(const HttpRequest& request);
  // What a pending reply has come to; nothing if it waits on.
  std::optional<HttpReply> TryAnswer(PendingReply& pending, bool last);
  // The reply to one that is not handled.
  HttpReply Refuse(const HttpRequest& request, const Status& problem);

 private:
  bool IsCall(const HttpRequest& request) const;                    // of gRPC
  StatusOr<HttpTarget> TargetOf(const HttpRequest& request) const;  // without the base path
  void ClassifyGrpcWeb(const HttpRequest& head, RequestClass& request_class) const;
  std::optional<Principal> ClassifyToken(const HttpRequest& head, const std::string& authorization,
                                         RequestClass& request_class) const;
  StatusOr<HttpReply> AnswerCall(const HttpRequest& request) const;
  StatusOr<HttpReply> Answer(const HttpRequest& request, const Route*& route);
  Status Admit(const Route& route, Call& call);
  Status CheckCaller(const Route& route, const Call& call) const;
  void RecordCall(const Route* route, const HttpReply& reply, absl::Duration began) const;

  const HttpContext context_;
};

}  // namespace shirabe::service
