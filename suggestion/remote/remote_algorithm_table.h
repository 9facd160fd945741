// Which algorithms of other processes this process may ask. Set once at start, from the command
// line, by the administrator; read whenever an experiment is validated or loaded. Any thread.
//
// An experiment names a remote algorithm by spec.shirabe.algorithm.endpoint, which must be allowed
// here, so that no experiment makes a server connect to wherever its author likes; or by an
// algorithmName that is mapped here (--algorithm NAME=HOST:PORT), whatever the name means
// otherwise.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::suggestion {

struct RemoteAlgorithmTable {
  std::map<std::string, std::string> named = {};  // algorithmName → host:port
  std::vector<std::string> allowed = {};          // host:port; "*.ml.svc:6789" = any such host
  // Of this machine all: right for one person's laptop, wrong for a server that has tenants.
  bool allow_loopback = true;
  absl::Duration deadline = absl::Seconds(60);  // for one answer; Katib's own
};

// kInvalidArgument, and nothing changes, if an address in it is not one.
Status SetRemoteAlgorithmTable(RemoteAlgorithmTable table);
RemoteAlgorithmTable GetRemoteAlgorithms();

// Adds what one --algorithm NAME=HOST:PORT says.
Status AddRemoteAlgorithm(const std::string& text, RemoteAlgorithmTable& table);

// Whether others may make this process connect there. kInvalidArgument for what is no address;
// kPermissionDenied.
Status CheckRemoteAddress(const std::string& endpoint);

// Where the experiment's algorithm runs: "host:port", or "" if it is one of this program. Errors
// as above, with the fix.
StatusOr<std::string> RemoteEndpoint(const v1::ExperimentSpec& spec);

}  // namespace shirabe::suggestion
