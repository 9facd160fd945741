#include "cmd/session.h"

#include <grpc/support/log.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/address.h"
#include "base/certificate.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/process_id.h"
#include "client/remote_client.h"
#include "cmd/api_server_proxy.h"
#include "cmd/terminal.h"
#include "trial/local/gpu_pool.h"

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
               "the store: sqlite:PATH, postgres://USER@HOST/DATABASE or memory: "
               "(default $SHIRABE_DB, else in $SHIRABE_HOME)");
  options.Text(
      "--server", &globals->server, "HOST:PORT",
      "a server (shirabe serve); tls://HOST:PORT with TLS, kube://NAMESPACE/SERVICE through "
      "the cluster of the kubeconfig (default $SHIRABE_SERVER)");
  options.Text("--context", &globals->context, "NAME",
               "a server from the user's file (default $SHIRABE_CONTEXT, else the current one)");
  options.Text("--token-file", &globals->token_file, "FILE",
               "token for the server (default $SHIRABE_TOKEN_FILE, else token in $SHIRABE_HOME)");
  options.Text(
      "--ca", &globals->ca, "FILE",
      "certificate authorities of the server, PEM (default $SHIRABE_CA, else the system's)");
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

StatusOr<client::StateLocation> StateLocationOf(const Globals& globals) {
  auto place = client::FindStateLocation({globals.db, globals.ns}, client::ProcessEnvironment());
  if (!place.ok()) return AsUsage(place.status());
  // What lives in memory is new every time, so its files must not meet those of the last time.
  if (absl::StartsWith(place->db, "memory:")) {
    const ProcessId process = ThisProcess();
    absl::StrAppend(&place->home, "/memory/", process.pid, "-", process.start);
  }
  return place;
}

namespace {

// Named, else the one that a server of this user makes, which no other machine is given.
StatusOr<std::string> FindToken(const Access& access, const client::StateLocation& place) {
  const std::string& named = access.token_file;
  if (named.empty() && !IsLoopback(HostOf(access.server))) return "";
  const auto text = ReadFile(named.empty() ? place.home + "/token" : named, 1 << 20);
  if (named.empty() && !text.ok()) return "";
  RETURN_IF_ERROR(Prefix("--token-file", text.status()));
  // The last word of its first line: a file of one token, or a server's own.
  const std::string line = text->substr(0, text->find('\n'));
  return std::string(absl::StripAsciiWhitespace(line.substr(line.rfind(' ') + 1)));
}

// The text of a PEM file; "" where none is named.
StatusOr<std::string> ReadPem(const std::string& what, const std::string& path) {
  if (path.empty()) return "";
  auto text = ReadFile(path, 1 << 20);
  RETURN_IF_ERROR(Prefix(what, text.status()));
  return *std::move(text);
}

// What callers show a server that asks for it. Looked at here, where the files are known: a server
// only hangs up.
Status ReadPair(const Access& access, client::RemoteOptions& options) {
  if (access.certificate.empty() != access.key.empty()) {
    return UsageError(
        "a client certificate and its key go together: shirabe config set-context NAME "
        "--client-certificate FILE --client-key FILE, or $SHIRABE_CLIENT_CERTIFICATE and "
        "$SHIRABE_CLIENT_KEY");
  }
  ASSIGN_OR_RETURN(options.certificate, ReadPem("client certificate", access.certificate));
  ASSIGN_OR_RETURN(options.key, ReadPem("client key", access.key));
  if (options.certificate.empty()) return absl::OkStatus();
  return AsUsage(Prefix(access.certificate + " and " + access.key,
                        CheckPair({options.certificate, options.key}, RealClock()->Now())));
}

// gRPC writes to stderr by itself; what matters of it is in the error that we print.
void LogOfGrpc(gpr_log_func_args* line) {
  Log(LogLevel::kDebug, line->message, {{"file", line->file}, {"line", absl::StrCat(line->line)}});
}

StatusOr<std::unique_ptr<client::Client>> OpenRemote(Access access,
                                                     const client::StateLocation& place) {
  constexpr char kTls[] = "tls://";
  client::RemoteOptions options{.clock = RealClock()};
  options.tls =
      absl::StartsWith(access.server, kTls) || !access.ca.empty() || !access.certificate.empty();
  if (absl::StartsWith(access.server, kTls)) access.server.erase(0, sizeof kTls - 1);
  options.server = access.server;
  ASSIGN_OR_RETURN(options.ca, ReadPem("--ca", access.ca));
  RETURN_IF_ERROR(ReadPair(access, options));
  ASSIGN_OR_RETURN(options.token, FindToken(access, place));
  gpr_set_log_function(LogOfGrpc);
  auto client = client::Connect(options);
  if (!client.ok()) return AsUsage(client.status());
  return client;
}

bool IsInCluster(const Access& access) { return absl::StartsWith(access.server, kClusterScheme); }

// A session with a server that the API server leads to. As for kubectl, --context is one of the
// kubeconfig where this is its plugin, and names without a namespace are in that of the context.
StatusOr<Session> OpenCluster(const Globals& globals, const Access& access) {
  if (!access.ca.empty() || !access.certificate.empty()) {
    return UsageError(access.server +
                      " is reached as the kubeconfig says: leave --ca and certificates out");
  }
  auto config = kube::FindConfig("", IsPlugin() ? globals.context : "");
  if (!config.ok()) return AsUsage(config.status());
  const bool named = !access.ns.empty();
  Globals placed = globals;
  placed.ns = named ? access.ns : config->namespace_name;
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(placed));
  ApiServerProxy door{
      .address = access.server, .config = *config, .ns = place.ns, .clock = RealClock()};
  if (!access.token_file.empty()) {
    ASSIGN_OR_RETURN(door.token, FindToken(access, place));
  }
  client::RemoteOptions options{.server = access.server, .clock = RealClock()};
  auto channel = OpenApiServerProxy(std::move(door));
  if (!channel.ok()) return AsUsage(channel.status());
  options.channel = *channel;
  ASSIGN_OR_RETURN(auto client, client::Connect(options));
  return Session{std::move(client), place.ns, !named};
}

// What a plugin of kubectl is given, with the cluster where nothing else is said. The user's file
// of contexts is not for it.
Access PluginAccess(const Globals& globals, const client::Environment& environment) {
  const auto either = [&](const std::string& flag, const char* variable) {
    return flag.empty() ? environment(variable).value_or("") : flag;
  };
  const std::string server = either(globals.server, "SHIRABE_SERVER");
  return {.server = server.empty() ? kDefaultClusterAddress : server,
          .token_file = either(globals.token_file, "SHIRABE_TOKEN_FILE"),
          .ca = either(globals.ca, "SHIRABE_CA"),
          .certificate = either("", "SHIRABE_CLIENT_CERTIFICATE"),
          .key = either("", "SHIRABE_CLIENT_KEY"),
          .ns = either(globals.ns, "SHIRABE_NAMESPACE")};
}

v1::Actor ThisUser() {
  v1::Actor actor;
  actor.set_name(UserAtHost());
  actor.set_door("command line");
  return actor;
}

}  // namespace

StatusOr<Access> FindAccessOf(const Globals& globals) {
  if (!globals.db.empty()) {
    if (globals.server.empty() && globals.context.empty()) return Access{};
    return UsageError("--db is a store of this machine: leave --server and --context out");
  }
  const client::Environment environment = client::ProcessEnvironment();
  if (IsPlugin()) return PluginAccess(globals, environment);
  auto access = FindAccess({.flags = {.server = globals.server,
                                      .token_file = globals.token_file,
                                      .ca = globals.ca,
                                      .ns = globals.ns},
                            .context = globals.context,
                            .is_placed = !environment("SHIRABE_DB").value_or("").empty()},
                           environment);
  return access.ok() ? access : AsUsage(access.status());
}

StatusOr<Session> OpenSession(const Globals& globals, bool read_only) {
  ASSIGN_OR_RETURN(const Access access, FindAccessOf(globals));
  if (access.server.empty()) {
    ASSIGN_OR_RETURN(LocalSession local, OpenLocal(globals, read_only));
    return Session{std::move(local.client), local.place.ns, local.place.ns_is_default};
  }
  if (IsInCluster(access)) return OpenCluster(globals, access);
  Globals named = globals;
  named.ns = access.ns;
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(named));
  ASSIGN_OR_RETURN(auto client, OpenRemote(access, place));
  return Session{std::move(client), place.ns, place.ns_is_default};
}

StatusOr<LocalSession> OpenLocal(const Globals& globals, bool read_only) {
  if (!globals.server.empty() || !globals.context.empty()) {
    return UsageError(
        "this verb works on this machine: leave --server and --context out (shirabe apply -f FILE "
        "hands an experiment to a server)");
  }
  ASSIGN_OR_RETURN(client::StateLocation place, StateLocationOf(globals));
  client::LocalOptions options{.place = place, .read_only = read_only, .clock = RealClock()};
  if (!read_only) options.actor = ThisUser();
  auto opened = client::LocalClient::Open(std::move(options));
  if (!opened.ok()) return AsUsage(opened.status());
  return LocalSession{std::move(*opened), std::move(place)};
}

std::vector<std::string> ChooseDevices(const std::string& gpus, const v1::Experiment* experiment) {
  if (!gpus.empty()) return absl::StrSplit(gpus, ',', absl::SkipWhitespace());
  if (experiment != nullptr) {
    const auto& trial_spec = experiment->spec().trial_template().trial_spec();
    if (trial::RequestedGpus(trial_spec) == 0) return {};
  }
  return trial::DetectDevices(RealClock());
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

view::RowStyle StyleOf(const ListFlags& flags) {
  return {.now = RealClock()->Now(),
          .wide = flags.output == "wide",
          .with_namespace = flags.all_namespaces};
}

bool WantsTree(const ListFlags& flags) { return flags.output == "json" || flags.output == "yaml"; }

void PrintTree(const ListFlags& flags, const view::Json& tree) {
  Out(flags.output == "json" ? view::PrintJson(tree) : view::PrintYaml(tree));
}

void PrintTrees(const ListFlags& flags, const std::vector<view::Json>& trees) {
  view::ListWriter writer(flags.output == "yaml");
  Out(writer.Begin());
  for (const view::Json& tree : trees) Out(writer.Item(tree));
  Out(writer.End());
}

}  // namespace shirabe::cmd
