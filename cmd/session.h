// What the verbs have in common: their flags, the way to the client, and names as people type them.
// Used by the main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "client/local_client.h"
#include "cmd/options.h"
#include "cmd/server_contexts.h"
#include "view/record_json.h"
#include "view/record_rows.h"

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

// How to reach the server that is meant; none (server == "") where this machine's store is.
StatusOr<Access> FindAccessOf(const Globals& globals);

// A client, of a server or of this machine's store, and the namespace that names without one are
// in.
struct Session {
  std::unique_ptr<client::Client> client;
  std::string ns;
  bool ns_is_default = true;  // not named by the user: a file may
};
StatusOr<Session> OpenSession(const Globals& globals, bool read_only);

// For the verbs that run something here.
struct LocalSession {
  std::unique_ptr<client::LocalClient> client;
  client::StateLocation place;
};
StatusOr<client::StateLocation> StateLocationOf(const Globals& globals);
StatusOr<LocalSession> OpenLocal(const Globals& globals, bool read_only);

// The GPUs that trials here may be given: the list of --gpus, else all there are; none for an
// experiment (null = any) that asks for none.
std::vector<std::string> ChooseDevices(const std::string& gpus, const v1::Experiment* experiment);

// "digits", or "exp/digits" as `-o name` prints it. kInvalidArgument for what cannot be a name.
StatusOr<ExperimentKey> ExperimentArgument(const std::string& text, const std::string& ns);
// "digits-7", "digits/7", or "trial/digits-7".
StatusOr<TrialKey> TrialArgument(const std::string& text, const std::string& ns);

view::RowStyle StyleOf(const ListFlags& flags);

// Prints one object, or a List of them, as the flags want it: only for -o json and yaml.
void PrintTree(const ListFlags& flags, const view::Json& tree);
void PrintTrees(const ListFlags& flags, const std::vector<view::Json>& trees);
bool WantsTree(const ListFlags& flags);

}  // namespace shirabe::cmd
