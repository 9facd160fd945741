// The HTTP interface as one table: what each path does, takes and answers. The table drives the
// dispatch below, its errors (404 and 405 with what was probably meant) and /openapi.json. Handlers
// are in routes_*.cc, one file a subject. Used by the router, openapi.cc and the tests; immutable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rate_limits.h"
#include "base/registry.h"
#include "base/status.h"
#include "client/local_client.h"
#include "google/protobuf/descriptor.h"
#include "service/common/authorization.h"
#include "service/common/guarded_client.h"
#include "service/http/http_message.h"

namespace shirabe {
class RateLimiter;
}

namespace shirabe::service {

class ChangeHub;
class GrpcWeb;
class Metrics;
class ShutdownWait;
class UpdateFeeds;
struct Quotas;

// What the handlers work with. All of it outlives them.
struct HttpContext {
  client::LocalClient* client = nullptr;
  const Tokens* tokens = nullptr;
  GuardOptions rights = {};
  Clock* clock = nullptr;
  ChangeHub* hub = nullptr;
  UpdateFeeds* updates = nullptr;
  Metrics* metrics = nullptr;
  RateLimiter* limiter = nullptr;         // null = callers may ask as often as they like
  ShutdownWait* shutdown_wait = nullptr;  // waits that the end of the server interrupts
  Quotas* quotas = nullptr;               // null = callers may hold as much as they like
  const GrpcWeb* grpc_web = nullptr;      // beside the table: calls of gRPC; null = there are none
  // For /readyz, beside the store: a name, and why it is not ready ("" = it is). Quick.
  std::map<std::string, std::function<std::string()>> checks = {};
  // Before every path, where a proxy passes it on: "" or "/shirabe". Paths without it are answered
  // as well.
  std::string base_path = {};
  bool loopback_only = false;  // no tokens: who calls must be on this machine, not a web page
  // Where there are no metrics to show yet: whether those made here tell of the store. Of replicas
  // one does, or sums over them would count everything twice.
  bool counts_store = true;
};

struct Parameter {
  enum class In { kPath, kQuery, kHeader };
  enum class Type { kText, kInteger, kBoolean };
  std::string name;
  std::string help = {};
  In in = In::kQuery;
  Type type = Type::kText;
  int64_t min = 0, max = 0;             // kInteger
  std::vector<std::string> words = {};  // kText: the ones allowed, any where empty
  std::string default_value = {};
};

// One request on its way: parameters have been found and checked by the table.
struct Call {
  const HttpRequest& request;
  const HttpContext& context;
  std::map<std::string, std::string> parameters = {};  // of the path and the query, decoded
  Principal principal = {};
  std::string caller = {};                           // whose quotas it takes from
  std::unique_ptr<client::Client> client = nullptr;  // of the caller; null for open routes

  std::string Text(const std::string& name) const;  // "" = not given
  int64_t Integer(const std::string& name, int64_t otherwise) const;
  bool Flag(const std::string& name) const;
  ExperimentKey Experiment() const;  // {namespace}, {name}
  TrialKey Trial() const;            // and {trial}
  // Of what the caller may have at the same time: one call that waits, one event stream; else 429.
  StatusOr<Quota::Share> AcquireWait() const;
  StatusOr<Quota::Share> AcquireStream() const;
};

// What a route answers when all is well. Errors are the same for all of them.
struct Result {
  int status = 200;
  std::string type = "application/json";               // "" = no body
  const google::protobuf::Descriptor* body = nullptr;  // its shape, where it is JSON
  bool list = false;                                   // {items: [body…]}
};

inline constexpr char kExperimentPath[] = "/api/v1/namespaces/{namespace}/experiments/{name}";
struct Route {
  std::string method;
  std::string path;  // /api/v1/namespaces/{namespace}/experiments/{name}:pause
  std::string id;    // a name of its own: pauseExperiment
  // The method of shirabe.v1.Shirabe that it stands for, whose rights are its own; "" = none: what
  // it says itself. Where the path names no namespace, all callers may: they get what is theirs.
  std::string rpc = {};
  v1::Rights rights = {};
  std::string summary;                                    // one sentence
  std::vector<Parameter> parameters = {};                 // beside those of the path
  const google::protobuf::Descriptor* request = nullptr;  // the shape of its body; null = none
  std::vector<Result> results = {};
  // May wait: for a point, a commit, a deletion; or read much, for the first who asks.
  bool slow = false;
  bool at_once = false;  // waits for nothing at all, and is answered whatever else goes on
  StatusOr<HttpReply> (*handle)(Call& call) = nullptr;

  bool open() const { return rights.audience() == v1::Rights::ANYONE; }  // without a token
};

// The routes of one subject. Its file ends in SHIRABE_REGISTER(RouteGroup, …); there is no other
// list of them.
struct RouteGroup {
  std::string name;
  std::vector<Route> (*routes)() = nullptr;
};

// All of them; the order does not matter.
const std::vector<Route>& Routes();

// The parameters of a path, with what is said of them everywhere.
std::vector<Parameter> PathParameters(const std::string& path);

// Which route a request is for, and what its path and query say. Used by the router. Pure
// functions of the table, any thread.

struct Match {
  const Route* route = nullptr;
  std::map<std::string, std::string> parameters;  // of the path
};

// HEAD is answered by GET's route. kNotFound, with what was probably meant, if no route has this
// path; kUnimplemented with status 405 if one has, with other methods: these are then in `allow`.
StatusOr<Match> FindRoute(const std::string& method, const HttpTarget& target, std::string* allow);

// Adds those of the query. kInvalidArgument, naming the parameter, for one that the route has not,
// that is given twice, or that is out of its range.
Status BindParameters(const HttpTarget& target, Match& match);

}  // namespace shirabe::service
