// What must hold of every protobuf message that comes from outside, whatever its type: proto3 takes
// any number for an enum, free-form values in any shape, and times that no calendar has. Called
// once at each endpoint (gRPC and gRPC-Web, Katib's services, the sidecar's), and by the store on
// what it reads, which a newer version may have written. Pure functions, any thread; the work is
// linear in the size of the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "google/protobuf/message.h"

namespace shirabe {

// Of lists and mappings in one another in free-form values (google.protobuf.Struct, Value): what
// protobuf, which takes 100 messages in one another, can always read again, wherever it stands.
inline constexpr int kMaxFreeLevels = 30;
// Of a key of a mapping, in bytes.
inline constexpr size_t kMaxKeyBytes = 1024;

struct MessageLimits {
  int64_t items = 1'000'000;  // of all lists and mappings together
  bool allow_nul = false;     // whether text may hold the character NUL
};

// Where a message is wrong, and how: "spec.parameters[0].parameterType", "7 is no value of …".
struct MessageProblem {
  std::string path;
  std::string message;
};

// The first of: an enum with a value that this version does not know; text with NUL; a free-form
// value that is not finite, has no kind, or is too deep; a key that is too long; a time or duration
// out of range; too many items. nullopt if there is none.
std::optional<MessageProblem> FindProblem(const google::protobuf::Message& message,
                                          const MessageLimits& limits = {});

// The same as a status: kInvalidArgument, beginning with the path.
Status CheckMessage(const google::protobuf::Message& message, const MessageLimits& limits = {});

// The enums alone, for records of the store: kUnimplemented, since a newer version wrote them. It
// looks only at fields that hold an enum somewhere below them.
Status CheckEnums(const google::protobuf::Message& message);

// What a message may become in memory, told before it is taken apart: two bytes on the wire can be
// an object of hundreds.
inline constexpr int64_t kMaxWireObjects = 400'000;

// Counts the messages, the texts in lists, and the fields that `type` does not have, which protobuf
// keeps too, in the encoded message. kResourceExhausted beyond kMaxWireObjects.
// What cannot be read is left for the parser to refuse. Linear in the bytes; nothing is allocated.
Status CheckWire(const google::protobuf::Descriptor& type, std::string_view bytes);

}  // namespace shirabe
