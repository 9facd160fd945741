#include "base/text/json_text.h"

#include <google/protobuf/util/json_util.h>

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shirabe {
namespace {

Status Beyond(const std::string& what) { return absl::InvalidArgumentError(what); }

// Past the closing quote of the text that begins at `at`, or the end.
size_t SkipText(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

}  // namespace

Status CheckJsonLimits(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return Beyond(absl::StrCat("the JSON has ", text.size(), " bytes, and at most ", limits.bytes,
                               " are taken"));
  }
  std::vector<int64_t> counts;  // of the values of each list and object that is open
  int64_t values = 1;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = SkipText(text, at);
      continue;
    }
    ++at;
    if (c == '{' || c == '[') {
      if (static_cast<int>(counts.size()) >= limits.levels) {
        return Beyond(absl::StrCat("the JSON has more than ", limits.levels,
                                   " levels of lists and objects in one another"));
      }
      counts.push_back(c == '{' ? 1 : -limits.values);  // a list has no limit of its own
      ++values;
    } else if ((c == '}' || c == ']') && !counts.empty()) {
      counts.pop_back();
    } else if (c == ',') {
      if (!counts.empty() && ++counts.back() > limits.keys) {
        return Beyond(absl::StrCat("an object of the JSON has more than ", limits.keys, " keys"));
      }
      ++values;
    }
    if (values > limits.values) {
      return Beyond(absl::StrCat("the JSON has more than ", limits.values, " values"));
    }
  }
  return absl::OkStatus();
}

Status CheckJsonLevels(std::string_view text, int levels) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max() / 2;
  return CheckJsonLimits(text,
                         {.bytes = text.size(), .levels = levels, .values = kAny, .keys = kAny});
}

template <class Json>
StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits) {
  RETURN_IF_ERROR(CheckJsonLimits(text, limits));
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("it is not JSON");
  return json;
}

template <class Json>
Json ReadJsonOrDiscarded(std::string_view text, const JsonLimits& limits) {
  auto json = ParseJson<Json>(text, limits);
  return json.ok() ? *std::move(json) : Json(nlohmann::detail::value_t::discarded);
}

template <class Json>
Json ParseServerJson(std::string_view text) {
  const bool flat = CheckJsonLevels(text, kMaxServerLevels).ok();
  if (flat) return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const auto keep = [](int depth, typename Json::parse_event_t, Json&) {
    return depth < kMaxServerLevels;
  };
  return Json::parse(text.begin(), text.end(), keep, /*allow_exceptions=*/false);
}

template StatusOr<nlohmann::json> ParseJson(std::string_view, const JsonLimits&);
template StatusOr<nlohmann::ordered_json> ParseJson(std::string_view, const JsonLimits&);
template nlohmann::json ReadJsonOrDiscarded(std::string_view, const JsonLimits&);
template nlohmann::ordered_json ReadJsonOrDiscarded(std::string_view, const JsonLimits&);
template nlohmann::json ParseServerJson(std::string_view);

std::string JsonText(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonText(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string JsonQuoted(const std::string& text) { return JsonText(nlohmann::json(text)); }

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
