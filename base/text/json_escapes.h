// What JSON writes as two escapes and YAML does not know. For yaml_tree.cc, which reads JSON as the
// YAML that it nearly is; pure function, any thread.
#pragma once

#include <string>
#include <string_view>

namespace shirabe {

// The text with each character that JSON has in two halves, "\ud83d\ude00", as itself. Any other
// text than JSON stays as it is: in YAML these may be letters of a script.
std::string JoinEscapedPairs(std::string_view text);

}  // namespace shirabe
