// What the verbs' command lines have in common: the flags of all of them and of those that show
// records, names as people type them, and the GPUs of --gpus. Used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "cmd/options.h"
#include "proto/shirabe/v1/api.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::cmd {

// Of every verb.
struct Globals {
  std::string db;
  std::string server;
  std::string context;
  std::string token_file;
  std::string ca;
  std::string ns;
  std::string stores;         // of the verbs with --stores
  bool knows_stores = false;  // it is one of these: without a file there are none
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
  absl::Duration retry_period = absl::Minutes(1);  // no flag: of RemoteOptions
};
void AddGlobals(Options& options, Globals* globals);
// --stores, of verbs that run trials on this machine, or read what they have left elsewhere.
void AddStores(Options& options, Globals* globals);

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

// Parses, then applies what is global. True if --help, or what asks for the manual or the names of
// flags, has been answered.
StatusOr<bool> ParseAll(Options& options, const Globals& globals,
                        const std::vector<std::string>& arguments);

// "digits", or "exp/digits" as `-o name` prints it. kInvalidArgument for what cannot be a name.
StatusOr<ExperimentKey> ExperimentArgument(const std::string& text, const std::string& ns);
// Of "schedule/nightly", as `-o name` prints it; nullopt for what names no schedule, and
// kInvalidArgument for what cannot be the name of one.
StatusOr<std::optional<v1::ExperimentRef>> ScheduleArgument(const std::string& text,
                                                            const std::string& ns);
v1::ExperimentRef ScheduleRef(const std::string& name, const std::string& ns);
// "digits-7", "digits/7", or "trial/digits-7".
StatusOr<TrialKey> TrialArgument(const std::string& text, const std::string& ns);

// The GPUs that verbs which run trials on this machine may give them: the list of --gpus, else all
// there are; none for an experiment (null = any) that asks for none.
std::vector<std::string> ChooseDevices(const std::string& gpus, const v1::Experiment* experiment);

// The manual, in the language of groff's man macros: one page for the program with a section for
// each verb, made from what is registered and from what --help shows, so that nothing is written
// twice. The pages of the verbs come from the verbs themselves: each, called with kManOption alone,
// prints its section (ParseAll). Functions without state; used by the main thread.

inline constexpr char kManOption[] = "--man";
// Likewise, for completion, with a text behind the "=": prints the names of the verb's flags that
// begin with it.
inline constexpr char kFlagNamesOption[] = "--flag-names=";

// Text as groff prints it, whatever is in it.
std::string ManText(const std::string& text);

// One verb: usage, what it does, and its options but those that are in `common` as well.
std::string ManSection(const Options& options, const Options& common);

// The options themselves.
std::string ManOptions(const Options& options);

}  // namespace shirabe::cmd
