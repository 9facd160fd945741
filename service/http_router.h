// From a request to its reply: finds the route, checks who calls, how often, and what with, and
// calls the handler. Called by the server in its workers, and by tests without a server.
// Thread-safe; never throws.
#pragma once

#include "service/routes.h"

namespace shirabe::service {

class Router {
 public:
  explicit Router(HttpContext context) : context_(context) {}

  HttpReply Handle(const HttpRequest& request);
  // Whether a request, without its body yet, is for nothing, or from nobody who is known: its body
  // need not be read then. OK says nothing about the rest.
  Status CheckHead(const HttpRequest& request) const;
  // Whether it may take long, so that it should not hold up those who do not wait.
  bool IsSlow(const HttpRequest& request) const;

 private:
  bool IsCall(const HttpRequest& request) const;  // of gRPC
  StatusOr<HttpReply> AnswerCall(const HttpRequest& request) const;
  StatusOr<HttpReply> Answer(const HttpRequest& request, const Route*& route);
  Status Admit(const Route& route, Call& call);
  Status CheckCaller(const Route& route, const Call& call) const;

  const HttpContext context_;
};

}  // namespace shirabe::service
