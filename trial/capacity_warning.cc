// What announces that a node is about to be taken away.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "trial/capacity.h"

namespace shirabe::trial {
namespace {

constexpr char kOutOfService[] = "node.kubernetes.io/out-of-service";

struct Sign {
  const char* taint;  // key
  const char* text;
  bool hint = false;
};

const std::vector<Sign>& Signs() {
  static const std::vector<Sign> kSigns = {
      {kOutOfService, "it was declared out of service"},
      {"cloud.google.com/impending-node-termination", "Google Cloud is about to take it back"},
      {"aws-node-termination-handler/spot-itn", "AWS reclaims this spot instance within 2 minutes"},
      {"aws-node-termination-handler/asg-lifecycle-termination",
       "its auto-scaling group is terminating it"},
      {"aws-node-termination-handler/scheduled-maintenance", "AWS has scheduled its maintenance"},
      {"aws-node-termination-handler/rebalance-recommendation",
       "AWS sees a raised risk of a spot interruption", /*hint=*/true},
      {"remediator.kubernetes.azure.com/unschedulable", "Azure is taking this node back"},
      {"karpenter.sh/disrupted", "Karpenter is replacing it"},
      {"karpenter.sh/disruption", "Karpenter is replacing it"},
      {"ToBeDeletedByClusterAutoscaler", "the cluster autoscaler is removing it"},
      {"DeletionCandidateOfClusterAutoscaler", "the cluster autoscaler may remove it",
       /*hint=*/true},
      {"node.cloudprovider.kubernetes.io/shutdown", "its machine is shut down"},
  };
  return kSigns;
}

const Json& TaintsOf(const Json& node) { return Items(At(node, {"spec", "taints"})); }

std::optional<Warning> WarningOf(const Json& node, bool hint) {
  for (const Sign& sign : Signs()) {
    if (sign.hint != hint || ItemBy(TaintsOf(node), "key", sign.taint).is_null()) continue;
    return Warning{.reason = sign.taint, .text = sign.text, .hint = hint};
  }
  return std::nullopt;
}

// The kubelet says so in its Ready condition while it ends the pods.
std::optional<Warning> ShuttingDown(const Json& node) {
  const Json& ready = Condition(node, "Ready");
  const bool says = absl::StrContains(Text(ready, {"message"}), "node is shutting down");
  if (Text(ready, {"status"}) == "True" || !says) return std::nullopt;
  return Warning{.reason = "NodeShutdown", .text = "the node is shutting down"};
}

}  // namespace

std::optional<Warning> WarningOf(const Json& node) {
  if (auto warning = WarningOf(node, /*hint=*/false)) return warning;
  if (auto warning = ShuttingDown(node)) return warning;
  return WarningOf(node, /*hint=*/true);
}

std::string OutOfService(const Json& node) {
  const Json& taint = ItemBy(TaintsOf(node), "key", kOutOfService);
  if (taint.is_null()) return "";
  const std::string value = Text(taint, {"value"});
  return absl::StrCat("the node was declared out of service", value.empty() ? "" : ": ", value);
}

bool IsReady(const Json& node) { return Text(Condition(node, "Ready"), {"status"}) == "True"; }

}  // namespace shirabe::trial
