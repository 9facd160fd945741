// The way from a verb to the records: a server's client, or one of this machine's store, as flags,
// environment and the user's contexts say. Used by the main thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "client/local_client.h"
#include "cmd/artifact_stores.h"
#include "cmd/server_contexts.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {

// The token that proves a report is of the attempt that was handed out, in hexadecimal: what `ask
// -o env` prints beside SHIRABE_TRIAL, and `tell` and `report` find again in their environment.
inline constexpr char kTrialTokenVariable[] = "SHIRABE_TRIAL_TOKEN";

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

}  // namespace shirabe::cmd
