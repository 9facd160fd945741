// What the verbs' command lines have in common: the flags of all of them and of those that show
// records, and names as people type them. Used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "cmd/options.h"

namespace shirabe::cmd {

// Of every verb.
struct Globals {
  std::string db;
  std::string server;
  std::string context;
  std::string token_file;
  std::string ca;
  std::string ns;
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
};
void AddGlobals(Options& options, Globals* globals);

// Of verbs that show records.
struct ListFlags {
  bool all_namespaces = false;
  std::string output = "table";
  bool no_headers = false;
  std::string sort_by;
  std::string filter;
  std::optional<int64_t> limit;
  bool watch = false;
};
void AddOutput(Options& options, ListFlags* flags);
void AddListing(Options& options, ListFlags* flags);

// Parses, then applies what is global. True if --help has been answered.
StatusOr<bool> ParseAll(Options& options, const Globals& globals,
                        const std::vector<std::string>& arguments);

// "digits", or "exp/digits" as `-o name` prints it. kInvalidArgument for what cannot be a name.
StatusOr<ExperimentKey> ExperimentArgument(const std::string& text, const std::string& ns);
// "digits-7", "digits/7", or "trial/digits-7".
StatusOr<TrialKey> TrialArgument(const std::string& text, const std::string& ns);

}  // namespace shirabe::cmd
