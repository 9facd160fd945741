// Checkpoints through the process executor, with real programs: what is committed while they run,
// when they end and after a restart, and what the next attempt goes on from.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/trial/executor_harness.h"
#include "trial/checkpoint/checkpoint_manifest.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = AttemptStatus::State;
namespace fs = std::filesystem;

// Shell: `save STEP TEXT` as the contract asks.
constexpr const char* kProcessCheckpointSave =
    "cd $SHIRABE_CHECKPOINT_DIR; save() { mkdir $1.tmp && printf %s \"$2\" > $1.tmp/model && "
    "mv $1.tmp $1; }; ";

class ProcessCheckpointTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(harness_.Open(), nullptr); }

  static Ask Script(const std::string& script) {
    return {.argv = Shell(kProcessCheckpointSave + script)};
  }
  // A script that goes on once `Go` is called.
  Ask Waiting(const std::string& before, const std::string& after) const {
    return Script(
        absl::StrCat(before, "; until test -e ", GoPath(), "; do sleep 0.02; done; ", after));
  }
  std::string GoPath() const { return harness_.home() + "/go"; }
  void Go() { ASSERT_TRUE(WriteFileAtomic(GoPath(), "").ok()); }

  Status StartFrom(const AttemptKey& key, const Ask& ask, std::vector<v1::Checkpoint> resume) {
    AttemptRequest request = MakeRequest(key, ask);
    request.resume = std::move(resume);
    return harness_.executor().Start(request);
  }
  AttemptStatus Run(const AttemptKey& key, const Ask& ask,
                    std::vector<v1::Checkpoint> resume = {}) {
    const Status status = StartFrom(key, ask, std::move(resume));
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? harness_.AwaitEnd(key) : AttemptStatus();
  }
  // Until that many are committed.
  std::vector<v1::Checkpoint> AwaitCommitted(const AttemptKey& key, size_t count) {
    std::vector<v1::Checkpoint> checkpoints;
    EXPECT_TRUE(harness_.Await([&] {
      checkpoints = harness_.See(key).value_or(AttemptStatus()).checkpoints;
      return checkpoints.size() >= count;
    }));
    return checkpoints;
  }
  static std::vector<int64_t> Steps(const std::vector<v1::Checkpoint>& checkpoints) {
    std::vector<int64_t> steps;
    for (const v1::Checkpoint& checkpoint : checkpoints) steps.push_back(checkpoint.step());
    return steps;
  }
  std::string Path(const AttemptKey& key, int64_t step) {
    return absl::StrCat(harness_.executor().Paths(key).checkpoint_dir, "/", step);
  }
  std::string Model(const AttemptKey& key, int64_t step) {
    return ReadFile(Path(key, step) + "/model").value_or("(none)");
  }
  // An attempt that saved these steps, the text of each being its number, newest first.
  std::vector<v1::Checkpoint> Saved(const AttemptKey& key, const std::vector<int64_t>& steps) {
    std::string script = "true";
    for (const int64_t step : steps) absl::StrAppend(&script, "; save ", step, " ", step);
    std::vector<v1::Checkpoint> checkpoints = Run(key, Script(script)).checkpoints;
    EXPECT_EQ(checkpoints.size(), steps.size());
    return {checkpoints.rbegin(), checkpoints.rend()};
  }

  ExecutorHarness harness_;
};

const std::string kTell = "echo \"from=$SHIRABE_RESUME_FROM\"; cat $SHIRABE_RESUME_FROM/model";

// ---- committing ---------------------------------------------------------------------------------

TEST_F(ProcessCheckpointTest, AreCommittedWhileTheProgramRunsAndWhenItEnds) {
  ASSERT_TRUE(harness_.Start(Attempt(1), Waiting("save 10 a", "save 20 b; exit 3")).ok());
  EXPECT_THAT(Steps(AwaitCommitted(Attempt(1), 1)), ElementsAre(10));
  EXPECT_EQ(harness_.See(Attempt(1))->state, State::kRunning);
  Go();
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_THAT(Steps(end.checkpoints), ElementsAre(10, 20));
  EXPECT_THAT(end.refused, IsEmpty());
  EXPECT_EQ(end.resumed, std::nullopt);
  const v1::Checkpoint& last = end.checkpoints.back();
  EXPECT_EQ(last.namespace_(), "default");
  EXPECT_EQ(last.experiment(), "exp");
  EXPECT_EQ(last.trial(), 1);
  EXPECT_EQ(last.attempt(), 1);
  EXPECT_EQ(last.bytes(), 1);
  EXPECT_GE(FromProto(last.time()), FromProto(end.placement.start_time()) - absl::Seconds(1));
}

TEST_F(ProcessCheckpointTest, ManySavedInTheLastMomentAreAllThereAtTheEnd) {
  const AttemptStatus end =
      Run(Attempt(1),
          Script("for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3; do save $i$j x; done; done"));
  EXPECT_THAT(end.checkpoints, SizeIs(24));
}

TEST_F(ProcessCheckpointTest, AHalfSavedOneIsNeverTaken) {
  const AttemptStatus end = Run(Attempt(1), Script("save 10 a; mkdir 20.tmp; printf half > "
                                                   "20.tmp/model; kill -9 $$$$"));
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_THAT(Steps(end.checkpoints), ElementsAre(10));
  EXPECT_THAT(end.refused, IsEmpty());
  EXPECT_THAT(harness_.Log(Attempt(1)), IsEmpty());
  const AttemptStatus next = Run(Attempt(1, 2), Script(kTell), {end.checkpoints[0]});
  EXPECT_EQ(next.resumed->step(), 10);
}

TEST_F(ProcessCheckpointTest, WhatCannotBeCommittedIsSaidOnceAtTheEnd) {
  const AttemptStatus end =
      Run(Attempt(1), Script("save 0 a; mkdir 10.tmp 20; ln -s "
                             "/etc/passwd 10.tmp/link; mv 10.tmp 10; save 30 c"));
  EXPECT_THAT(Steps(end.checkpoints), ElementsAre(30));
  EXPECT_THAT(end.refused, ElementsAre(HasSubstr("from the beginning"), HasSubstr("link"),
                                       HasSubstr("step 20 cannot be committed: it holds no file")));
}

TEST_F(ProcessCheckpointTest, AFrameworksOwnNamesAreExplainedWhereNothingElseWasSaved) {
  const std::string save = "mkdir checkpoint-500 40.tmp .cache; echo > latest; ";
  EXPECT_THAT(Run(Attempt(1), Script(save)).refused,
              ElementsAre(HasSubstr("\"checkpoint-500\" is not taken for a checkpoint")));
  EXPECT_THAT(Run(Attempt(2), Script(save + "save 500 a")).refused, IsEmpty());
  EXPECT_THAT(Run(Attempt(3), Script("mkdir 40.tmp .cache; echo > latest")).refused, IsEmpty());
}

TEST_F(ProcessCheckpointTest, AnAdoptedAttemptsAreKnownAgain) {
  ASSERT_TRUE(harness_.Start(Attempt(1), Waiting("save 10 a", "save 20 b")).ok());
  const auto before = AwaitCommitted(Attempt(1), 1);
  ASSERT_NE(harness_.Open(), nullptr);
  harness_.executor().Adopt({Record(Attempt(1))});
  const auto after = AwaitCommitted(Attempt(1), 1);
  EXPECT_EQ(after[0].SerializeAsString(), before[0].SerializeAsString());
  Go();
  EXPECT_THAT(Steps(harness_.AwaitEnd(Attempt(1)).checkpoints), ElementsAre(10, 20));
}

TEST_F(ProcessCheckpointTest, WhatWasSavedWhileNobodyLookedIsCommittedAfterARestart) {
  ASSERT_TRUE(harness_.Start(Attempt(1), Waiting("true", "save 20 b; exit 5")).ok());
  harness_.Close();
  Go();
  const FileLayout layout(harness_.home());
  harness_.AwaitFile(layout.Paths(Attempt(1)).dir + "/exit");
  ASSERT_NE(harness_.Open(), nullptr);
  harness_.executor().Adopt({Record(Attempt(1))});
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(Steps(end.checkpoints), ElementsAre(20));
}

// ---- going on -----------------------------------------------------------------------------------

TEST_F(ProcessCheckpointTest, TheNextAttemptGoesOnFromACopyOfItsOwn) {
  const auto saved = Saved(Attempt(1), {10, 20});
  const std::string spoil = kTell + "; printf spoilt > 20/model; save 30 c";
  ASSERT_TRUE(StartFrom(Attempt(1, 2), Waiting(spoil, "true"), saved).ok());
  EXPECT_THAT(Steps(AwaitCommitted(Attempt(1, 2), 1)), ElementsAre(30));
  EXPECT_EQ(Model(Attempt(1, 2), 20), "spoilt");
  Go();
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1, 2));
  EXPECT_EQ(harness_.Log(Attempt(1, 2)), "from=" + Path(Attempt(1, 2), 20) + "\n20");
  EXPECT_EQ(end.resumed->SerializeAsString(), saved[0].SerializeAsString());
  EXPECT_THAT(end.damaged, IsEmpty());
  EXPECT_THAT(Steps(end.checkpoints), ElementsAre(30));
  EXPECT_EQ(Model(Attempt(1), 20), "20");
  // The copy has served, and does not fill the disk.
  EXPECT_TRUE(harness_.Await([&] { return !fs::exists(Path(Attempt(1, 2), 20)); }));
  EXPECT_TRUE(fs::exists(Path(Attempt(1, 2), 30)));
}

TEST_F(ProcessCheckpointTest, AStepThatWasSavedAgainIsTheAttemptsOwn) {
  const auto saved = Saved(Attempt(1), {10});
  const AttemptStatus end = Run(Attempt(1, 2), Script("rm -r 10; save 10 again"), saved);
  EXPECT_THAT(Steps(end.checkpoints), ElementsAre(10));
  EXPECT_EQ(end.checkpoints[0].attempt(), 2);
  EXPECT_EQ(Model(Attempt(1, 2), 10), "again");
}

TEST_F(ProcessCheckpointTest, DamagedOnesAreNamedAndTheNewestIntactOneIsUsed) {
  const auto saved = Saved(Attempt(1), {10, 20, 30, 40, 50});
  fs::resize_file(Path(Attempt(1), 50) + "/model", 1);
  std::ofstream(Path(Attempt(1), 40) + "/model") << "4X";
  fs::remove_all(Path(Attempt(1), 30));
  const AttemptStatus end = Run(Attempt(1, 2), Script(kTell), saved);
  EXPECT_EQ(harness_.Log(Attempt(1, 2)), "from=" + Path(Attempt(1, 2), 20) + "\n20");
  EXPECT_EQ(end.resumed->step(), 20);
  ASSERT_THAT(Steps(end.damaged), ElementsAre(50, 40, 30));
  EXPECT_EQ(end.damaged[0].gone(), "model has 1 bytes instead of 2");
  EXPECT_EQ(end.damaged[1].gone(), "the contents of model have changed");
  EXPECT_THAT(end.damaged[2].gone(), "it is no longer there");
}

TEST_F(ProcessCheckpointTest, WithNoneIntactItBeginsAtTheBeginningAndSaysSo) {
  const auto saved = Saved(Attempt(1), {10});
  fs::remove(Path(Attempt(1), 10) + "/" + kManifestName);
  const AttemptStatus end = Run(Attempt(1, 2), Script("echo \"from=$SHIRABE_RESUME_FROM\""), saved);
  EXPECT_EQ(harness_.Log(Attempt(1, 2)), "from=\n");
  EXPECT_EQ(end.resumed, std::nullopt);
  EXPECT_THAT(Steps(end.damaged), ElementsAre(10));
}

TEST_F(ProcessCheckpointTest, ATrialStartsFromItsParents) {
  const auto saved = Saved(Attempt(1), {10});
  const AttemptStatus end = Run(Attempt(2), Script(kTell), saved);
  EXPECT_EQ(harness_.Log(Attempt(2)), "from=" + Path(Attempt(2), 10) + "\n10");
  EXPECT_EQ(end.resumed->trial(), 1);
  EXPECT_THAT(end.checkpoints, IsEmpty());
}

TEST_F(ProcessCheckpointTest, WhereItWentOnFromIsKnownAfterARestart) {
  auto saved = Saved(Attempt(1), {10, 20});
  fs::remove_all(Path(Attempt(1), 20));
  ASSERT_TRUE(StartFrom(Attempt(1, 2), Waiting("true", "true"), saved).ok());
  const AttemptStatus before = *harness_.See(Attempt(1, 2));
  ASSERT_NE(harness_.Open(), nullptr);
  harness_.executor().Adopt({Record(Attempt(1, 2))});
  const AttemptStatus after = *harness_.See(Attempt(1, 2));
  EXPECT_EQ(after.resumed->SerializeAsString(), saved[1].SerializeAsString());
  ASSERT_THAT(after.damaged, SizeIs(1));
  EXPECT_EQ(after.damaged[0].SerializeAsString(), before.damaged[0].SerializeAsString());
  Go();
  harness_.AwaitEnd(Attempt(1, 2));
}

TEST_F(ProcessCheckpointTest, AStartThatACrashCutShortIsMadeAgain) {
  const auto saved = Saved(Attempt(1), {10, 20});
  // What a crash after the copy, and one within it, leave; and one that then had other candidates.
  const FileLayout layout(harness_.home());
  const CheckpointStore store(&layout);
  ASSERT_TRUE(layout.Create(Attempt(1, 2)).ok());
  ASSERT_TRUE(store.Fork(saved[0], Attempt(1, 2)).ok());
  ASSERT_TRUE(MakeDirs(Path(Attempt(1, 2), 10) + ".tmp/half").ok());
  const std::string note = layout.Paths(Attempt(1, 2)).dir + "/resumed.json";
  ASSERT_TRUE(WriteFileAtomic(note, R"({"resumed": {"step": "77"}, "damaged": 1})").ok());
  const AttemptStatus end = Run(Attempt(1, 2), Script(kTell), saved);
  EXPECT_EQ(harness_.Log(Attempt(1, 2)), "from=" + Path(Attempt(1, 2), 20) + "\n20");
  EXPECT_EQ(end.resumed->step(), 20);

  ASSERT_TRUE(layout.Create(Attempt(1, 3)).ok());
  const std::string other = layout.Paths(Attempt(1, 3)).dir + "/resumed.json";
  ASSERT_TRUE(WriteFileAtomic(other, R"({"resumed": {"step": "77"}})").ok());
  EXPECT_EQ(Run(Attempt(1, 3), Script("true")).resumed, std::nullopt);
}

TEST_F(ProcessCheckpointTest, ALargeOneIsVerifiedBesideTheCaller) {
  AttemptStatus first = Run(Attempt(1), Script("mkdir 10.tmp; head -c 70000000 /dev/zero > "
                                               "10.tmp/model; mv 10.tmp 10; save 5 small"));
  ASSERT_THAT(Steps(first.checkpoints), ElementsAre(5, 10));
  const std::vector<v1::Checkpoint> candidates = {first.checkpoints[1], first.checkpoints[0]};
  const Ask ask = Script("echo \"from=$SHIRABE_RESUME_FROM\"");
  const int changes = harness_.Changes(kExperiment);
  const Status not_yet = StartFrom(Attempt(1, 2), ask, candidates);
  EXPECT_EQ(not_yet.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(not_yet), HasSubstr("verifying the checkpoint at step 10 (67 MiB)"));
  EXPECT_EQ(harness_.See(Attempt(1, 2)), std::nullopt);
  EXPECT_TRUE(harness_.Await([&] { return harness_.Changes(kExperiment) > changes; }));
  // What was told may also be a change from before.
  EXPECT_TRUE(harness_.Await([&] { return StartFrom(Attempt(1, 2), ask, candidates).ok(); }));
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1, 2));
  EXPECT_EQ(end.resumed->step(), 10);
  EXPECT_EQ(harness_.Log(Attempt(1, 2)), "from=" + Path(Attempt(1, 2), 10) + "\n");

  std::ofstream(Path(Attempt(1), 10) + "/model", std::ios::in) << "X";
  const int later = harness_.Changes(kExperiment);
  EXPECT_EQ(StartFrom(Attempt(1, 3), ask, candidates).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(harness_.Await([&] { return harness_.Changes(kExperiment) > later; }));
  EXPECT_TRUE(harness_.Await([&] { return StartFrom(Attempt(1, 3), ask, candidates).ok(); }));
  const AttemptStatus last = harness_.AwaitEnd(Attempt(1, 3));
  EXPECT_EQ(last.resumed->step(), 5);
  EXPECT_THAT(Steps(last.damaged), ElementsAre(10));
}

// ---- zombies, disks that fail, pruning ----------------------------------------------------------

TEST_F(ProcessCheckpointTest, AZombieChangesNothing) {  // F11
  const auto saved = Saved(Attempt(1), {10, 20});
  harness_.executor().Forget(Attempt(1));
  ASSERT_TRUE(StartFrom(Attempt(1, 2), Waiting("save 30 mine", kTell), saved).ok());
  AwaitCommitted(Attempt(1, 2), 1);
  std::ofstream(Path(Attempt(1), 20) + "/model") << "zz";
  ASSERT_TRUE(MakeDirs(Path(Attempt(1), 99)).ok());
  ASSERT_TRUE(WriteFileAtomic(Path(Attempt(1), 99) + "/model", "zombie").ok());
  Go();
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1, 2));
  EXPECT_EQ(harness_.Log(Attempt(1, 2)), "from=" + Path(Attempt(1, 2), 20) + "\n20");
  EXPECT_THAT(Steps(end.checkpoints), ElementsAre(30));
  EXPECT_THAT(harness_.executor().Observe(kExperiment), SizeIs(1));
  EXPECT_FALSE(fs::exists(Path(Attempt(1), 99) + "/" + kManifestName));
  // The third attempt finds the damage, and says so.
  const AttemptStatus third = Run(Attempt(1, 3), Script("true"), saved);
  EXPECT_EQ(third.resumed->step(), 10);
  EXPECT_THAT(Steps(third.damaged), ElementsAre(20));
}

TEST_F(ProcessCheckpointTest, AFullDiskDelaysItsOwnAttemptOnly) {  // F14
  ASSERT_TRUE(harness_.Start(Attempt(1), Waiting("true", "save 10 a; exit 7")).ok());
  const std::string dir = harness_.executor().Paths(Attempt(1)).checkpoint_dir;
  if (mount("none", dir.c_str(), "tmpfs", 0, "size=1m") != 0) {
    Go();
    harness_.AwaitEnd(Attempt(1));
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a full disk is not tried";
  }
  // The program is in the directory below: it saves through the path.
  ASSERT_TRUE(MakeDirs(dir + "/20.tmp").ok());
  std::ofstream(dir + "/20.tmp/model") << "model";
  std::ofstream(dir + "/filler") << std::string(2 << 20, 'f');
  fs::rename(dir + "/20.tmp", dir + "/20");
  Go();
  const AttemptStatus other = Run(Attempt(2), Script("save 1 x"));
  EXPECT_THAT(Steps(other.checkpoints), ElementsAre(1));
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_THAT(end.checkpoints, IsEmpty());
  EXPECT_THAT(end.refused, ElementsAre(HasSubstr("No space left on device")));
  EXPECT_EQ(umount2(dir.c_str(), MNT_DETACH), 0);
}

// Of no experiment's doing: it may start once the machine has been mended.
TEST_F(ProcessCheckpointTest, AFolderThatMayNotBeWrittenIsNoErrorOfTheTrial) {
  ASSERT_EQ(Run(Attempt(1), Script("true")).exit_code, 0);
  const std::string dir =
      fs::path(harness_.executor().Paths(Attempt(2)).dir).parent_path().string();
  ASSERT_TRUE(MakeDirs(dir).ok());
  if (mount("none", dir.c_str(), "tmpfs", MS_RDONLY, nullptr) != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a read-only disk is not tried";
  }
  const Status refused = harness_.Start(Attempt(2), Script("true"));
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr(dir));
  EXPECT_EQ(umount2(dir.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(Run(Attempt(2), Script("true")).exit_code, 0);
}

TEST_F(ProcessCheckpointTest, AFullDiskThatIsCleanedUpCostsNothing) {
  ASSERT_TRUE(harness_.Start(Attempt(1), Waiting("true", "true")).ok());
  const std::string dir = harness_.executor().Paths(Attempt(1)).checkpoint_dir;
  if (mount("none", dir.c_str(), "tmpfs", 0, "size=1m") != 0) {
    Go();
    harness_.AwaitEnd(Attempt(1));
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a full disk is not tried";
  }
  ASSERT_TRUE(MakeDirs(dir + "/20.tmp").ok());
  std::ofstream(dir + "/20.tmp/model") << "model";
  std::ofstream(dir + "/filler") << std::string(2 << 20, 'f');
  fs::rename(dir + "/20.tmp", dir + "/20");
  EXPECT_THAT(harness_.See(Attempt(1))->checkpoints, IsEmpty());
  fs::remove(dir + "/filler");
  EXPECT_THAT(Steps(AwaitCommitted(Attempt(1), 1)), ElementsAre(20));
  Go();
  EXPECT_THAT(harness_.AwaitEnd(Attempt(1)).refused, IsEmpty());
  EXPECT_EQ(umount2(dir.c_str(), MNT_DETACH), 0);
}

TEST_F(ProcessCheckpointTest, ADiskWithoutRoomForTheCopyIsNotTheTrialsFault) {
  AttemptStatus first =
      Run(Attempt(1), Script("mkdir 10.tmp; head -c 3000000 /dev/zero > 10.tmp/model; "
                             "mv 10.tmp 10"));
  const FileLayout layout(harness_.home());
  ASSERT_TRUE(layout.Create(Attempt(1, 2)).ok());
  const std::string dir = layout.Paths(Attempt(1, 2)).checkpoint_dir;
  if (mount("none", dir.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a full disk is not tried";
  }
  for (int i = 0; i < 2; ++i) {
    const Status full = StartFrom(Attempt(1, 2), Script("true"), first.checkpoints);
    EXPECT_EQ(full.code(), absl::StatusCode::kUnavailable) << full;
    EXPECT_THAT(Message(full), HasSubstr("No space left on device"));
  }
  ASSERT_EQ(mount("none", dir.c_str(), nullptr, MS_REMOUNT, "size=8m"), 0);
  EXPECT_EQ(Run(Attempt(1, 2), Script("true"), first.checkpoints).resumed->step(), 10);
  EXPECT_EQ(umount2(dir.c_str(), MNT_DETACH), 0);
}

TEST_F(ProcessCheckpointTest, PruneDeletesSoon) {
  const auto saved = Saved(Attempt(1), {10, 20});
  harness_.executor().Prune(saved[1]);
  EXPECT_TRUE(harness_.Await([&] { return !fs::exists(Path(Attempt(1), 10)); }));
  EXPECT_EQ(Model(Attempt(1), 20), "20");
}

TEST_F(ProcessCheckpointTest, AHugeOneHoldsUpNeitherAnotherAttemptNorAShutdown) {
  ASSERT_TRUE(harness_
                  .Start(Attempt(1), Script("mkdir 7.tmp; fallocate -l 6G 7.tmp/model; "
                                            "mv 7.tmp 7"))
                  .ok());
  harness_.AwaitFile(harness_.executor().Paths(Attempt(1)).dir + "/exit");
  EXPECT_THAT(Steps(Run(Attempt(2), Script("save 1 x")).checkpoints), ElementsAre(1));
  EXPECT_EQ(harness_.See(Attempt(1))->state, State::kRunning);
  harness_.Close();  // and not after the seconds that 6 GiB take
}

}  // namespace
}  // namespace shirabe::trial
