// Text from other people's programs, made fit to be stored in a record and shown on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace shirabe {

// What is no UTF-8 becomes '?', and control characters other than newline and tab become spaces:
// records hold UTF-8 only, and a log must not steer the terminal of its reader.
std::string Printable(std::string_view text);

// A text as messages show it: in double quotes, as it is.
std::string Quoted(std::string_view text);

}  // namespace shirabe
