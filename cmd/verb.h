// The verbs of the command line: one file each in cmd/verbs, which ends in the line that registers
// it,
//
//   SHIRABE_REGISTER(Verb, {.name = "export", …, .run = Export});
//
// and from which the list of verbs, its help and the shells' completions come. A verb gets the
// arguments after its name and answers with an exit code, or with the status that main turns into a
// message and a code. It runs once, in the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/registry.h"
#include "base/status.h"

namespace shirabe::cmd {

using Arguments = std::vector<std::string>;

// Headings of the list of verbs, in its order.
enum class VerbGroup { kRun, kSubmit, kRead, kAskAndTell, kServe, kTools, kHidden };

struct Verb {
  std::string name;
  VerbGroup group = VerbGroup::kTools;  // hidden: for programs, not listed
  std::string summary;                  // one line, without a full stop
  // What may stand as the last of `words`, the first of which is the verb; null = nothing. It never
  // fails: what cannot be read is not offered.
  std::vector<std::string> (*completes)(const Arguments& words) = nullptr;
  std::vector<std::string> outputs = {"table", "wide", "json", "yaml", "name"};  // of -o
  StatusOr<int> (*run)(const Arguments& arguments) = nullptr;
};

// Null if there is none of that name.
const Verb* FindVerb(const std::string& name);
// Those that are listed, by name.
std::vector<std::string> VerbNames();
// The groups that are listed, in order, and their headings.
std::vector<VerbGroup> ListedGroups();
std::string HeadingOf(VerbGroup group);
// The list of verbs under their headings, as --help prints it.
std::string VerbList();

// For `completes`: the names of experiments; of trials, as far as EXPERIMENT/; of the user's
// servers.
std::vector<std::string> CompleteExperiments(const Arguments& words);
std::vector<std::string> CompleteTrials(const Arguments& words);
std::vector<std::string> CompleteContexts(const Arguments& words);

}  // namespace shirabe::cmd
