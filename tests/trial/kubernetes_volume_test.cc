// What the executor `kubernetes` does about the volume of the checkpoints: what it accepts, and
// what it leaves there.
#include "trial/kubernetes/checkpoint_volume.h"

#include <atomic>
#include <cmath>

#include "tests/trial/kubernetes_fixture.h"
#include "trial/kubernetes/checkpoint_volume.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class VolumeTest : public KubernetesTest {
 protected:
  v1::ExperimentSpec Spec(int parallel = 3) {
    v1::ExperimentSpec spec;
    spec.set_parallel_trial_count(parallel);
    const AttemptRequest request = PodRequestFor(Nth(1));
    *spec.mutable_trial_template() = request.cluster.trial_template;
    *spec.mutable_trial_template()->mutable_trial_spec() = request.trial_spec;
    *spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume() = request.cluster.volume;
    return spec;
  }
  void PutClaim(const Json& modes) {
    cluster_.Put(Claims(), {{"metadata", {{"name", "checkpoints"}, {"namespace", "lab"}}},
                            {"spec", {{"accessModes", modes}}}});
  }
  kube::Ref CleanerRef() { return {Jobs(), kTuning.ns, "tuning-clean"}; }
  void EndCleaner(const char* condition) {
    Json job = *cluster_.Get(CleanerRef());
    job["status"]["conditions"] = {{{"type", condition}, {"status", "True"}}};
    cluster_.Put(Jobs(), job);
  }
};

// ---- before it begins ---------------------------------------------------------------------------

TEST_F(VolumeTest, AClaimThatOneNodeCanMountIsNotForSeveralTrials) {
  PutClaim({"ReadWriteOnce"});
  const Status refused = CheckSharedClaim(cluster_, kTuning, Spec(3));
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  for (const char* words :
       {"spec.shirabe.checkpoint.volume.claim: \"checkpoints\" is ReadWriteOnce", "one node",
        "spec.parallelTrialCount is 3", "ReadWriteMany", "volume.size", "parallelTrialCount: 1"}) {
    EXPECT_THAT(Message(refused), HasSubstr(words));
  }
  EXPECT_TRUE(CheckSharedClaim(cluster_, kTuning, Spec(1)).ok());
  PutClaim({"ReadWriteOncePod"});
  EXPECT_THAT(Message(CheckSharedClaim(cluster_, kTuning, Spec(2))),
              HasSubstr("one pod at a time"));
}

TEST_F(VolumeTest, AClaimThatManyNodesCanMountIsForAll) {
  PutClaim({"ReadWriteOnce", "ReadWriteMany"});
  EXPECT_TRUE(CheckSharedClaim(cluster_, kTuning, Spec(3)).ok());
}

TEST_F(VolumeTest, NobodySavesOnAClaimThatIsOnlyRead) {
  PutClaim({"ReadOnlyMany"});
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSharedClaim(cluster_, kTuning, Spec(1))));
}

TEST_F(VolumeTest, AClaimMayComeLater) {
  cluster_.Remove({Claims(), kTuning.ns, "checkpoints"});
  const Status missing = CheckSharedClaim(cluster_, kTuning, Spec());
  EXPECT_TRUE(absl::IsFailedPrecondition(missing)) << missing;
  EXPECT_THAT(Message(missing), HasSubstr("namespace lab has no PersistentVolumeClaim"));
  EXPECT_THAT(Message(missing), HasSubstr("accessModes: [ReadWriteMany]"));
}

TEST_F(VolumeTest, WhereNoClaimIsSharedNobodyIsAsked) {
  v1::ExperimentSpec spec = Spec();
  spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume()->Clear();
  spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume()->set_size("1Gi");
  const int before = cluster_.Calls("get");
  EXPECT_TRUE(CheckSharedClaim(cluster_, kTuning, spec).ok());
  EXPECT_EQ(cluster_.Calls("get"), before);
}

// An API server that is away refuses nothing.
TEST_F(VolumeTest, WhatCannotBeFoundOutIsNoRefusal) {
  cluster_.before = [](const std::string& verb, const kube::Ref&) {
    return verb == "get" ? absl::UnavailableError("away") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsUnavailable(CheckSharedClaim(cluster_, kTuning, Spec())));
}

// It may have been accepted by a server that has no list, or before there was one.
TEST_F(VolumeTest, AFolderOfTheNodesThatIsNotAllowedIsNeverMounted) {
  AttemptRequest request = PodRequestFor(Nth(1));
  request.cluster.volume.clear_claim();
  request.cluster.volume.set_host_path("/etc");
  const Status waits = executor().Start(request);
  EXPECT_TRUE(absl::IsResourceExhausted(waits)) << waits;
  EXPECT_THAT(Message(waits), HasSubstr("--allow-host-path"));
  EXPECT_FALSE(HasJob(Nth(1)));
  v1::ExperimentSpec spec = Spec();
  *spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume() = request.cluster.volume;
  executor().CleanVolume(kTuning, spec);
  EXPECT_THAT(cluster_.All(Jobs()), IsEmpty()) << "nor is it cleaned";
}

// ---- after it ended -----------------------------------------------------------------------------

TEST_F(VolumeTest, RemovingFilesStartsTheJobThatCleansTheVolume) {
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, Spec());
  EXPECT_TRUE(cluster_.Get(CleanerRef()).ok()) << "when the call returns, the cluster knows";
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, Spec());
  EXPECT_THAT(cluster_.All(Jobs()), SizeIs(1)) << "doing it again is harmless";
}

TEST_F(VolumeTest, WithoutASharedVolumeThereIsNoJob) {
  v1::ExperimentSpec spec = Spec();
  spec.mutable_shirabe()->clear_checkpoint();
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, spec);
  EXPECT_THAT(cluster_.All(Jobs()), IsEmpty());
}

TEST_F(VolumeTest, AnApiServerThatIsAwayIsAskedAgain) {
  std::atomic<int> refuse = 3;
  cluster_.before = [&](const std::string& verb, const kube::Ref&) {
    return verb == "create" && refuse-- > 0 ? absl::UnavailableError("away") : absl::OkStatus();
  };
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, Spec());
  EXPECT_TRUE(Await([&] { return cluster_.Get(CleanerRef()).ok(); }));
}

TEST_F(VolumeTest, AFinishedJobOfAnEarlierExperimentMakesRoom) {
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, Spec());
  EndCleaner("Complete");
  const std::string uid = UidOf(*cluster_.Get(CleanerRef()));
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, Spec());
  EXPECT_TRUE(Await([&] {
    const auto job = cluster_.Get(CleanerRef());
    return job.ok() && UidOf(*job) != uid;
  }));
}

TEST_F(VolumeTest, ANewExperimentOfTheNameWaitsForAnEmptyFolder) {
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, Spec());
  Reopen();
  const Status waits = executor().Start(PodRequestFor(Nth(1)));
  EXPECT_TRUE(absl::IsResourceExhausted(waits)) << waits;
  EXPECT_THAT(Message(waits), HasSubstr("lab/tuning-clean has not ended"));
  EndCleaner("Failed");
  EXPECT_THAT(Message(executor().Start(PodRequestFor(Nth(1)))),
              HasSubstr("delete the folder trials/lab/tuning of the volume"));
  EndCleaner("Complete");
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(1))).ok());
  const int asked = cluster_.Calls("get");
  EXPECT_TRUE(executor().Start(PodRequestFor(Nth(2))).ok());
  EXPECT_EQ(cluster_.Calls("get"), asked) << "once for each experiment";
}

// ---- while it runs ------------------------------------------------------------------------------

class PruneTest : public VolumeTest {
 protected:
  kube::Ref PrunerRef() { return {Jobs(), kTuning.ns, "tuning-prune"}; }
  bool HasPruner() { return cluster_.Get(PrunerRef()).ok(); }
  Json Words() {
    const auto job = cluster_.Get(PrunerRef());
    if (!job.ok()) return Json::array({""});
    return (*job)["spec"]["template"]["spec"]["containers"][0]["command"];
  }
  void EndPruner(const char* condition) {
    Json job = *cluster_.Get(PrunerRef());
    job["status"]["conditions"] = {{{"type", condition}, {"status", "True"}}};
    cluster_.Put(Jobs(), job);
  }
};

// No pod mounts the folder of another attempt, so that none can delete what it has saved.
TEST_F(PruneTest, AJobDeletesWhatNoSidecarReaches) {
  executor().UseVolume(kTuning, Spec());
  executor().Prune(Saved(Nth(1), 10));
  executor().Prune(Saved(Nth(2), 30));
  ASSERT_TRUE(Await([&] { return HasPruner(); }));
  EXPECT_EQ(Words(),
            Json::parse(R"(["shirabe", "pod", "prune", "lab", "tuning", "1/1/10", "2/1/30"])"));
  executor().Prune(Saved(Nth(3), 5));
  EndPruner("Complete");
  ASSERT_TRUE(Await([&] { return Words().back() == "3/1/5"; }));
  EXPECT_THAT(Words(), SizeIs(6)) << "what is deleted is not deleted again";
  EndPruner("Complete");
  EXPECT_TRUE(Await([&] { return !HasPruner(); }));
}

TEST_F(PruneTest, OneThatFailsIsTriedAgain) {
  executor().UseVolume(kTuning, Spec());
  executor().Prune(Saved(Nth(1), 10));
  ASSERT_TRUE(Await([&] { return HasPruner(); }));
  const std::string uid = UidOf(*cluster_.Get(PrunerRef()));
  EndPruner("Failed");
  EXPECT_TRUE(Await([&] {
    const auto job = cluster_.Get(PrunerRef());
    return job.ok() && UidOf(*job) != uid;
  }));
}

TEST_F(PruneTest, WithTheExperimentItGoesToo) {
  executor().UseVolume(kTuning, Spec());
  executor().Prune(Saved(Nth(1), 10));
  ASSERT_TRUE(Await([&] { return HasPruner(); }));
  ASSERT_TRUE(executor().RemoveFiles(kTuning, 0).ok());
  executor().CleanVolume(kTuning, Spec());
  EXPECT_TRUE(Await([&] { return !HasPruner(); }));
}

TEST_F(PruneTest, WhereEachTrialHasItsOwnVolumeThereIsNoJob) {
  v1::ExperimentSpec spec = Spec();
  spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume()->Clear();
  spec.mutable_shirabe()->mutable_checkpoint()->mutable_volume()->set_size("1Gi");
  executor().UseVolume(kTuning, spec);
  executor().Prune(Saved(Nth(1), 10));
  Pause(absl::Milliseconds(300));
  EXPECT_THAT(cluster_.All(Jobs()), IsEmpty());
}

// ---- prices -------------------------------------------------------------------------------------

TEST_F(VolumeTest, AQuoteIsThePodsShareAsItsPlacementIsLater) {
  v1::NodePool& pool = *pools_.add_pools();
  pool.set_name("cheap");
  pool.set_price_per_hour(2);
  (*pool.mutable_node_selector()->mutable_fields())["pool"].set_string_value("cheap");
  AttemptRequest request = PodRequestFor(Nth(1));
  Json job = FromStruct(request.trial_spec);
  job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "990m";
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(job.dump(), &request.trial_spec).ok());
  PutNode("node-1", "True", Json::array(), {{"pool", "cheap"}});
  Reopen();
  ASSERT_TRUE(Await([&] { return executor().Synced(); }));
  // 990m of the program and 10m of our sidecar, of 4 CPUs.
  ASSERT_TRUE(Await([&] {
    return std::abs(executor().QuotePlacement(kTuning, request.trial_spec, {}).price_per_hour -
                    0.5) < 1e-9;
  })) << executor().QuotePlacement(kTuning, request.trial_spec, {}).price_per_hour;
  ASSERT_TRUE(executor().Start(request).ok());
  EXPECT_DOUBLE_EQ(See(Nth(1)).placement.price_per_hour(), 0.5);
  MakePod(Nth(1));
  RunPod(Nth(1), "node-1");
  ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.pool() == "cheap"; }));
  EXPECT_DOUBLE_EQ(See(Nth(1)).placement.price_per_hour(), 0.5);
}

TEST_F(VolumeTest, AQuoteFollowsWhatNodesSayTheyCost) {
  const AttemptRequest request = PodRequestFor(Nth(1));
  const auto quote = [&] {
    return executor().QuotePlacement(kTuning, request.trial_spec, {}).price_per_hour;
  };
  ASSERT_TRUE(Await([&] { return executor().Synced(); }));
  EXPECT_EQ(quote(), 0);
  PutNode("dear", "True", Json::array(), {{kPriceAnnotation, "400"}});
  EXPECT_TRUE(Await([&] { return quote() > 0; }));
}

}  // namespace
}  // namespace shirabe::trial
