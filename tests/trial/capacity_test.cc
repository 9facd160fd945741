#include "trial/pod/pod_scheduling.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/parse_struct.h"
#include "tests/trial/pools.h"
#include "trial/kubernetes/price_quote.h"
#include "trial/start_error.h"

namespace shirabe::trial {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::NodePool& Pool(v1::NodePools& pools, const std::string& name, v1::Capacity capacity,
                   double price) {
  v1::NodePool& pool = AddPool(pools, name, capacity, 1);
  pool.set_price_per_hour(price);
  return pool;
}

// A spot and an on-demand pool by labels of our own, as in a cluster of one's own machines.
v1::NodePools TwoPools() {
  v1::NodePools pools;
  auto& dear = Pool(pools, "a100", v1::ON_DEMAND, 3.0);
  *dear.mutable_node_selector() = ParseStruct(R"({"pool": "a100"})");
  auto& cheap = Pool(pools, "a100-spot", v1::SPOT, 1.0);
  *cheap.mutable_node_selector() = ParseStruct(R"({"pool": "a100", "spot": true})");
  *cheap.add_tolerations() = ParseStruct(R"({"key": "spot", "operator": "Exists"})");
  return pools;
}

PlacementRequest With(v1::SpotPolicy spot, bool on_demand = false) {
  PlacementRequest placement_request;
  placement_request.policy.set_spot(spot);
  placement_request.on_demand = on_demand;
  return placement_request;
}

PodScheduling Place(const PlacementRequest& placement_request, const v1::NodePools& pools = {}) {
  auto place = SchedulingFor(placement_request, pools);
  EXPECT_TRUE(place.ok()) << place.status();
  return place.value_or(PodScheduling());
}

Json NodeWith(const std::string& labels) {
  return Json::parse(R"({"metadata": {"name": "n", "labels": )" + labels + "}}");
}

// Whether a node would be taken, as the scheduler reads selector and required terms.
bool Takes(const PodScheduling& place, const Json& node) {
  const Json& labels = node["metadata"]["labels"];
  for (const auto& [key, value] : place.node_selector.items()) {
    if (Text(labels, {key.c_str()}) != value) return false;
  }
  bool any = place.required.empty();
  for (const Json& term : place.required) {
    bool all = true;
    for (const Json& e : term["matchExpressions"]) {
      const bool equal = At(labels, Text(e, {"key"}).c_str()) == e["values"][0];
      all &= e["operator"] == "In" ? equal : !equal;
    }
    any |= all;
  }
  return any;
}

// ---- without pools: the clouds' labels ----------------------------------------------------------

const std::vector<std::string>& SpotNodes() {
  static const std::vector<std::string> nodes = {
      R"({"cloud.google.com/gke-spot": "true"})", R"({"cloud.google.com/gke-preemptible": "true"})",
      R"({"eks.amazonaws.com/capacityType": "SPOT"})", R"({"karpenter.sh/capacity-type": "spot"})",
      R"({"kubernetes.azure.com/scalesetpriority": "spot"})"};
  return nodes;
}

const std::vector<std::string>& OtherNodes() {
  static const std::vector<std::string> nodes = {
      "{}", R"({"eks.amazonaws.com/capacityType": "ON_DEMAND"})",
      R"({"karpenter.sh/capacity-type": "on-demand"})",
      R"({"kubernetes.azure.com/scalesetpriority": "regular"})"};
  return nodes;
}

TEST(CapacityByCloud, RequiredMeansSpotNodesOfEveryCloudAndNoOther) {
  const PodScheduling place = Place(With(v1::REQUIRED));
  for (const auto& labels : SpotNodes()) EXPECT_TRUE(Takes(place, NodeWith(labels))) << labels;
  for (const auto& labels : OtherNodes()) EXPECT_FALSE(Takes(place, NodeWith(labels))) << labels;
  EXPECT_EQ(place.tolerations.size(), 3u);  // both of GKE, and AKS
}

TEST(CapacityByCloud, NeverMeansNoSpotNode) {
  for (const PlacementRequest& placement_request :
       {With(v1::SPOT_NEVER), With(v1::PREFERRED, /*on_demand=*/true)}) {
    const PodScheduling place = Place(placement_request);
    for (const auto& labels : SpotNodes()) EXPECT_FALSE(Takes(place, NodeWith(labels))) << labels;
    for (const auto& labels : OtherNodes()) EXPECT_TRUE(Takes(place, NodeWith(labels))) << labels;
    EXPECT_THAT(place.tolerations, IsEmpty());
  }
}

TEST(CapacityByCloud, PreferredTakesAnyNode) {
  const PodScheduling place = Place(With(v1::PREFERRED));
  EXPECT_TRUE(Takes(place, NodeWith("{}")));
  EXPECT_EQ(place.preferred.size(), SpotNodes().size());
  EXPECT_FALSE(place.tolerations.empty());
}

// Nobody has said that there are two kinds of nodes: a cluster of spot nodes alone must do.
TEST(CapacityByCloud, WithoutAPolicyNothingIsAskedForAndOnDemandOnlyPreferred) {
  const PodScheduling plain = Place({});
  EXPECT_TRUE(plain.required.empty() && plain.preferred.empty() && plain.tolerations.empty());
  const PodScheduling later = Place(With(v1::SPOT_POLICY_UNSPECIFIED, /*on_demand=*/true));
  EXPECT_TRUE(Takes(later, NodeWith(SpotNodes()[0])));
  EXPECT_EQ(later.preferred.size(), 1u);
}

TEST(CapacityByCloud, OnDemandWhereSpotIsRequiredStaysSpot) {
  EXPECT_FALSE(Takes(Place(With(v1::REQUIRED, /*on_demand=*/true)), NodeWith("{}")));
}

// ---- with pools ---------------------------------------------------------------------------------

TEST(CapacityByPools, OnePoolBecomesItsSelector) {
  PlacementRequest placement_request = With(v1::PREFERRED);
  placement_request.policy.add_pools("a100-spot");
  const PodScheduling place = Place(placement_request, TwoPools());
  EXPECT_EQ(place.node_selector.dump(), R"({"pool":"a100","spot":"true"})");
  EXPECT_TRUE(place.required.empty());
  EXPECT_THAT(place.pools, ElementsAre("a100-spot"));
  EXPECT_EQ(place.price_per_hour, 1.0);
  EXPECT_EQ(place.tolerations[0]["key"], "spot");
}

TEST(CapacityByPools, SeveralBecomeAlternativesTheFirstPreferred) {
  const PodScheduling place = Place({}, TwoPools());
  EXPECT_THAT(place.pools, ElementsAre("a100-spot", "a100"));
  EXPECT_TRUE(Takes(place, NodeWith(R"({"pool": "a100", "spot": "true"})")));
  EXPECT_TRUE(Takes(place, NodeWith(R"({"pool": "a100"})")));
  EXPECT_FALSE(Takes(place, NodeWith(R"({"pool": "v100"})")));
  ASSERT_EQ(place.preferred.size(), 1u);
  EXPECT_EQ(place.preferred[0]["weight"], 100);
  EXPECT_EQ(place.price_per_hour, 3.0);
}

TEST(CapacityByPools, PolicyDecidesWhichAreLeft) {
  EXPECT_THAT(Place(With(v1::REQUIRED), TwoPools()).pools, ElementsAre("a100-spot"));
  EXPECT_THAT(Place(With(v1::SPOT_NEVER), TwoPools()).pools, ElementsAre("a100"));
  EXPECT_THAT(Place(With(v1::PREFERRED, /*on_demand=*/true), TwoPools()).pools,
              ElementsAre("a100"));
  PlacementRequest named;
  named.policy.add_pools("a100");
  named.policy.add_pools("a100-spot");
  EXPECT_THAT(Place(named, TwoPools()).pools, ElementsAre("a100", "a100-spot"));
}

TEST(CapacityByPools, AnEmptySelectionSaysHowToGoOn) {
  PlacementRequest placement_request = With(v1::REQUIRED);
  placement_request.policy.add_pools("a100");
  const Status no_spot = SchedulingFor(placement_request, TwoPools()).status();
  EXPECT_THAT(Message(no_spot),
              HasSubstr("cannot progress: spec.shirabe.capacity.spot is required"));
  EXPECT_TRUE(absl::IsResourceExhausted(no_spot)) << "it waits for one";
  EXPECT_EQ(EventReasonOf(no_spot), kPoolMissing);
  placement_request.policy.add_pools("h100");
  EXPECT_EQ(EventReasonOf(SchedulingFor(placement_request, TwoPools()).status()), kPoolMissing);
  EXPECT_THAT(Message(SchedulingFor(placement_request, TwoPools()).status()),
              HasSubstr("names \"h100\", and the controller knows no such pool; it has: a100"));
  EXPECT_THAT(Message(SchedulingFor(placement_request, {}).status()), HasSubstr("it has: none"));
}

// A pool without a selector has the nodes that the cloud itself calls so.
TEST(CapacityByPools, WithoutASelectorTheCloudsLabelsTell) {
  const v1::NodePools pools = SpotPool(1);
  EXPECT_TRUE(Takes(Place({}, pools), NodeWith(SpotNodes()[3])));
  EXPECT_FALSE(Takes(Place({}, pools), NodeWith("{}")));
  EXPECT_EQ(NodeCapacityOf(NodeWith(SpotNodes()[3]), pools).pool, "spot");
  EXPECT_EQ(NodeCapacityOf(NodeWith("{}"), pools).pool, "");
}

// Clouds taint their spot nodes: who asks for a spot pool bears that, whatever the pool says.
TEST(CapacityByPools, ASpotPoolsTaintsAreTolerated) {
  for (const v1::NodePools& pools : {SpotPool(1), TwoPools()}) {
    for (const Json& toleration : Place(With(v1::REQUIRED)).tolerations) {
      EXPECT_THAT(Place(With(v1::REQUIRED), pools).tolerations, testing::Contains(toleration));
    }
  }
  EXPECT_THAT(Place(With(v1::SPOT_NEVER), TwoPools()).tolerations, IsEmpty());
}

// ---- into the pod -------------------------------------------------------------------------------

TEST(ApplyScheduling, KeepsWhatTheUserWrote) {
  Json spec = Json::parse(R"({
    "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "mine"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
      "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In",
                                                   "values": ["a"]}]}]}}}})");
  ASSERT_TRUE(ApplyScheduling(Place({}, TwoPools()), spec).ok());
  EXPECT_EQ(spec["nodeSelector"]["disk"], "ssd");
  EXPECT_EQ(spec["tolerations"][0]["key"], "mine");
  const Json& required =
      spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(required["nodeSelectorTerms"].size(), 2u);  // one for each pool, zone a in both
  for (const Json& term : required["nodeSelectorTerms"]) {
    EXPECT_EQ(term["matchExpressions"][0]["key"], "zone");
    EXPECT_GT(term["matchExpressions"].size(), 1u);
  }
}

TEST(ApplyScheduling, AContradictionIsNamed) {
  PlacementRequest placement_request;
  placement_request.policy.add_pools("a100");
  Json spec = Json::parse(R"({"nodeSelector": {"pool": "v100"}})");
  const Status status = ApplyScheduling(Place(placement_request, TwoPools()), spec);
  EXPECT_THAT(Message(status), HasSubstr("pool=v100 and its pool for pool=a100"));
}

// ---- prices -------------------------------------------------------------------------------------

Json BigNode() {
  return Json::parse(R"({"metadata": {"name": "n", "labels": {"pool": "a100", "spot": "true"}},
    "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "8"}}})");
}

Json PodAsking(const std::string& requests, const std::string& init = "[]") {
  return Json::parse(R"({"spec": {"nodeName": "n", "initContainers": )" + init +
                     R"(, "containers": [{"name": "c", "resources": )" + requests + "}]}}");
}

TEST(Prices, TheLargestShareCounts) {
  const std::string gpus = R"({"limits": {"nvidia.com/gpu": 2, "cpu": "1"}})";
  EXPECT_DOUBLE_EQ(ShareOf(PodAsking(gpus), BigNode()), 0.25);
  EXPECT_DOUBLE_EQ(ShareOf(PodAsking(R"({"requests": {"cpu": "4000m"}})"), BigNode()), 0.25);
  EXPECT_DOUBLE_EQ(ShareOf(PodAsking(R"({"requests": {"memory": "32Gi"}})"), BigNode()), 0.5);
  EXPECT_DOUBLE_EQ(ShareOf(PodAsking(R"({"requests": {"cpu": 99}})"), BigNode()), 1.0);
  EXPECT_DOUBLE_EQ(ShareOf(PodAsking("{}"), BigNode()), 0.0);
  EXPECT_DOUBLE_EQ(ShareOf(PodAsking(gpus), Json()), 0.0);
}

TEST(Prices, SidecarsAddAndInitContainersDoNot) {
  const Json pod = PodAsking(R"({"requests": {"cpu": 4}})",
                             R"([{"name": "i", "resources": {"requests": {"cpu": 6}}},
          {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": 4}}}])");
  EXPECT_DOUBLE_EQ(ShareOf(pod, BigNode()), 0.5);
  // A sidecar that comes before an init container runs beside it.
  const Json beside = PodAsking(R"({"requests": {"cpu": 4}})", R"([
          {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": 4}}},
          {"name": "i", "resources": {"requests": {"cpu": 6}}}])");
  EXPECT_DOUBLE_EQ(ShareOf(beside, BigNode()), 0.625);
}

TEST(Prices, OfAllPoolsThatFitTheClosestAndOfThoseTheFirst) {
  v1::NodePools pools;
  *Pool(pools, "both", v1::SPOT, 1).mutable_node_selector() =
      ParseStruct(R"({"pool": "a100", "spot": true})");
  *Pool(pools, "one", v1::ON_DEMAND, 2).mutable_node_selector() =
      ParseStruct(R"({"pool": "a100"})");
  *Pool(pools, "other", v1::ON_DEMAND, 3).mutable_node_selector() =
      ParseStruct(R"({"spot": true})");
  EXPECT_EQ(NodeCapacityOf(BigNode(), pools).pool, "both");
  pools.mutable_pools()->DeleteSubrange(0, 1);
  EXPECT_EQ(NodeCapacityOf(BigNode(), pools).pool, "one");
}

TEST(Prices, OfAPlacement) {
  const Json pod = PodAsking(R"({"limits": {"nvidia.com/gpu": "4"}})");
  const v1::Placement placement = PlacementOf(pod, BigNode(), TwoPools());
  EXPECT_EQ(placement.node(), "n");
  EXPECT_EQ(placement.pool(), "a100-spot");  // the closer of the two selectors
  EXPECT_EQ(placement.capacity(), "spot");
  EXPECT_DOUBLE_EQ(placement.price_per_hour(), 0.5);
  EXPECT_DOUBLE_EQ(placement.on_demand_price_per_hour(), 1.5);
  EXPECT_EQ(PlacementOf(pod, Json(), TwoPools()).capacity(), "");
  EXPECT_EQ(PlacementOf(pod, NodeWith(SpotNodes()[0]), {}).capacity(), "spot");
}

Json Saying(const char* where, const Json& price) {
  Json node = BigNode();
  node["metadata"][where][kPriceAnnotation] = price;
  return node;
}

TEST(Prices, WhatANodeSaysItselfComesBeforeItsPoolsPrice) {
  EXPECT_EQ(NodeCapacityOf(Saying("annotations", "0.25"), TwoPools()).price_per_hour, 0.25);
  EXPECT_EQ(NodeCapacityOf(Saying("labels", "0.25"), TwoPools()).price_per_hour, 0.25);
  Json both = Saying("labels", "0.25");
  both["metadata"]["annotations"][kPriceAnnotation] = "0.75";
  EXPECT_EQ(NodeCapacityOf(both, TwoPools()).price_per_hour, 0.75);
  EXPECT_EQ(NodeCapacityOf(Saying("annotations", "0"), TwoPools()).price_per_hour, 0);
  // Of a spot node the pools know what the same would be on demand.
  EXPECT_EQ(NodeCapacityOf(both, TwoPools()).on_demand_price_per_hour, 3);
  EXPECT_EQ(NodeCapacityOf(both, {}).price_per_hour, 0.75);
  EXPECT_EQ(NodeCapacityOf(both, {}).pool, "");
  const Json pod = PodAsking(R"({"limits": {"nvidia.com/gpu": 4}})");
  EXPECT_DOUBLE_EQ(PlacementOf(pod, both, {}).price_per_hour(), 0.375);
}

TEST(Prices, WhatIsNoPriceDoesNotCount) {
  for (const char* bad : {"", "0,25", "-1", "inf", "nan", "1e999", "$3", "0.25 USD"}) {
    EXPECT_EQ(OwnPriceOf(Saying("annotations", bad)), std::nullopt) << bad;
  }
  EXPECT_EQ(OwnPriceOf(Saying("annotations", 0.25)), std::nullopt);
  EXPECT_EQ(OwnPriceOf(Json()), std::nullopt);
  EXPECT_EQ(NodeCapacityOf(Saying("annotations", "0,25"), TwoPools()).price_per_hour, 1);
}

TEST(Prices, AnEstimateIsOfTheDearestNodeThatMayBeTaken) {
  const Json object = {{"kind", "Pod"}, {"spec", PodAsking(R"({"limits": {"cpu": 8}})")["spec"]}};
  const auto estimate = [&](const PlacementRequest& request, const v1::NodePools& pools,
                            const std::vector<Json>& nodes) {
    return EstimatePrice(object, Place(request, pools), nodes, pools);
  };
  Json spot = Saying("annotations", "2");
  spot["metadata"]["labels"]["cloud.google.com/gke-spot"] = "true";
  const std::vector<Json> nodes = {BigNode(), Saying("annotations", "6"), spot};
  EXPECT_DOUBLE_EQ(estimate({}, {}, nodes), 3);
  EXPECT_DOUBLE_EQ(estimate(With(v1::REQUIRED), {}, nodes), 1);
  EXPECT_DOUBLE_EQ(estimate(With(v1::SPOT_NEVER), {}, nodes), 3);
  EXPECT_DOUBLE_EQ(estimate({}, {}, {BigNode()}), 0);
  // Pools: a node's own price counts in its pool, and a pool without a node is paid as a whole one.
  EXPECT_DOUBLE_EQ(estimate(With(v1::REQUIRED), TwoPools(), nodes), 3);
  EXPECT_DOUBLE_EQ(estimate(With(v1::REQUIRED), TwoPools(), {BigNode()}), 0.5);
  EXPECT_DOUBLE_EQ(estimate(With(v1::REQUIRED), TwoPools(), {}), 1);
  EXPECT_DOUBLE_EQ(estimate(With(v1::SPOT_NEVER), TwoPools(), nodes), 3);
}

TEST(Prices, Quantities) {
  EXPECT_EQ(ParseQuantity("100m"), 0.1);
  EXPECT_EQ(ParseQuantity("1.5Gi"), 1.5 * (1 << 30));
  EXPECT_EQ(ParseQuantity("2e3"), 2000);
  EXPECT_EQ(ParseQuantity("3E"), 3e18);
  EXPECT_EQ(ParseQuantity(4), 4);
  const std::pair<const char*, double> units[] = {
      {"1n", 1e-9},    {"1u", 1e-6},    {"1m", 1e-3},    {"1", 1},
      {"1k", 1e3},     {"1M", 1e6},     {"1G", 1e9},     {"1T", 1e12},
      {"1P", 1e15},    {"1E", 1e18},    {"1Ki", 1024},   {"1Mi", 1048576},
      {"1Gi", 0x1p30}, {"1Ti", 0x1p40}, {"1Pi", 0x1p50}, {"1Ei", 0x1p60}};
  for (const auto& [text, amount] : units) EXPECT_EQ(ParseQuantity(text), amount) << text;
  for (const char* bad : {"", "Gi", "1.5 Gi", "1GiB", "one"}) {
    EXPECT_EQ(ParseQuantity(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseQuantity(Json()), std::nullopt);
}

// ---- warnings -----------------------------------------------------------------------------------

Json Tainted(const std::string& key) {
  return {{"spec", {{"taints", Json::array({Json{{"key", key}, {"effect", "NoSchedule"}}})}}}};
}

TEST(NodeWarnings, AreKnownByTheirTaints) {
  for (const char* key :
       {"aws-node-termination-handler/spot-itn", "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted", "remediator.kubernetes.azure.com/unschedulable",
        "cloud.google.com/impending-node-termination", "node.kubernetes.io/out-of-service"}) {
    const auto warning = NodeWarningOf(Tainted(key));
    ASSERT_TRUE(warning.has_value()) << key;
    EXPECT_EQ(warning->reason, key);
    EXPECT_FALSE(warning->hint) << key;
  }
  EXPECT_TRUE(NodeWarningOf(Tainted("DeletionCandidateOfClusterAutoscaler"))->hint);
  EXPECT_FALSE(NodeWarningOf(Tainted("node.kubernetes.io/unschedulable")).has_value());
  EXPECT_FALSE(NodeWarningOf(Json()).has_value());
}

TEST(NodeWarnings, WhatIsCertainComesFirst) {
  Json node = Tainted("DeletionCandidateOfClusterAutoscaler");
  node["spec"]["taints"].push_back({{"key", "ToBeDeletedByClusterAutoscaler"}});
  EXPECT_EQ(NodeWarningOf(node)->reason, "ToBeDeletedByClusterAutoscaler");
}

TEST(NodeWarnings, OfAKubeletThatShutsDown) {
  Json node = Json::parse(R"({"status": {"conditions": [{"type": "Ready", "status": "False",
    "reason": "KubeletNotReady", "message": "node is shutting down"}]}})");
  EXPECT_EQ(NodeWarningOf(node)->reason, "NodeShutdown");
  EXPECT_FALSE(IsReady(node));
  node["status"]["conditions"][0]["status"] = "True";
  EXPECT_FALSE(NodeWarningOf(node).has_value());
  EXPECT_TRUE(IsReady(node));
}

TEST(NodeWarnings, OutOfServiceIsTheEnd) {
  EXPECT_THAT(OutOfService(Tainted("node.kubernetes.io/out-of-service")), HasSubstr("declared"));
  EXPECT_EQ(OutOfService(Tainted("karpenter.sh/disrupted")), "");
}

}  // namespace
}  // namespace shirabe::trial
