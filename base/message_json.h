// Messages as JSON, where somebody else reads or writes it: the sidecar's files and environment.
// Protobuf's own functions take any depth, and end in an error, not in a crash, where a message
// holds what JSON has no word for. Pure functions, any thread.
#pragma once

#include <string>

#include "base/json_text.h"
#include "base/status.h"
#include "google/protobuf/message.h"

namespace shirabe {

// kInternal if it has no JSON: a time out of range, a value without a kind.
StatusOr<std::string> MessageToJson(const google::protobuf::Message& message);

// kInvalidArgument if the text is not such a message. Fields of a newer version are passed over.
Status MessageFromJson(const std::string& text, google::protobuf::Message& message,
                       const JsonLimits& limits = {});

}  // namespace shirabe
