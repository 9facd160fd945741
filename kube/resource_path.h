// Where an API server is, and the path of everything on it. Functions without state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace shirabe::kube {

// What is asked for: a kind of objects, one object, a selection. Data, no behaviour.

// A kind of objects: {"batch", "v1", "jobs", "Job"}. The core group is "".
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;
  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
};

// One object.
struct Ref {
  Resource resource;
  std::string namespace_name;  // "" for what is not namespaced
  std::string name;
};

struct Query {
  Resource resource;
  std::string namespace_name;  // "" = all namespaces
  std::string label_selector;
  std::string field_selector;
};

struct Endpoint {
  bool tls = true;
  std::string host;  // without brackets
  std::string port;
  std::string prefix;  // "" or "/PATH" without a slash at its end
  std::string name;    // whom the certificate must name

  // HOST:PORT, as the Host header and messages have it.
  std::string Address() const;
  std::string Origin() const { return (tls ? "https://" : "http://") + Address(); }
};

// Of the server of a configuration, and the name that its certificate has if that is not HOST.
// kInvalidArgument for what is not an http:// or https:// address; it opens libcurl.
StatusOr<Endpoint> ParseServer(const std::string& server, const std::string& server_name);

// /api/v1/namespaces/NS/pods/NAME/SUB: the collection without a name, of all namespaces without
// one. Every piece is escaped.
std::string PathOf(const Resource& resource, const std::string& namespace_name,
                   const std::string& name, const std::string& subresource);

// Whether these can stand in a path: "" or a name as Kubernetes has them, neither "." nor "..",
// without '/' and '%', which a server, or a proxy before it, might take for more than one name.
// kInvalidArgument, with the name.
Status CheckNames(const std::string& namespace_name, const std::string& name);
// Whether a StorageClass, a ServiceAccount, a namespace may have this name: lower case letters,
// digits, '-' and '.', at most 253.
bool IsDnsName(const std::string& name);
// As CheckNames, for "v1" and "GROUP/VERSION".
Status CheckApiVersion(const std::string& api_version);

// PATH?a=b&c=d, with the values escaped, without those that are empty.
std::string WithQuery(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& query);

// Percent-encoding of everything but RFC 3986's unreserved characters.
std::string Escape(std::string_view text);

}  // namespace shirabe::kube
