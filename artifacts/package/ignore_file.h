// .shirabeignore: what of a folder is not packed. One pattern a line, as .gitignore has them: '*',
// '?' and '[…]' do not match '/'; a pattern with a '/' in it, but for the last character, begins at
// the folder itself, others hold at any depth; a last '/' means folders only. '#' begins a comment.
// Lines with '!' and with '**' are refused. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace shirabe::artifacts {

struct IgnorePattern {
  std::string glob;
  bool anchored = false;  // else of a name, at any depth
  bool folders_only = false;
};

inline constexpr char kIgnoreFile[] = ".shirabeignore";

// kInvalidArgument, with the number of the line.
StatusOr<std::vector<IgnorePattern>> ReadIgnoreFile(const std::string& text);

// Of a path below the folder. What lies in a folder that is ignored need not be asked about.
bool IsIgnored(const std::vector<IgnorePattern>& patterns, const std::string& path, bool folder);

}  // namespace shirabe::artifacts
