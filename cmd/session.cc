#include "cmd/session.h"

#include <grpc/support/log.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/certificate.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/process_id.h"
#include "client/remote_client.h"
#include "client/store_backup.h"
#include "cmd/api_server_proxy.h"
#include "cmd/terminal.h"

namespace shirabe::cmd {

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

// A server that is begun again, as for an upgrade, is waited for.
client::RemoteOptions RemoteOptionsFor(const Globals& globals) {
  return {.clock = RealClock(),
          .retry_period = globals.retry_period,
          .on_lost = [period = globals.retry_period](const std::string& error) {
            ProgressLine(absl::StrCat(error, "; trying again for ", absl::FormatDuration(period)));
          }};
}

StatusOr<std::unique_ptr<client::Client>> OpenRemote(const Globals& globals, Access access,
                                                     const client::StateLocation& place) {
  constexpr char kTls[] = "tls://";
  client::RemoteOptions options = RemoteOptionsFor(globals);
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
  ApiServerProxy proxy{
      .address = access.server, .config = *config, .ns = place.ns, .clock = RealClock()};
  if (!access.token_file.empty()) {
    ASSIGN_OR_RETURN(proxy.token, FindToken(access, place));
  }
  client::RemoteOptions options = RemoteOptionsFor(globals);
  options.server = access.server;
  auto channel = OpenApiServerProxy(std::move(proxy));
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
  ASSIGN_OR_RETURN(auto client, OpenRemote(globals, access, place));
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
  if (!read_only || globals.knows_stores) {
    ASSIGN_OR_RETURN(options.stores, FindStores(globals, place));
  }
  auto opened = client::LocalClient::Open(std::move(options));
  if (!opened.ok()) return AsUsage(opened.status());
  if (const std::string notice = client::OpeningNotice(**opened); !notice.empty()) {
    ProgressLine(notice);
  }
  return LocalSession{std::move(*opened), std::move(place)};
}

}  // namespace shirabe::cmd
