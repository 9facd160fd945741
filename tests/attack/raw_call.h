// A call of gRPC with bytes that no stub would send.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace shirabe::attack {

// `method` is "/PACKAGE.SERVICE/METHOD"; of a stream, the status of its end or its first message.
inline grpc::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel,  // shared: gRPC's
                                  grpc::ClientContext& context, const std::string& method,
                                  const std::string& bytes) {
  grpc::GenericStub stub(channel);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

}  // namespace shirabe::attack
