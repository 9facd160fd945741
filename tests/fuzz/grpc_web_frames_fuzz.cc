// Bodies of gRPC-Web, as anybody may send them to the HTTP door: refused or read, and what was read
// is written as the same again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/text/grpc_web_frames.h"

namespace shirabe {
namespace {

void Check(const std::string& text) {
  const auto body = ParseFrames(text);
  if (!body.ok()) return;
  std::string written;
  for (const std::string& message : body->messages) written += MessageFrame(message);
  if (body->complete) written += EndFrame(body->end);
  const auto again = ParseFrames(written);
  CHECK(again.ok());
  CHECK(again->messages == body->messages && again->complete == body->complete);
  CHECK(again->end.code() == body->end.code());
}

}  // namespace
}  // namespace shirabe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shirabe::Check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
