// The frames of gRPC-Web: a byte that says what it is, four for its length, and so many of content.
// Written by the HTTP server, read by the plugin of kubectl. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace shirabe {

// Of bodies and of the two ends' Content-Type.
inline constexpr char kGrpcWebType[] = "application/grpc-web+proto";

struct GrpcWebBody {
  std::vector<std::string> messages;
  Status end;             // what the last frame says of the call
  bool complete = false;  // there was a last frame
};

std::string MessageFrame(const std::string& message);
std::string EndFrame(const Status& status);
// kInvalidArgument for what is cut off or is nothing of the kind.
StatusOr<GrpcWebBody> ParseFrames(const std::string& body);

}  // namespace shirabe
