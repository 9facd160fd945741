#include "cmd/listen_options.h"

#include <re2/re2.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/process_id.h"
#include "client/retention.h"
#include "cmd/spec_file.h"
#include "suggestion/remote/remote_algorithm_table.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "view/record_json.h"

namespace shirabe::cmd {

void AddListenOptions(Options& options, ListenOptions* listen_options) {
  options.Text("--grpc", &listen_options->grpc, "HOST:PORT",
               "where to listen; port 0 for any free one (default 127.0.0.1:7450)");
  options.Text("--http", &listen_options->http, "HOST:PORT",
               "the same for the dashboard, JSON, /metrics and /readyz (default 127.0.0.1:7451)");
  options.Text("--base-path", &listen_options->base_path, "/PATH",
               "before every path of HTTP, where a proxy passes on what it has below that path "
               "(default none)");
  options.Text("--tls-cert", &listen_options->tls.certificate, "FILE",
               "certificate of this server, PEM");
  options.Text("--tls-key", &listen_options->tls.key, "FILE", "its key, PEM");
  options.Text("--client-ca", &listen_options->tls.client_ca, "FILE",
               "callers must show a certificate of this authority, PEM");
  options.Texts("--algorithm", &listen_options->algorithms, "NAME=HOST:PORT",
                "an algorithm in another process, by Katib's Suggestion service; may be repeated");
  options.Texts("--allow-endpoint", &listen_options->endpoints, "HOST:PORT",
                "where experiments may look for one themselves (spec.shirabe.algorithm.endpoint); "
                "*.DOMAIN:PORT for all hosts of a domain");
  options.Texts("--allow-host-path", &listen_options->host_paths, "DIR",
                "a folder of the nodes that experiments may keep checkpoints in "
                "(spec.shirabe.checkpoint.volume.hostPath), and all below it; may be repeated "
                "(default none)");
  options.Text("--notifications", &listen_options->notifications, "FILE", kNotificationsHelp);
  options.Text("--katib-listen", &listen_options->katib_listen, "HOST:PORT",
               "Katib's Suggestion and DBManager for its own clients, which have no token: "
               "plaintext; a caller acts for the namespace of the pod that it calls from, and "
               "without a cluster for that of -n, from this machine only");
  options.Number("--rate", &listen_options->rate, 0,
                 "requests a second that one caller may make in the long run, by gRPC and HTTP "
                 "together; 0 for any number (default 2000)");
  options.Number("--connections-per-address", &listen_options->connections, 0,
                 "connections that one address may have to each listener (of IPv6: one network of "
                 "64 bits); a proxy in front of this server is one address; 0 for any number "
                 "(default 2000)");
  options.Number("--log-space", &listen_options->log_space, 0,
                 "GiB that the logs of ended attempts may take together; the oldest go first; 0 "
                 "keeps all (default 10)");
  options.Number(
      "--keep-observations", &listen_options->keep_observations, 0,
      "observations of each metric that stay of a trial, from an hour after its end: the "
      "first, the last, the least, the greatest and others evenly spaced; all of an "
      "objective that an early-stopping rule reads; 0 keeps all (default 0)");
  options.Number("--max-parallel-trials", &listen_options->max_parallel_trials, 0,
                 "trials of one experiment at the same time, whatever its parallelTrialCount says; "
                 "0 for any number, here and below (default 1000)");
  options.Number("--max-namespace-trials", &listen_options->max_namespace_trials, 0,
                 "trials of all experiments of a namespace at the same time (default 5000)");
  options.Number("--max-trials", &listen_options->max_trials, 0,
                 "trials of one experiment in all (default 1000000)");
  options.Number("--max-experiments", &listen_options->max_experiments, 0,
                 "experiments of a namespace, with those that have ended (default 10000)");
  options.Text("--ready-file", &listen_options->ready_file, "FILE",
               "written once it answers: {\"grpc\", \"http\", \"pid\", \"tokenFile\"}");
}

namespace {

// Parts of letters, digits and -._~ that a browser, a proxy and this server write alike.
Status CheckBasePath(const std::string& path) {
  static const RE2 form("(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*");
  if (path.size() <= 200 && RE2::FullMatch(path, form)) return absl::OkStatus();
  return UsageError("--base-path " + path +
                    " must be like /shirabe: it begins with /, does not end with one, and holds "
                    "only letters, digits, '-', '.', '_', '~' and '/'");
}

}  // namespace

Status CheckListenOptions(const ListenOptions& listen_options) {
  if (listen_options.tls.certificate.empty() != listen_options.tls.key.empty()) {
    return UsageError("--tls-cert and --tls-key go together");
  }
  const int64_t keep = listen_options.keep_observations.value_or(0);
  if (keep != 0 && keep < client::kMinKeptObservations) {
    return UsageError(absl::StrCat("--keep-observations ", keep, ": give 0, or at least ",
                                   client::kMinKeptObservations));
  }
  RETURN_IF_ERROR(CheckBasePath(listen_options.base_path));
  for (const std::string& path : listen_options.host_paths) {
    RETURN_IF_ERROR(AsUsage(Prefix("--allow-host-path", trial::ValidateHostPath(path))));
  }
  return absl::OkStatus();
}

service::ServerOptions ServerOptionsOf(const ListenOptions& listen_options,
                                       const LocalSession& session) {
  constexpr int64_t kDefaultRate = 2000;  // requests a second of one caller
  constexpr int64_t kDefaultConnections = 2000;
  constexpr int64_t kDefaultLogGib = 10;
  const int64_t connections = listen_options.connections.value_or(kDefaultConnections);
  return {.client = session.client.get(),
          .clock = RealClock(),
          .grpc = listen_options.grpc,
          .http = listen_options.http,
          .katib_listen = listen_options.katib_listen,
          .home = session.place.home,
          .log_bytes = listen_options.log_space.value_or(kDefaultLogGib) << 30,
          .keep_observations = listen_options.keep_observations.value_or(0),
          .requests_per_second = static_cast<double>(listen_options.rate.value_or(kDefaultRate)),
          .base_path = listen_options.base_path,
          .connections_per_address = static_cast<int>(std::min<int64_t>(connections, 1 << 20))};
}

experiment::Limits LimitsOf(const ListenOptions& listen_options) {
  experiment::Limits limits;
  const auto set = [](const std::optional<int64_t>& given, int64_t& limit) {
    limit = given.value_or(limit);
  };
  set(listen_options.max_parallel_trials, limits.parallel_trials);
  set(listen_options.max_namespace_trials, limits.namespace_parallel_trials);
  set(listen_options.max_trials, limits.trials);
  set(listen_options.max_experiments, limits.experiments);
  return limits;
}

Status SetOutgoing(const ListenOptions& listen_options) {
  suggestion::RemoteAlgorithmTable table{.allowed = listen_options.endpoints,
                                         .allow_loopback = false};
  for (const std::string& text : listen_options.algorithms) {
    if (const Status added = AddRemoteAlgorithm(text, table); !added.ok()) return AsUsage(added);
  }
  RETURN_IF_ERROR(AsUsage(suggestion::SetRemoteAlgorithmTable(std::move(table))));
  return UseEndpoints(listen_options.notifications);
}

void ReloadOnHangup(Interrupts& interrupts, service::Tokens& tokens) {
  if (!interrupts.TakeHangup() || tokens.open()) return;
  const Status read = tokens.Reload();
  if (read.ok()) {
    Log(LogLevel::kInfo, "read the token file again");
  } else {
    Log(LogLevel::kError, "the token file cannot be used; the tokens stay as they were",
        {{"error", Message(read)}});
  }
}

std::string TokenFile(const Globals& globals, const client::StateLocation& place) {
  return globals.token_file.empty() ? place.home + "/token" : globals.token_file;
}

Status WriteReadyFile(const ListenOptions& listen_options, const service::Server& server,
                      const std::string& token_file) {
  view::Json ready;
  ready["grpc"] = server.grpc_address();
  ready["http"] = server.http_address();
  if (!server.katib_address().empty()) ready["katib"] = server.katib_address();
  ready["pid"] = ThisProcess().pid;
  ready["tokenFile"] = token_file;
  return WriteFileAtomic(listen_options.ready_file, view::PrintJson(ready));
}

}  // namespace shirabe::cmd
