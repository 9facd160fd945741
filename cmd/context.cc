#include "cmd/context.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process_id.h"
#include "cmd/terminal.h"

namespace shirabe::cmd {
namespace {

// Without a leading noun: exp/digits, trial/digits-7.
std::string WithoutNoun(const std::string& text, std::initializer_list<const char*> nouns) {
  for (const char* noun : nouns) {
    const std::string prefix = std::string(noun) + "/";
    if (absl::StartsWith(text, prefix)) return text.substr(prefix.size());
  }
  return text;
}

}  // namespace

void AddGlobals(Options& options, Globals* globals) {
  options.Text("--db", &globals->db, "ADDRESS",
               "the store: sqlite:PATH or memory: (default $SHIRABE_DB, else in $SHIRABE_HOME)");
  options.Text("-n,--namespace", &globals->ns, "NAME",
               "namespace (default $SHIRABE_NAMESPACE, else default)");
  options.Word("--color", &globals->color, {"auto", "always", "never"}, "colours on the terminal");
  options.Flag("-q,--quiet", &globals->quiet, "say nothing but data and errors");
  options.Flag("-v,--verbose", &globals->verbose, "say what is being done");
}

void AddOutput(Options& options, ListFlags* flags) {
  options.Word("-o,--output", &flags->output, {"table", "wide", "json", "yaml", "name"},
               "how to print");
  options.Flag("--no-headers", &flags->no_headers, "a table without its first line");
}

void AddListing(Options& options, ListFlags* flags) {
  AddOutput(options, flags);
  options.Flag("-A,--all-namespaces", &flags->all_namespaces, "experiments of all namespaces");
  options.Text("--sort-by", &flags->sort_by, "FIELD", "order by a field; ~FIELD for descending");
  options.Text("--filter", &flags->filter, "CONDITIONS",
               "only what meets all of them: 'state=Failed,param.lr<1e-3'");
  options.Number("--limit", &flags->limit, 0, "at most so many");
  options.Flag("-w,--watch", &flags->watch, "go on and print what changes");
}

StatusOr<bool> ParseAll(Options& options, const Globals& globals,
                        const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(const bool done, options.Parse(arguments));
  SetColor(globals.color);
  SetQuiet(globals.quiet);
  // What a person needs to know is said by the verbs; the log is for those who ask for it.
  SetLogLevel(globals.verbose ? LogLevel::kDebug : LogLevel::kError);
  return done;
}

StatusOr<client::Place> FindPlaceOf(const Globals& globals) {
  auto place = client::FindPlace({globals.db, globals.ns}, client::ProcessEnvironment());
  if (!place.ok()) return AsUsage(place.status());
  // What lives in memory is new every time, so its files must not meet those of the last time.
  if (absl::StartsWith(place->db, "memory:")) {
    const ProcessId process = ThisProcess();
    absl::StrAppend(&place->home, "/memory/", process.pid, "-", process.start);
  }
  return place;
}

StatusOr<Session> OpenSession(const Globals& globals, bool read_only) {
  ASSIGN_OR_RETURN(client::Place place, FindPlaceOf(globals));
  auto opened =
      client::LocalClient::Open({.place = place, .read_only = read_only, .clock = RealClock()});
  if (!opened.ok()) return AsUsage(opened.status());
  return Session{std::move(*opened), place.ns, place};
}

StatusOr<ExperimentKey> ExperimentArgument(const std::string& text, const std::string& ns) {
  const std::string name = WithoutNoun(text, {"exp", "experiment", "experiments"});
  if (const Status valid = ValidateExperimentName(name); !valid.ok()) return AsUsage(valid);
  return ExperimentKey{ns, name};
}

StatusOr<TrialKey> TrialArgument(const std::string& text, const std::string& ns) {
  const auto key = ParseTrialName(WithoutNoun(text, {"trial", "trials"}), ns);
  if (key) return *key;
  return UsageError("\"" + text + "\" names no trial: write EXPERIMENT/7 or EXPERIMENT-7");
}

client::RowStyle StyleOf(const ListFlags& flags) {
  return {.now = RealClock()->Now(),
          .wide = flags.output == "wide",
          .with_namespace = flags.all_namespaces};
}

bool WantsTree(const ListFlags& flags) { return flags.output == "json" || flags.output == "yaml"; }

void PrintTree(const ListFlags& flags, const client::Json& tree) {
  Out(flags.output == "json" ? client::PrintJson(tree) : client::PrintYaml(tree));
}

void PrintTrees(const ListFlags& flags, const std::vector<client::Json>& trees) {
  client::ListWriter writer(flags.output == "yaml");
  Out(writer.Begin());
  for (const client::Json& tree : trees) Out(writer.Item(tree));
  Out(writer.End());
}

}  // namespace shirabe::cmd
