// What `serve` and `controller` have in common: the addresses that they listen at, and what is
// allowed there. Used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/state_location.h"
#include "cmd/options.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb_flags.h"
#include "service/server.h"

namespace shirabe::cmd {

struct ListenOptions {
  std::string grpc = "127.0.0.1:7450";
  std::string http = "127.0.0.1:7451";
  std::string katib_listen;
  std::string base_path;
  std::string ready_file;
  service::TlsFiles tls;
  std::vector<std::string> algorithms;
  std::vector<std::string> endpoints;
  std::vector<std::string> host_paths;
  std::string notifications;
  std::optional<int64_t> rate;
  std::optional<int64_t> log_space;
  std::optional<int64_t> keep_observations;
  std::optional<int64_t> connections;
  std::optional<int64_t> max_parallel_trials;
  std::optional<int64_t> max_namespace_trials;
  std::optional<int64_t> max_trials;
  std::optional<int64_t> max_experiments;
};
void AddListenOptions(Options& options, ListenOptions* listen_options);
// A usage error for options that do not go together.
Status CheckListenOptions(const ListenOptions& listen_options);

// A server at those addresses, with those limits, over this store. TLS, tokens and what trials get
// are the caller's to fill in.
service::ServerOptions ServerOptionsOf(const ListenOptions& listen_options,
                                       const LocalSession& session);

// What an experiment and a namespace may take.
experiment::Limits LimitsOf(const ListenOptions& listen_options);

// A server has tenants: they connect it only where its administrator says, for algorithms and for
// notifications.
Status SetOutgoing(const ListenOptions& listen_options);

// Reads the token file again where a SIGHUP has come; one that cannot be used changes nothing.
void ReloadOnHangup(Interrupts& interrupts, service::Tokens& tokens);

std::string TokenFile(const Globals& globals, const client::StateLocation& place);

// One object, for the process that started us and waits: written once everything answers.
Status WriteReadyFile(const ListenOptions& listen_options, const service::Server& server,
                      const std::string& token_file);

}  // namespace shirabe::cmd
