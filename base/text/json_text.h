// The one way from text to JSON. A parser by itself takes any depth, and code that copies, prints
// or frees such a tree later overflows the stack; objects that keep their order are searched from
// the front, so that one of a million keys takes minutes to build. So the text is looked over
// first, in one pass without recursion or memory. Used by all code that reads JSON; pure functions,
// any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"
#include "google/protobuf/message.h"

namespace shirabe {

struct JsonLimits {
  size_t bytes = 64 << 20;
  int levels = 64;             // of lists and objects in one another, as in YAML
  int64_t values = 5'000'000;  // in all
  int64_t keys = 100'000;      // of one object
};

// Of what a caller sends as a request: as much as YAML may hold.
inline constexpr JsonLimits kRequestJson{
    .bytes = 4 << 20, .levels = 64, .values = 100'000, .keys = 2'000};
// Of the objects of an API server, which takes 10,000 levels: deeper values are left out, see
// below.
inline constexpr int kMaxServerLevels = 200;

// kInvalidArgument, with the limit, if the text is beyond one. Whether it is JSON is not looked at.
Status CheckJsonLimits(std::string_view text, const JsonLimits& limits = {});

// The levels alone.
Status CheckJsonLevels(std::string_view text, int levels);

// Of what follows there is one for nlohmann::json and one for its ordered_json, compiled here once:
// the library's parser and writer are 60 kB of code wherever they are made.

// kInvalidArgument if the text is not JSON, or beyond the limits.
template <class Json = nlohmann::json>
StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});

// The same where the reason does not matter: what cannot be read is discarded (is_discarded()).
template <class Json = nlohmann::json>
Json ReadJsonOrDiscarded(std::string_view text, const JsonLimits& limits = {});

// What an API server answers: it holds objects of all users, and one that is deep must not make all
// of them unreadable. What stands deeper than kMaxServerLevels is left out; the reader of such an
// object refuses it all the same. Discarded if it is not JSON.
template <class Json = nlohmann::json>
Json ParseServerJson(std::string_view text);

// On one line, or indented by that many spaces. Bytes that are not UTF-8 are replaced.
std::string JsonText(const nlohmann::json& json, int indent = -1);
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);
// The text as a string of JSON, with its quotes.
std::string JsonQuoted(const std::string& text);

// Messages as JSON, where another program reads or writes it: the sidecar's files and environment.
// Protobuf's own functions take any depth, and end in an error, not in a crash, where a message
// holds what JSON has no word for. Pure functions, any thread.

// kInternal if it has no JSON: a time out of range, a value without a kind.
StatusOr<std::string> MessageToJson(const google::protobuf::Message& message);

// kInvalidArgument if the text is not such a message. Fields of a newer version are passed over.
Status MessageFromJson(const std::string& text, google::protobuf::Message& message,
                       const JsonLimits& limits = {});

}  // namespace shirabe
