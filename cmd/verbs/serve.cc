// serve: everything of `run`, for every experiment of a store, until it is told to stop.
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/certificate.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/registry.h"
#include "cmd/listen_options.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "suggestion/accelerator/program_gpu.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kSignalPoll = absl::Milliseconds(200);

struct ServeFlags {
  ListenOptions listen_options;
  bool insecure = false;
  std::string gpus;
  std::string nodes;
  std::optional<int64_t> parent;
};

Status CheckServeFlags(const Globals& globals, const ServeFlags& flags) {
  RETURN_IF_ERROR(CheckListenOptions(flags.listen_options));
  if (!flags.listen_options.tls.client_ca.empty() && flags.listen_options.tls.certificate.empty()) {
    return UsageError("--client-ca needs --tls-cert and --tls-key");
  }
  const std::string& katib = flags.listen_options.katib_listen;
  if (!katib.empty() && !IsLoopback(HostOf(katib))) {
    return UsageError(
        "--katib-listen " + katib +
        " can be reached from the network, and its callers show no token: "
        "listen on 127.0.0.1 (a controller in a cluster knows callers by their pods)");
  }
  if (flags.insecure && !globals.token_file.empty()) {
    return UsageError("--insecure asks for no token: leave --token-file out");
  }
  return absl::OkStatus();
}

// One that has ended is served all the same: callers refuse it, and say little more than that.
void WarnOfExpiry(const std::string& file) {
  constexpr absl::Duration kSoon = absl::Hours(24 * 14);
  const auto certificate = ReadFile(file);
  const auto until = certificate.ok() ? ExpiryOf(*certificate) : certificate.status();
  const absl::Time now = RealClock()->Now();
  if (!until.ok() || *until > now + kSoon) return;
  Log(LogLevel::kWarning,
      *until < now ? "the certificate has ended: callers refuse it" : "the certificate ends soon",
      {{"file", file}, {"end", absl::FormatTime(absl::RFC3339_sec, *until, absl::UTCTimeZone())}});
}

StatusOr<client::ExecutionOptions> MachinesFor(const ServeFlags& flags) {
  client::ExecutionOptions machines;
  machines.working_dir = std::filesystem::current_path().string();
  machines.host_paths = flags.listen_options.host_paths;
  if (!flags.nodes.empty()) {
    ASSIGN_OR_RETURN(machines.pools, LoadNodes(flags.nodes));
  }
  machines.devices = ChooseDevices(flags.gpus, nullptr);
  machines.limits = LimitsOf(flags.listen_options);
  return machines;
}

// A caller from this machine acts for one namespace, that of -n.
StatusOr<std::string> NamespaceHere(const std::string& address, const std::string& ns) {
  if (IsLoopback(address)) return ns;
  return absl::PermissionDeniedError(address + " is not this machine");
}

}  // namespace

StatusOr<int> Serve(const Arguments& arguments) {
  Globals globals;
  ServeFlags flags;
  Options options(
      "serve [--grpc HOST:PORT] [--http HOST:PORT]",
      "Runs every experiment of the store, as they come, and answers the commands that "
      "are given --server. SIGTERM ends it; the trials run on, and the next server "
      "takes them up. The token file (made where it is missing) has an "
      "administrator's token, and lines `user NAMESPACE TOKEN` and `metrics TOKEN`; it is read at "
      "the start and, where there is no terminal, on SIGHUP.");
  AddListenOptions(options, &flags.listen_options);
  options.Flag("--insecure", &flags.insecure, "no token; on loopback only");
  options.Text("--gpus", &flags.gpus, "LIST",
               "GPUs for trials that ask for some: 0,1 (default all)");
  options.Text("--nodes", &flags.nodes, "FILE",
               "pools of machines with prices and reclaims to play, in YAML");
  AddStores(options, &globals);
  options.Count("--parent-pid", &flags.parent, 1,
                "ends when this process, which started it, has ended in whatever way");
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  RETURN_IF_ERROR(CheckServeFlags(globals, flags));
  RETURN_IF_ERROR(SetOutgoing(flags.listen_options));
  if (!globals.verbose) SetLogLevel(LogLevel::kInfo);
  WarnOfExpiry(flags.listen_options.tls.certificate);
  ASSIGN_OR_RETURN(const client::ExecutionOptions machines, MachinesFor(flags));
  // Before anything starts a thread: the signals are to reach none of them.
  Interrupts interrupts(Interrupts::Hangup::kReloads);
  suggestion::accelerator::UseGpuOfServer();
  ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(globals, /*read_only=*/false));
  const std::string token_file = flags.insecure ? "" : TokenFile(globals, session.place);
  service::Tokens tokens = service::Tokens::Open();
  if (!flags.insecure) {
    ASSIGN_OR_RETURN(tokens, service::Tokens::Load(token_file));
  }
  service::ServerOptions server_options = ServerOptionsOf(flags.listen_options, session);
  server_options.machines = machines;
  server_options.namespace_of = [ns = session.place.ns](const auto& address) {
    return NamespaceHere(address, ns);
  };
  server_options.tls = flags.listen_options.tls;
  server_options.tokens = tokens;
  ASSIGN_OR_RETURN(const auto server, service::Server::Start(std::move(server_options)));
  ProgressLine(absl::StrCat("serving ", client::ShownDatabase(session.place), " on ",
                            server->grpc_address(), " (gRPC) and ", server->http_address(),
                            " (HTTP)",
                            flags.insecure ? ", without a token" : ", token in " + token_file));
  if (!flags.listen_options.ready_file.empty()) {
    RETURN_IF_ERROR(WriteReadyFile(flags.listen_options, *server, token_file));
  }
  // The kernel gives an orphan another parent at once; a number that is used again does not matter.
  while (interrupts.Wait(kSignalPoll) == 0 && (!flags.parent || getppid() == *flags.parent)) {
    ReloadOnHangup(interrupts, tokens);
  }
  ProgressLine("stopping: trials that run are left to the next server");
  session.client->store().EndWaits();
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "serve",
                        .group = VerbGroup::kServe,
                        .summary = "run the experiments of a store, for many users",
                        .run = Serve});

}  // namespace shirabe::cmd
