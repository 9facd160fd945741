// The manual, in the language of groff's man macros: one page for the program with a section for
// each verb, made from what is registered and from what --help shows, so that nothing is written
// twice. The pages of the verbs come from the verbs themselves: each, called with kManOption alone,
// prints its section (ParseAll, session.h). Functions without state; used by the main thread.
#pragma once

#include <string>

#include "cmd/options.h"

namespace shirabe::cmd {

inline constexpr char kManOption[] = "--man";

// Text as groff prints it, whatever is in it.
std::string ManText(const std::string& text);

// One verb: usage, what it does, and its options but those that are in `common` as well.
std::string ManSection(const Options& options, const Options& common);

// The options themselves.
std::string ManOptions(const Options& options);

}  // namespace shirabe::cmd
