#include "base/message_json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"

namespace shirabe {

StatusOr<std::string> MessageToJson(const google::protobuf::Message& message) {
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &text);
  if (printed.ok()) return text;
  return absl::InternalError(
      absl::StrCat(message.GetTypeName(), " cannot be written as JSON: ", printed.ToString()));
}

Status MessageFromJson(const std::string& text, google::protobuf::Message& message,
                       const JsonLimits& limits) {
  RETURN_IF_ERROR(CheckJsonLimits(text, limits));
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &message, options);
  return parsed.ok() ? absl::OkStatus() : absl::InvalidArgumentError(parsed.ToString());
}

}  // namespace shirabe
