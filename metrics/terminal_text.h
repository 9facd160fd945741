// Bytes of a program's output as text: terminal codes taken out, letters told from decoration, and
// shortened for people. Used by the parsers here. Pure functions; any bytes are accepted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shirabe::metrics {

// `line` without ANSI escape sequences (colours, cursor movement, window titles). Returns `line`
// itself where there are none; else a view of `scratch`, which is overwritten.
std::string_view StripAnsi(std::string_view line, std::string& scratch);

// Whether the character that ends just before `at` is a letter, digit or underscore, of any script.
// False at the beginning of the line and for bytes that are not UTF-8.
bool WordBefore(std::string_view line, size_t at);

// How many bytes the letter, digit or underscore at `at` takes; 0 if there is none.
size_t WordAt(std::string_view line, size_t at);

// At most `max_bytes` of `text` as valid UTF-8 for a message: what is no printable text becomes
// \xNN, and what was cut off "…".
std::string Excerpt(std::string_view text, size_t max_bytes = 80);

}  // namespace shirabe::metrics
