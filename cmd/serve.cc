// serve: everything of `run`, for every experiment of a store, until it is told to stop.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process_id.h"
#include "cmd/context.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "service/server.h"
#include "suggestion/remote_table.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);
constexpr double kRequestsPerSecond = 2000;

struct ServeFlags {
  std::string grpc = "127.0.0.1:7450";
  std::string http = "127.0.0.1:7451";
  std::string ready_file;
  service::TlsFiles tls;
  std::string katib_listen;
  std::vector<std::string> algorithms;
  std::vector<std::string> endpoints;
  bool insecure = false;
  std::string gpus;
  std::string nodes;
  std::optional<int64_t> rate;
};

Status CheckFlags(const Globals& globals, const ServeFlags& flags) {
  if (flags.tls.certificate.empty() != flags.tls.key.empty()) {
    return UsageError("--tls-cert and --tls-key go together");
  }
  if (!flags.tls.client_ca.empty() && flags.tls.certificate.empty()) {
    return UsageError("--client-ca needs --tls-cert and --tls-key");
  }
  if (flags.insecure && !globals.token_file.empty()) {
    return UsageError("--insecure asks for no token: leave --token-file out");
  }
  return absl::OkStatus();
}

StatusOr<client::Machines> MachinesFor(const ServeFlags& flags) {
  client::Machines machines;
  machines.working_dir = std::filesystem::current_path().string();
  if (!flags.nodes.empty()) {
    ASSIGN_OR_RETURN(machines.pools, LoadNodes(flags.nodes));
  }
  machines.devices = ChooseDevices(flags.gpus, nullptr);
  return machines;
}

// A server has tenants: they connect it only where its administrator says.
Status SetRemoteAlgorithms(const ServeFlags& flags) {
  suggestion::RemoteTable table{.allowed = flags.endpoints, .allow_loopback = false};
  for (const std::string& text : flags.algorithms) {
    if (const Status added = AddRemoteAlgorithm(text, table); !added.ok()) return AsUsage(added);
  }
  return AsUsage(suggestion::SetRemoteTable(std::move(table)));
}

std::string TokenFile(const Globals& globals, const client::Place& place) {
  return globals.token_file.empty() ? place.home + "/token" : globals.token_file;
}

// One object, for whoever started us and waits: written once everything answers.
Status TellReady(const ServeFlags& flags, const service::Server& server,
                 const std::string& token_file) {
  client::Json ready;
  ready["grpc"] = server.grpc_address();
  ready["http"] = server.http_address();
  if (!server.katib_address().empty()) ready["katib"] = server.katib_address();
  ready["pid"] = ThisProcess().pid;
  ready["tokenFile"] = token_file;
  return WriteFileAtomic(flags.ready_file, client::PrintJson(ready));
}

}  // namespace

StatusOr<int> Serve(const Arguments& arguments) {
  Globals globals;
  ServeFlags flags;
  Options options("serve [--grpc HOST:PORT] [--http HOST:PORT]",
                  "Runs every experiment of the store, as they come, and answers the commands that "
                  "are given --server. SIGTERM ends it; the trials run on, and the next server "
                  "takes them up. The token file (made where it is missing) has an "
                  "administrator's token, and lines `user NAMESPACE TOKEN`.");
  options.Text("--grpc", &flags.grpc, "HOST:PORT",
               "where to listen; port 0 for any free one (default 127.0.0.1:7450)");
  options.Text("--http", &flags.http, "HOST:PORT",
               "the same for JSON, /metrics and /readyz (default 127.0.0.1:7451)");
  options.Flag("--insecure", &flags.insecure, "no token; on loopback only");
  options.Text("--tls-cert", &flags.tls.certificate, "FILE", "certificate of this server, PEM");
  options.Text("--tls-key", &flags.tls.key, "FILE", "its key, PEM");
  options.Text("--client-ca", &flags.tls.client_ca, "FILE",
               "callers must show a certificate of this authority, PEM");
  options.Texts("--algorithm", &flags.algorithms, "NAME=HOST:PORT",
                "an algorithm in another process, by Katib's Suggestion service; may be repeated");
  options.Texts("--allow-endpoint", &flags.endpoints, "HOST:PORT",
                "where experiments may look for one themselves (spec.shirabe.algorithm.endpoint); "
                "*.DOMAIN:PORT for all hosts of a domain");
  options.Text("--katib-listen", &flags.katib_listen, "HOST:PORT",
               "Katib's DBManager for programs that push metrics as to Katib: plaintext, and "
               "whoever reaches it is believed");
  options.Number("--rate", &flags.rate, 0,
                 "requests a second that one caller may make in the long run, by gRPC and HTTP "
                 "together; 0 for any number (default 2000)");
  options.Text("--ready-file", &flags.ready_file, "FILE",
               "written once it answers: {\"grpc\", \"http\", \"pid\", \"tokenFile\"}");
  options.Text("--gpus", &flags.gpus, "LIST",
               "GPUs for trials that ask for some: 0,1 (default all)");
  options.Text("--nodes", &flags.nodes, "FILE",
               "pools of machines with prices and reclaims to play, in YAML");
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  RETURN_IF_ERROR(CheckFlags(globals, flags));
  RETURN_IF_ERROR(SetRemoteAlgorithms(flags));
  if (!globals.verbose) SetLogLevel(LogLevel::kInfo);
  ASSIGN_OR_RETURN(const client::Machines machines, MachinesFor(flags));
  // Before anything starts a thread: the signals are to reach none of them.
  Interrupts interrupts;
  ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(globals, /*read_only=*/false));
  const std::string token_file = flags.insecure ? "" : TokenFile(globals, session.place);
  service::Tokens tokens = service::Tokens::Open();
  if (!flags.insecure) {
    ASSIGN_OR_RETURN(tokens, service::Tokens::Load(token_file));
  }
  const double rate = flags.rate ? static_cast<double>(*flags.rate) : kRequestsPerSecond;
  ASSIGN_OR_RETURN(const auto server, service::Server::Start({.client = session.client.get(),
                                                              .clock = RealClock(),
                                                              .machines = machines,
                                                              .grpc = flags.grpc,
                                                              .http = flags.http,
                                                              .katib_listen = flags.katib_listen,
                                                              .tls = flags.tls,
                                                              .tokens = std::move(tokens),
                                                              .requests_per_second = rate}));
  ProgressLine(absl::StrCat("serving ", session.place.db, " on ", server->grpc_address(),
                            " (gRPC) and ", server->http_address(), " (HTTP)",
                            flags.insecure ? ", without a token" : ", token in " + token_file));
  if (!flags.ready_file.empty()) RETURN_IF_ERROR(TellReady(flags, *server, token_file));
  while (interrupts.Wait(kPoll) == 0) {
  }
  ProgressLine("stopping: trials that run are left to the next server");
  return 0;
}

}  // namespace shirabe::cmd
