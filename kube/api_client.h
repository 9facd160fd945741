// Calls of a Kubernetes API server: get, list, create, server-side apply, patch, delete, read a
// pod's log, watch. One object serves a process; thread-safe, with a few connections that are kept
// open. Objects travel as JSON, so that fields we do not know are carried along.
//
// A call is tried again, a bounded number of times with jitter, when the server was not reached,
// is starting, or is busy (429, 503, with its Retry-After); after an answer that was lost, only if
// doing it twice is doing it once. Errors say what was asked and what the server said:
//   kNotFound          no such object, or no such resource on this server
//   kAlreadyExists     an object of that name exists (create)
//   kAborted           it has changed since it was read (409 Conflict, a failed `test` of a patch)
//   kOutOfRange        the resource version is too old (410 Gone): list again
//   kInvalidArgument   the server refuses the object: 400 or 422, with the field it names
//   kPermissionDenied  401 or 403: RBAC, quota and admission; the server's words say which. Also
//                      where we have no credential: no token file, a plugin that fails. Where it is
//                      the account of ClientOptions::act_as that may not: IsAccountRefused
//   kFailedPrecondition  the server's certificate is not one that we trust
//   kResourceExhausted 429 all the same     kUnavailable, kDeadlineExceeded  try again later; also
//                      while we may not write
// The first four are the API server's own words, never those of a proxy before it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "kube/cluster_config.h"
#include "kube/json_access.h"
#include "kube/resource_path.h"

namespace shirabe::kube {

enum class PatchType { kMerge, kJson };  // RFC 7396; RFC 6902

struct DeleteOptions {
  std::string uid;                         // only if it is this one; "" = whichever
  std::string propagation = "Background";  // or Foreground, Orphan
  std::optional<absl::Duration> grace;
};

struct LogOptions {
  std::string container;
  bool follow = false;
  bool previous = false;
  std::optional<int64_t> tail_lines;
  std::optional<int64_t> limit_bytes;
};

struct WatchOptions {
  std::string version;  // what happened after it is told
  absl::Duration stall = absl::Minutes(2);
};

class Client {
 public:
  // Reads nothing from the network yet. The clock outlives the client.
  static StatusOr<std::unique_ptr<Client>> Create(const Config& config, Clock* clock,
                                                  const ClientOptions& options = {});
  virtual ~Client() = default;

  virtual StatusOr<Json> Get(const Ref& ref) = 0;
  // Only its `metadata`: the server sends no more (PartialObjectMetadata). A Secret's contents do
  // not come into this process; the right that it takes is the same.
  virtual StatusOr<Json> GetMetadata(const Ref& ref) = 0;
  // All of them, page by page, as one list with its resource version; each has its apiVersion and
  // kind, which the server leaves out.
  virtual StatusOr<Json> List(const Query& query) = 0;
  // The same, told one by one, so that they need not be in memory together; returns the resource
  // version. kOutOfRange if the list has become too old before its end: begin again.
  virtual StatusOr<std::string> ListEach(const Query& query,
                                         const std::function<void(Json&&)>& sink) = 0;
  // An object with a name is created at most once, but kAlreadyExists may be an answer to our own
  // first try: look whose it is.
  virtual StatusOr<Json> Create(const Resource& resource, const Json& object) = 0;
  // Server-side apply of the object's own name and namespace, as `manager`, taking fields over from
  // others. `subresource`: "status", or "" for the object itself.
  virtual StatusOr<Json> Apply(const Resource& resource, const Json& object,
                               const std::string& manager, const std::string& subresource) = 0;
  virtual StatusOr<Json> Patch(const Ref& ref, PatchType type, const Json& patch,
                               const std::string& subresource) = 0;
  virtual Status Delete(const Ref& ref, const DeleteOptions& options) = 0;
  // All that a label selector selects in one namespace, by one request; without either
  // kInvalidArgument, since that would be all there is. The right is `deletecollection`.
  virtual Status DeleteCollection(const Query& query, const DeleteOptions& options) = 0;

  // The log of a container, piece by piece; `sink` returns false to end it. Until the container
  // ends with `follow`, or `stop` is asked for (kCancelled).
  virtual Status ReadLog(const Ref& pod, const LogOptions& options,
                         const std::function<bool(std::string_view)>& sink,
                         std::stop_token stop) = 0;
  // One watch, until the server ends it (OK), an error, `stop` (kCancelled), or a silence longer
  // than options.stall (kDeadlineExceeded). kube/watch_cache.h is what most callers want.
  virtual Status Watch(const Query& query, const WatchOptions& options,
                       const std::function<void(const WatchEvent&)>& sink,
                       std::stop_token stop) = 0;

  // The resource of a kind, asked of the server and remembered. kNotFound, naming both, if the
  // server has none: its CRD is not installed.
  virtual StatusOr<Resource> FindResource(const std::string& api_version,
                                          const std::string& kind) = 0;
  // GET of any path that answers JSON: "/version".
  virtual StatusOr<Json> GetPath(const std::string& path) = 0;
};

}  // namespace shirabe::kube
