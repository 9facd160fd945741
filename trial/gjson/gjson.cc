#include "trial/gjson/gjson.h"

#include <cmath>

#include "base/text/number.h"
#include "trial/gjson/gjson_path.h"

namespace shirabe::trial {
namespace {

using gjson::Path;
using gjson::Query;
using gjson::Step;
using Result = std::optional<Json>;

// The part of a path that is still to be followed.
struct Rest {
  const Path& path;
  size_t at = 0;
  bool done() const { return at >= path.size(); }
  const Step& step() const { return path[at]; }
  Rest Next() const { return {path, at + 1}; }
};

Result Follow(const Json& value, const Rest& rest);

Result FollowAll(const Json& value, const Path& path) { return Follow(value, {path, 0}); }

// ---- queries ------------------------------------------------------------------------------------

template <class T>
bool Compare(const T& left, const std::string& op, const T& right) {
  if (op == "==") return left == right;
  if (op == "!=") return left != right;
  if (op == "<") return left < right;
  if (op == "<=") return left <= right;
  if (op == ">") return left > right;
  return op == ">=" && left >= right;
}

bool CompareText(const std::string& text, const Query& query) {
  if (query.op == "%") return gjson::Like(text, query.value);
  if (query.op == "!%") return !gjson::Like(text, query.value);
  return Compare(text, query.op, query.value);
}

// A truth value stands after false and before nothing else; other words are simply unequal.
bool CompareTruth(bool truth, const Query& query) {
  if (query.op == "!=") return query.value != (truth ? "true" : "false");
  if (query.value != "true" && query.value != "false") return false;
  return Compare(truth, query.op, query.value == "true");
}

bool Matches(const Json& item, const Query& query) {
  const Result found = query.path.empty() ? Result(item) : FollowAll(item, query.path);
  if (!found) return false;
  if (query.op.empty()) return true;
  if (found->is_string()) return CompareText(found->get_ref<const std::string&>(), query);
  if (found->is_boolean()) return CompareTruth(found->get<bool>(), query);
  if (!found->is_number()) return false;
  return Compare(found->get<double>(), query.op, ParseNumber(query.value).value_or(0));
}

// ---- steps --------------------------------------------------------------------------------------

// Follows the steps up to the next pipe for each item, and those after it for the list of results.
Result ForEach(const Json& items, const Rest& rest) {
  size_t end = rest.at;
  while (end < rest.path.size() && !rest.path[end].piped) ++end;
  const Path each(rest.path.begin() + static_cast<std::ptrdiff_t>(rest.at),
                  rest.path.begin() + static_cast<std::ptrdiff_t>(end));
  Json results = Json::array();
  for (const Json& item : items) {
    if (Result result = FollowAll(item, each)) results.push_back(*std::move(result));
  }
  return Follow(results, {rest.path, end});
}

Result FollowEach(const Json& value, const Rest& rest) {
  if (!value.is_array()) return std::nullopt;
  const Rest next = rest.Next();
  if (next.done() || next.step().piped) return Follow(Json(value.size()), next);
  return ForEach(value, next);
}

Result FollowFirst(const Json& value, const Rest& rest) {
  for (const Json& item : Items(value)) {
    if (Matches(item, rest.step().query)) return Follow(item, rest.Next());
  }
  return std::nullopt;
}

Result FollowMatches(const Json& value, const Rest& rest) {
  if (!value.is_array()) return std::nullopt;
  Json matches = Json::array();
  for (const Json& item : value) {
    if (Matches(item, rest.step().query)) matches.push_back(item);
  }
  return ForEach(matches, rest.Next());
}

Result FollowList(const Json& value, const Rest& rest) {
  Json results = Json::array();
  for (const Path& path : rest.step().paths) {
    if (Result result = FollowAll(value, path)) results.push_back(*std::move(result));
  }
  return Follow(results, rest.Next());
}

Result FollowName(const Json& value, const Rest& rest) {
  const Step& step = rest.step();
  if (value.is_array()) {
    if (!step.index || *step.index >= value.size()) return std::nullopt;
    return Follow(value[*step.index], rest.Next());
  }
  if (!value.is_object()) return std::nullopt;
  if (!step.wildcard) {
    const auto found = value.find(step.name);
    return found == value.end() ? std::nullopt : Follow(*found, rest.Next());
  }
  for (const auto& [key, field] : value.items()) {
    if (gjson::Like(key, step.name)) return Follow(field, rest.Next());
  }
  return std::nullopt;
}

Result Follow(const Json& value, const Rest& rest) {
  if (rest.done()) return value;
  switch (rest.step().kind) {
    case Step::Kind::kName: return FollowName(value, rest);
    case Step::Kind::kEach: return FollowEach(value, rest);
    case Step::Kind::kFirst: return FollowFirst(value, rest);
    case Step::Kind::kMatches: return FollowMatches(value, rest);
    case Step::Kind::kList: return FollowList(value, rest);
    case Step::Kind::kThis: return Follow(value, rest.Next());
  }
  return std::nullopt;
}

}  // namespace

Status ValidateGjson(const std::string& path) { return gjson::Parse(path).status(); }

StatusOr<Json> SelectGjson(const std::string& path, const Json& object) {
  ASSIGN_OR_RETURN(const Path parsed, gjson::Parse(path));
  return FollowAll(object, parsed).value_or(nullptr);
}

StatusOr<bool> MatchesGjson(const std::string& path, const Json& object) {
  ASSIGN_OR_RETURN(const Json result, SelectGjson(path, object));
  return !result.is_null() && !(result.is_array() && result.empty());
}

}  // namespace shirabe::trial
