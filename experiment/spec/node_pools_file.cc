#include "experiment/spec/node_pools_file.h"

#include <set>
#include <string>

#include "base/names.h"
#include "base/text/number.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/validate_rules.h"
#include "experiment/spec/yaml_to_message.h"

namespace shirabe::experiment {
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
  std::set<std::string> names;
  for (int i = 0; i < pools.pools_size(); ++i) {
    const v1::NodePool& pool = pools.pools(i);
    const std::string path = ItemPath("pools", i);
    CheckPool(pool, path, findings);
    if (pool.name().empty() || names.insert(pool.name()).second) continue;
    findings.Error(ChildPath(path, "name"),
                   "\"" + pool.name() + "\" is the name of another pool: rename one");
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

}  // namespace shirabe::experiment
