#include "trial/pod/pod_scheduling.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "trial/node_slots.h"

namespace shirabe::trial {

const std::vector<CloudLabel>& CloudLabels() {
  static const std::vector<CloudLabel> kLabels = {
      {"cloud.google.com/gke-spot", "true", "", /*tainted=*/true},
      {"cloud.google.com/gke-preemptible", "true", "", /*tainted=*/true},
      {"eks.amazonaws.com/capacityType", "SPOT", "ON_DEMAND"},
      {"karpenter.sh/capacity-type", "spot", "on-demand"},
      {"kubernetes.azure.com/scalesetpriority", "spot", "regular", /*tainted=*/true},
  };
  return kLabels;
}

v1::Capacity CapacityByLabels(const Json& node) {
  const Json& labels = At(node, {"metadata", "labels"});
  v1::Capacity capacity = v1::CAPACITY_UNSPECIFIED;
  for (const CloudLabel& label : CloudLabels()) {
    const std::string value = Text(labels, {label.key});
    if (value == label.spot) return v1::SPOT;
    if (!value.empty() && value == label.on_demand) capacity = v1::ON_DEMAND;
  }
  return capacity;
}

std::string SelectorText(const google::protobuf::Value& value) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kStringValue: return value.string_value();
    case google::protobuf::Value::kBoolValue: return value.bool_value() ? "true" : "false";
    case google::protobuf::Value::kNumberValue: return FormatNumber(value.number_value());
    default: return "";
  }
}

namespace {

// ---- the pool of a node -------------------------------------------------------------------------

bool HasLabels(const Json& node, const google::protobuf::Struct& selector) {
  const Json& labels = At(node, {"metadata", "labels"});
  for (const auto& [key, value] : selector.fields()) {
    const Json& label = At(labels, key.c_str());
    if (!label.is_string() || Text(label) != SelectorText(value)) return false;
  }
  return true;
}

bool IsOfPool(const Json& node, const v1::NodePool& pool) {
  if (pool.node_selector().fields_size() > 0) return HasLabels(node, pool.node_selector());
  return CapacityByLabels(node) == pool.capacity();
}

const v1::NodePool* PoolOf(const Json& node, const v1::NodePools& pools) {
  const v1::NodePool* best = nullptr;
  for (const v1::NodePool& pool : pools.pools()) {
    if (!IsOfPool(node, pool)) continue;
    const bool closer =
        best == nullptr || pool.node_selector().fields_size() > best->node_selector().fields_size();
    if (closer) best = &pool;
  }
  return best;
}

double OnDemandPrice(const v1::NodePools& pools, double otherwise) {
  std::optional<double> price;
  for (const v1::NodePool& pool : pools.pools()) {
    if (pool.capacity() == v1::SPOT) continue;
    price = std::min(price.value_or(pool.price_per_hour()), pool.price_per_hour());
  }
  return price.value_or(otherwise);
}

bool TermHolds(const Json& term, const Json& labels) {
  for (const Json& expression : Items(At(term, "matchExpressions"))) {
    const std::string value = Text(labels, {Text(expression, {"key"}).c_str()});
    const bool equal = value == Text(At(expression, "values")[0]);
    if (equal != (Text(expression, {"operator"}) == "In")) return false;
  }
  return true;
}

// ---- what a pod asks for ------------------------------------------------------------------------

using Amounts = std::map<std::string, double>;

// What the price goes by: CPU, memory, and devices by whatever vendor's name.
bool Counts(const std::string& resource) {
  return resource == "cpu" || resource == "memory" || absl::EndsWith(resource, "/gpu") ||
         absl::StrContains(resource, "/mig-") || absl::EndsWith(resource, "/tpu");
}

Amounts RequestsOf(const Json& container) {
  Amounts amounts;
  // A limit alone is a request too.
  for (const char* kind : {"limits", "requests"}) {
    const Json& resources = At(container, {"resources", kind});
    if (!resources.is_object()) continue;
    for (const auto& [resource, quantity] : resources.items()) {
      const auto amount = ParseQuantity(quantity);
      if (amount && Counts(resource)) amounts[resource] = *amount;
    }
  }
  return amounts;
}

void Add(const Amounts& more, Amounts& sum) {
  for (const auto& [resource, amount] : more) sum[resource] += amount;
}

void Raise(const Amounts& other, Amounts& most) {
  for (const auto& [resource, amount] : other) {
    most[resource] = std::max(most[resource], amount);
  }
}

bool IsSidecar(const Json& container) { return Text(container, {"restartPolicy"}) == "Always"; }

// As the scheduler counts: containers and sidecars together, or an init container beside the
// sidecars before it, whichever is more.
Amounts RequestsOfPod(const Json& pod) {
  const Json& spec = At(pod, "spec");
  Amounts sidecars, most;
  for (const Json& container : Items(At(spec, "initContainers"))) {
    Amounts now = RequestsOf(container);
    if (IsSidecar(container)) {
      Add(now, sidecars);
    } else {
      Add(sidecars, now);
      Raise(now, most);
    }
  }
  Amounts running = sidecars;
  for (const Json& container : Items(At(spec, "containers"))) Add(RequestsOf(container), running);
  Raise(running, most);
  return most;
}

}  // namespace

std::optional<double> ParseQuantity(const Json& quantity) {
  if (quantity.is_number()) return quantity.get<double>();
  static const std::map<std::string, double> kUnits = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},     {"M", 1e6},
      {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  const std::string text = Text(quantity);
  // The unit begins after the last digit or point: in 2e3 the e is not one.
  const size_t cut = text.find_last_of("0123456789.");
  if (cut == std::string::npos) return std::nullopt;
  const auto unit = kUnits.find(text.substr(cut + 1));
  const auto number = ParseNumber(text.substr(0, cut + 1));
  if (unit == kUnits.end() || !number) return std::nullopt;
  return *number * unit->second;
}

std::optional<double> OwnPriceOf(const Json& node) {
  for (const char* place : {"annotations", "labels"}) {
    const auto price = ParseNumber(Text(node, {"metadata", place, kPriceAnnotation}));
    if (price && std::isfinite(*price) && *price >= 0) return price;
  }
  return std::nullopt;
}

NodeCapacity NodeCapacityOf(const Json& node, const v1::NodePools& pools) {
  const v1::NodePool* pool = PoolOf(node, pools);
  const std::optional<double> own = OwnPriceOf(node);
  if (pool == nullptr) {
    return {.capacity = CapacityByLabels(node),
            .price_per_hour = own.value_or(0),
            .on_demand_price_per_hour = own.value_or(0)};
  }
  const double price = own.value_or(pool->price_per_hour());
  return {.pool = pool->name(),
          .capacity = pool->capacity() == v1::SPOT ? v1::SPOT : v1::ON_DEMAND,
          .price_per_hour = price,
          .on_demand_price_per_hour =
              own && pool->capacity() != v1::SPOT ? price : OnDemandPrice(pools, price)};
}

bool Admits(const PodScheduling& place, const Json& node) {
  const Json& labels = At(node, {"metadata", "labels"});
  for (const auto& [key, value] : place.node_selector.items()) {
    if (Text(labels, {key.c_str()}) != Text(value)) return false;
  }
  return place.required.empty() ||
         std::any_of(place.required.begin(), place.required.end(),
                     [&](const Json& term) { return TermHolds(term, labels); });
}

double ShareOf(const Json& pod, const Json& node) {
  const Json& allocatable = At(node, {"status", "allocatable"});
  double share = 0;
  for (const auto& [resource, amount] : RequestsOfPod(pod)) {
    const auto whole = ParseQuantity(At(allocatable, resource.c_str()));
    if (whole && *whole > 0) share = std::max(share, amount / *whole);
  }
  return std::clamp(share, 0.0, 1.0);
}

v1::Placement PlacementOf(const Json& pod, const Json& node, const v1::NodePools& pools) {
  v1::Placement placement;
  placement.set_node(Text(pod, {"spec", "nodeName"}));
  if (!node.is_object()) return placement;
  const NodeCapacity place = NodeCapacityOf(node, pools);
  const double share = ShareOf(pod, node);
  placement.set_pool(place.pool);
  if (place.capacity != v1::CAPACITY_UNSPECIFIED) {
    placement.set_capacity(CapacityWord(place.capacity));
  }
  placement.set_price_per_hour(place.price_per_hour * share);
  placement.set_on_demand_price_per_hour(place.on_demand_price_per_hour * share);
  return placement;
}

}  // namespace shirabe::trial
