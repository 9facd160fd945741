// The calls of the gRPC service over plain HTTP/1.1, as gRPC-Web frames them: for callers who reach
// this server only through something that speaks no HTTP/2 to it, such as the API server's proxy of
// a Service, over which kubectl-shirabe comes. A request is
//   POST /shirabe.v1.Shirabe/METHOD   content-type: application/grpc-web+proto
// with one message as its body, and a reply is a frame for each message and a last one that says
// how the call ended. Since such a proxy keeps the Authorization header for itself, a caller may
// show its token in X-Shirabe-Authorization. Who calls and what they may do is asked where it is
// for every call: in the service behind the channel. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "service/http/http_message.h"

namespace grpc {
class ByteBuffer;
class Channel;
}  // namespace grpc

namespace shirabe::service {

class GrpcWeb {
 public:
  explicit GrpcWeb(std::shared_ptr<grpc::Channel> channel);  // shared: gRPC's own

  // Whether it is addressed to this.
  static bool IsFor(const HttpRequest& request);
  // What the caller shows, as the value of an Authorization header.
  static const std::string& AuthorizationOf(const HttpRequest& request);
  // Waits a moment for the first message; then the reply is pending. kInvalidArgument for what is
  // no such request; what the call itself says is in the reply.
  StatusOr<HttpReply> Answer(const HttpRequest& request) const;

 private:
  const std::shared_ptr<grpc::Channel> channel_;  // shared: gRPC's own
};

// All that it holds, in one piece.
std::string BytesOf(const grpc::ByteBuffer& buffer);

}  // namespace shirabe::service
