// A path in GJSON's syntax, taken apart. Used by gjson.cc alone. Pure functions.
//   path   = step { ("." | "|") step }
//   step   = name | "#" | "#(" query ")" | "#(" query ")#" | "[" path { "," path } "]" | "@this"
//   query  = [path] [op value]        op: == = != < <= > >= % !%
//   value  = "text", as in JSON, or anything up to ")"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shirabe::trial::gjson {

struct Step;
using Path = std::vector<Step>;

struct Query {
  Path path;       // none: the item itself
  std::string op;  // "": it exists; "=" is read as "=="
  std::string value;
};

struct Step {
  enum class Kind { kName, kEach, kFirst, kMatches, kList, kThis } kind = Kind::kName;
  bool piped = false;  // stands after "|": applies to the whole result before it
  std::string name;    // without escapes; with them, as a pattern, where `wildcard`
  bool wildcard = false;
  std::optional<size_t> index;  // what the name means for a list
  Query query;
  std::vector<Path> paths;
};

StatusOr<Path> Parse(std::string_view text);

// Whether the whole text fits the pattern: * is any text, ? any byte, \ takes the next as it is.
bool Like(std::string_view text, std::string_view pattern);

}  // namespace shirabe::trial::gjson
