// The certificate that a controller shows, where it was given none: of an authority of its own,
// kept where the next one finds it, so that what trusts it goes on to trust it. Used by the main
// thread.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kube/api_client.h"
#include "kube/token_reviewer.h"
#include "service/common/authorization.h"
#include "service/common/connection_table.h"
#include "service/server.h"

namespace shirabe::cmd {

struct IdentityOptions {
  kube::Client* client = nullptr;
  std::string namespace_name;  // of the Secret `shirabe-tls`; "" = kept in the home alone
  std::string home;
  std::vector<std::string> names;  // that callers know the server by
  Clock* clock = nullptr;
};

struct Identity {
  service::TlsFiles files;  // in the home
  std::string ca;           // PEM
  absl::Time renew_at;      // from then on, load it again
};

// Takes the one that is kept, if it is for these names and does not end within 30 days; else makes
// a new one of the same authority, which is made at the first time. Of two that make one at the
// same time, both get the same.
StatusOr<Identity> LoadIdentity(const IdentityOptions& options);

// shirabe.NS.svc:7450 → shirabe.NS.svc, shirabe.NS, shirabe, localhost, 127.0.0.1, …
std::vector<std::string> NamesOfServer(const std::string& advertised);

// Whom a cluster knows, as callers of a server: what they may do to Experiments by its RBAC, they
// may do here. Used by `controller`.

// The audience of tokens for Shirabe.
inline constexpr char kAudience[] = "shirabe";

// The reviewer outlives what is returned.
service::Tokens::IntrospectToken ClusterUserIntrospection(kube::TokenReviewer* reviewer);

}  // namespace shirabe::cmd
