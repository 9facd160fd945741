// The known word that a mistyped one was probably meant to be, for error messages: fields, enum
// values, algorithm names, settings, subcommands. A pure function; any thread may call it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shirabe {

// The candidate that is fewest edits away (insert, delete, replace, swap two neighbours; case does
// not count), if at most a third of its letters differ. Of equals, the first. nullopt if none is
// that near: a wrong guess is worse than none.
std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace shirabe
