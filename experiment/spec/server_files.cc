#include "experiment/spec/server_files.h"

#include <set>
#include <string>

#include "artifacts/artifact_store.h"
#include "base/names.h"
#include "base/text/number.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/validate_rules.h"
#include "experiment/spec/yaml_to_message.h"
#include "notify/endpoints.h"

namespace shirabe::experiment {
namespace {

// The names of a file's entries, of which no two have one.
class EntryNames {
 public:
  explicit EntryNames(const char* entry) : entry_(entry) {}

  void Check(const std::string& name, const std::string& path, Findings& findings) {
    if (name.empty() || names_.insert(name).second) return;
    findings.Error(ChildPath(path, "name"),
                   "\"" + name + "\" is the name of another " + entry_ + ": rename one");
  }

 private:
  const std::string entry_;
  std::set<std::string> names_;
};

constexpr FileKind kEndpointsFile = {
    .name = "notifications file",
    .example =
        "endpoints: [{name: team, url: https://hooks.example.org/shirabe, secretFile: "
        "/etc/shirabe/team.secret, namespaces: [team]}]"};
constexpr int kMaxEndpoints = 1'000;

void SetEndpointDefaults(v1::NotificationEndpoints& file) {
  for (v1::NotificationEndpoint& endpoint : *file.mutable_endpoints()) {
    if (endpoint.format() == v1::WEBHOOK_FORMAT_UNSPECIFIED) {
      endpoint.set_format(v1::WEBHOOK_JSON);
    }
  }
}

void CheckEndpoint(const v1::NotificationEndpoint& endpoint, const std::string& path,
                   Findings& findings) {
  const Status name = notify::ValidateEndpointName(endpoint.name());
  if (!endpoint.name().empty() && !name.ok()) {
    findings.Error(ChildPath(path, "name"), shirabe::Message(name));
  }
  const bool unread = findings.IsUnreadable(ChildPath(path, "url")) ||
                      findings.IsUnreadable(ChildPath(path, "urlFile"));
  if (endpoint.url().empty() == endpoint.url_file().empty() && !unread) {
    findings.Error(ChildPath(path, "url"),
                   "give one of url and urlFile, which names a file that holds the URL");
  }
  if (endpoint.format() == v1::WEBHOOK_JSON && endpoint.secret_file().empty() &&
      !findings.IsUnreadable(ChildPath(path, "secretFile"))) {
    findings.Error(ChildPath(path, "secretFile"),
                   "is required for format json: the secret that signs what is sent, made with "
                   "`openssl rand -hex 32`");
  }
  for (int i = 0; i < endpoint.namespaces_size(); ++i) {
    const std::string& ns = endpoint.namespaces(i);
    const Status valid = ns == "*" ? absl::OkStatus() : ValidateNamespace(ns);
    if (valid.ok()) continue;
    findings.Error(ItemPath(ChildPath(path, "namespaces"), i), shirabe::Message(valid));
  }
}

void CheckEndpoints(const v1::NotificationEndpoints& file, Findings& findings) {
  CheckTable(file, "", findings);
  if (file.endpoints_size() > kMaxEndpoints) {
    return findings.Error("endpoints", "has " + std::to_string(file.endpoints_size()) +
                                           " items, and at most " + std::to_string(kMaxEndpoints) +
                                           " are taken: give fewer");
  }
  EntryNames names("endpoint");
  for (int i = 0; i < file.endpoints_size(); ++i) {
    const std::string path = ItemPath("endpoints", i);
    CheckEndpoint(file.endpoints(i), path, findings);
    names.Check(file.endpoints(i).name(), path, findings);
  }
}

}  // namespace

ParsedEndpoints ParseEndpoints(std::string_view text) {
  ParsedEndpoints parsed;
  Findings findings;
  if (WalkFile(text, kEndpointsFile, parsed.endpoints, findings)) {
    SetEndpointDefaults(parsed.endpoints);
    CheckEndpoints(parsed.endpoints, findings);
  }
  parsed.findings = findings.Sorted();
  return parsed;
}

namespace {

constexpr FileKind kNodesFile = {.name = "nodes file",
                                 .example = "pools: [{name: gpu-spot, capacity: spot, slots: 4}]"};
// More than that is a slip of the finger, and would only cost memory.
constexpr int kMaxSlots = 10'000;
// One each tenth of a second: sooner than a program can start.
constexpr double kMaxPerHour = 36'000;

void SetPoolDefaults(v1::NodePools& pools) {
  for (v1::NodePool& pool : *pools.mutable_pools()) {
    if (pool.capacity() == v1::CAPACITY_UNSPECIFIED) pool.set_capacity(v1::ON_DEMAND);
    if (!pool.has_slots()) pool.set_slots(1);
  }
}

void CheckReclaim(const v1::Reclaim& reclaim, const std::string& path, Findings& findings) {
  const std::string rate = ChildPath(path, "perNodeHour");
  const std::string times = ChildPath(path, "times");
  for (int i = 0; i < reclaim.times_size(); ++i) {
    if (reclaim.times(i) >= 0) continue;
    findings.Error(ItemPath(times, i),
                   "must be at least 0 seconds, not " + FormatNumber(reclaim.times(i)));
  }
  if (reclaim.per_node_hour() > kMaxPerHour) {
    findings.Error(rate, "must be at most " + FormatNumber(kMaxPerHour) + ", not " +
                             FormatNumber(reclaim.per_node_hour()));
  }
  const bool none = reclaim.per_node_hour() == 0 && reclaim.times_size() == 0;
  if (none && !findings.IsUnreadable(path)) {
    findings.Warn(path, "has neither times nor perNodeHour: nothing is ever reclaimed");
  }
}

void CheckPool(const v1::NodePool& pool, const std::string& path, Findings& findings) {
  const Status name = ValidatePoolName(pool.name());
  if (!pool.name().empty() && !name.ok()) {
    findings.Error(ChildPath(path, "name"), shirabe::Message(name));
  }
  if (pool.slots() > kMaxSlots) {
    findings.Error(ChildPath(path, "slots"), "must be at most " + std::to_string(kMaxSlots) +
                                                 ", not " + std::to_string(pool.slots()));
  }
  if (pool.has_reclaim()) CheckReclaim(pool.reclaim(), ChildPath(path, "reclaim"), findings);
}

void CheckPools(const v1::NodePools& pools, Findings& findings) {
  CheckTable(pools, "", findings);
  EntryNames names("pool");
  for (int i = 0; i < pools.pools_size(); ++i) {
    const std::string path = ItemPath("pools", i);
    CheckPool(pools.pools(i), path, findings);
    names.Check(pools.pools(i).name(), path, findings);
  }
}

}  // namespace

ParsedNodes ParseNodes(std::string_view text, NoPools none) {
  ParsedNodes parsed;
  Findings findings;
  if (WalkFile(text, kNodesFile, parsed.pools, findings)) {
    SetPoolDefaults(parsed.pools);
    const bool fine = none == NoPools::kIsFine && parsed.pools.pools().empty();
    if (!fine) CheckPools(parsed.pools, findings);
  }
  parsed.findings = findings.Sorted();
  return parsed;
}

namespace {

constexpr FileKind kStoresFile = {
    .name = "stores file",
    .example =
        "stores: [{name: shared, type: directory, root: /srv/artifacts, namespaces: [default]}]"};

void CheckStores(const v1::ArtifactStores& stores, Findings& findings) {
  CheckTable(stores, "", findings);
  EntryNames names("store");
  for (int i = 0; i < stores.stores_size(); ++i) {
    const v1::ArtifactStore& store = stores.stores(i);
    const std::string path = ItemPath("stores", i);
    const Status name = ValidatePoolName(store.name());
    if (!store.name().empty() && !name.ok()) {
      findings.Error(ChildPath(path, "name"), shirabe::Message(name));
    }
    const auto* type = Registry<artifacts::StoreType>::Get().Find(store.type());
    if (type != nullptr) {
      const Status valid = type->validate(store);
      if (!valid.ok()) findings.Error(path, shirabe::Message(valid));
    }
    names.Check(store.name(), path, findings);
  }
}

}  // namespace

ParsedStores ParseStores(std::string_view text) {
  ParsedStores parsed;
  Findings findings;
  if (WalkFile(text, kStoresFile, parsed.stores, findings)) CheckStores(parsed.stores, findings);
  parsed.findings = findings.Sorted();
  return parsed;
}

}  // namespace shirabe::experiment
