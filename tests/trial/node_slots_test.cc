#include "trial/node_slots.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial/pools.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kSlotTime = absl::Seconds(1000);

// Dear and cheap ones of either kind.
v1::NodePools FourPools() {
  v1::NodePools pools;
  AddPool(pools, "big", v1::ON_DEMAND, 1).set_price_per_hour(4);
  AddPool(pools, "spot-dear", v1::SPOT, 1).set_price_per_hour(2);
  AddPool(pools, "small", v1::ON_DEMAND, 1).set_price_per_hour(3);
  AddPool(pools, "spot-cheap", v1::SPOT, 1).set_price_per_hour(1);
  return pools;
}

PlacementRequest WithNodes(v1::SpotPolicy spot, std::initializer_list<const char*> pools = {},
                           bool on_demand = false) {
  PlacementRequest placement_request;
  placement_request.policy.set_spot(spot);
  for (const char* pool : pools) placement_request.policy.add_pools(pool);
  placement_request.on_demand = on_demand;
  return placement_request;
}

// The pools of all slots that it gives out, in order.
std::string TakenInOrder(const v1::NodePools& pools, const PlacementRequest& placement_request) {
  NodeSlots nodes(pools);
  std::string order;
  for (;;) {
    const auto placement = nodes.Allocate(placement_request, kSlotTime);
    if (!placement.ok()) return order;
    order += (order.empty() ? "" : " ") + placement->pool();
  }
}

TEST(NodeSlots, OrderFollowsThePolicy) {
  const v1::NodePools pools = FourPools();
  EXPECT_EQ(TakenInOrder(pools, {}), "spot-cheap spot-dear small big");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::PREFERRED)), "spot-cheap spot-dear small big");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::REQUIRED)), "spot-cheap spot-dear");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::SPOT_NEVER)), "small big");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::PREFERRED, {"big", "spot-dear"})), "big spot-dear");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::REQUIRED, {"big", "spot-dear"})), "spot-dear");
}

TEST(NodeSlots, AfterTooManyPreemptionsOnDemandWhereThereIsSome) {
  const v1::NodePools pools = FourPools();
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::PREFERRED, {}, true)), "small big");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::PREFERRED, {"spot-dear", "big"}, true)), "big");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::PREFERRED, {"spot-dear"}, true)), "spot-dear");
  EXPECT_EQ(TakenInOrder(pools, WithNodes(v1::REQUIRED, {}, true)), "spot-cheap spot-dear");
}

TEST(NodeSlots, APlaceHasItsPrices) {
  NodeSlots nodes(FourPools());
  const auto placement = nodes.Allocate({}, kSlotTime);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->node(), "spot-cheap-0");
  EXPECT_EQ(placement->capacity(), "spot");
  EXPECT_EQ(placement->price_per_hour(), 1);
  EXPECT_EQ(placement->on_demand_price_per_hour(), 3);
  EXPECT_EQ(ReclaimCause(*placement), v1::PREEMPTED_SPOT);
  // Without an on-demand pool nothing was saved.
  NodeSlots spot_only(SpotPool(1));
  EXPECT_EQ(spot_only.Allocate({}, kSlotTime)->on_demand_price_per_hour(), 0.9);
}

TEST(NodeSlots, NoPoolAtAllIsAnErrorThatNamesTheFix) {
  const NodeSlots nodes(SpotPool(1));
  const auto error = [&](const PlacementRequest& placement_request) {
    return Message(nodes.Check(placement_request));
  };
  EXPECT_THAT(error(WithNodes(v1::SPOT_NEVER)), HasSubstr("cannot progress: spec.shirabe."));
  EXPECT_THAT(error(WithNodes(v1::PREFERRED, {"gpu"})), HasSubstr("names \"gpu\""));
  EXPECT_THAT(error(WithNodes(v1::PREFERRED, {"spot", "gpu"})), HasSubstr("it has: spot"));
  v1::NodePools on_demand;
  AddPool(on_demand, "gpu", v1::ON_DEMAND, 1);
  EXPECT_THAT(Message(NodeSlots(on_demand).Check(WithNodes(v1::REQUIRED))),
              HasSubstr("is required and no pool of the nodes file is spot"));
  EXPECT_TRUE(
      NodeSlots({}).Check(WithNodes(v1::REQUIRED, {"gpu"})).ok());  // no nodes file, no limits
}

TEST(NodeSlots, WhatIsMarkedIsNotGivenOut) {
  NodeSlots nodes(SpotPool(3));
  nodes.Mark("spot-1");
  nodes.Mark("spot-9");
  nodes.Mark("elsewhere-0");
  nodes.Mark("");
  EXPECT_EQ(nodes.Allocate({}, kSlotTime)->node(), "spot-0");
  EXPECT_EQ(nodes.Allocate({}, kSlotTime)->node(), "spot-2");
  EXPECT_TRUE(absl::IsResourceExhausted(nodes.Allocate({}, kSlotTime).status()));
  nodes.Release("spot-1");
  EXPECT_EQ(nodes.Allocate({}, kSlotTime)->node(), "spot-1");
}

// "a-1" is a slot of "a", and "a-1-0" one of the pool "a-1".
TEST(NodeSlots, PoolsWithLikeNamesAreKeptApart) {
  v1::NodePools pools;
  AddPool(pools, "a", v1::SPOT, 2);
  AddPool(pools, "a-1", v1::SPOT, 2);
  NodeSlots nodes(pools);
  nodes.Mark("a-1");
  nodes.Mark("a-1-0");
  EXPECT_EQ(nodes.Allocate(WithNodes(v1::PREFERRED, {"a"}), kSlotTime)->node(), "a-0");
  EXPECT_EQ(nodes.Allocate(WithNodes(v1::PREFERRED, {"a-1"}), kSlotTime)->node(), "a-1-1");
}

TEST(NodeSlots, ASlotThatIsAwayComesBack) {
  NodeSlots nodes(SpotPool(2));
  ASSERT_TRUE(nodes.Allocate({}, kSlotTime).ok());
  nodes.SetAway("spot-1", kSlotTime + absl::Seconds(11.5));
  EXPECT_EQ(Message(nodes.Allocate({}, kSlotTime).status()),
            "no free slot in pool spot (1 of 2 busy, 1 returns in 12 s)");
  EXPECT_EQ(nodes.NextReturn(kSlotTime), kSlotTime + absl::Seconds(11.5));
  const absl::Duration later = kSlotTime + absl::Seconds(12);
  EXPECT_EQ(nodes.NextReturn(later), std::nullopt);
  EXPECT_EQ(nodes.Allocate({}, later)->node(), "spot-1");
}

TEST(NodeSlots, ReleasingASlotThatIsAwayDoesNotBringItBack) {
  NodeSlots nodes(SpotPool(1));
  ASSERT_TRUE(nodes.Allocate({}, kSlotTime).ok());
  nodes.SetAway("spot-0", kSlotTime + absl::Seconds(5));
  nodes.SetAway("spot-0", kSlotTime + absl::Seconds(1));  // a later word may only be longer
  nodes.Release("spot-0");
  EXPECT_FALSE(nodes.Allocate({}, kSlotTime + absl::Seconds(4)).ok());
  EXPECT_TRUE(nodes.Allocate({}, kSlotTime + absl::Seconds(5)).ok());
}

TEST(NodeSlots, AQuoteNamesTheHighestPriceAndWhatIsWaitedFor) {
  NodeSlots nodes(FourPools());
  EXPECT_EQ(nodes.QuotePlacement({}, kSlotTime).waiting, "");
  EXPECT_EQ(nodes.QuotePlacement({}, kSlotTime).price_per_hour, 4);
  EXPECT_EQ(nodes.QuotePlacement(WithNodes(v1::REQUIRED), kSlotTime).price_per_hour, 2);
  const PlacementRequest two = WithNodes(v1::PREFERRED, {"small", "spot-cheap"});
  nodes.Mark("small-0");
  nodes.Mark("spot-cheap-0");
  EXPECT_EQ(nodes.QuotePlacement(two, kSlotTime).waiting,
            "no free slot in pool small (1 of 1 busy) or spot-cheap (1 of 1 busy)");
  EXPECT_EQ(nodes.QuotePlacement(two, kSlotTime).price_per_hour, 3);
}

}  // namespace
}  // namespace shirabe::trial
