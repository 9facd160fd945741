// The door for custom resources, between a cluster in memory and a real store.
#include "crd/cluster_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "crd/resource_kinds.h"
#include "experiment/attempt_request.h"
#include "tests/crd/fake_cluster.h"
#include "tests/support/stored.h"

namespace shirabe::crd {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

kube::Ref ExperimentRef(const std::string& name) { return {Experiments(), "default", name}; }
kube::Ref TrialRef(const std::string& name) { return {Trials(), "default", name}; }

Json SmallExperiment(const std::string& name) {
  return Json::parse(R"({
    "apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment",
    "metadata": {"namespace": "default"},
    "spec": {
      "objective": {"type": "minimize", "objectiveMetricName": "loss"},
      "algorithm": {"algorithmName": "random"},
      "parallelTrialCount": 2, "maxTrialCount": 8,
      "parameters": [{"name": "lr", "parameterType": "double",
                      "feasibleSpace": {"min": "0.1", "max": 1}}],
      "trialTemplate": {
        "primaryContainerName": "main",
        "trialParameters": [{"name": "lr", "reference": "lr"}],
        "trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {
          "restartPolicy": "Never",
          "containers": [{"name": "main", "image": "x",
                          "command": ["echo", "${trialParameters.lr}"]}]}}}}}}})",
                     nullptr, false)
      .patch(Json::array({{{"op", "add"}, {"path", "/metadata/name"}, {"value", name}}}));
}

class SyncTest : public ::testing::Test {
 protected:
  // Whose definitions the cluster has.
  void Define(const std::string& part_of) {
    cluster_.Put(DefinitionsResource(),
                 {{"metadata",
                   {{"name", "experiments.kubeflow.org"}, {"labels", {{kPartOfLabel, part_of}}}}}});
  }
  void Start(bool adopt_all = false) {
    sync_ = ClusterSync::Start({.kube = &cluster_,
                                .store = &stored_.client(),
                                .clock = RealClock(),
                                .adopt_all = adopt_all,
                                .finished_trials = 3,
                                .interval = absl::Milliseconds(10)});
  }
  void DefineAndStart() {
    Define(kPartOf);
    Start();
  }

  StatusOr<v1::Experiment> Record(const std::string& name) {
    return stored_.client().GetExperiment({"default", name});
  }
  bool AwaitRecord(const std::string& name) {
    return cluster_.Await([&] { return Record(name).ok(); });
  }
  // The condition that stands last.
  Json Condition(const std::string& name) {
    const auto object = cluster_.Find(ExperimentRef(name));
    const Json* list = object ? FindAt(*object, {"status", "conditions"}) : nullptr;
    return list == nullptr || list->empty() ? Json::object() : list->back();
  }
  bool AwaitReason(const std::string& name, const std::string& reason) {
    return cluster_.Await([&] { return Text(Condition(name), {"reason"}) == reason; });
  }
  // What the owner of the experiment is asked for.
  bool AwaitIntent(const std::string& name, v1::Intent::Verb verb) {
    return cluster_.Await([&] {
      const auto intents = stored_.store().ListIntents({"default", name});
      return intents.ok() && !intents->empty() && intents->back().verb() == verb;
    });
  }
  bool HasEvent(const std::string& reason, const std::string& words) {
    for (const Json& event : cluster_.All("events")) {
      if (event["reason"] == reason &&
          event["message"].get<std::string>().find(words) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
  // The experiment of `stored_` becomes that of an object.
  Json PutOwned() {
    const Json object = cluster_.Put(Experiments(), SmallExperiment("digits"));
    (*stored_.experiment.mutable_metadata()->mutable_annotations())[experiment::kObjectUid] =
        UidOf(object);
    stored_.experiment.mutable_metadata()->set_uid("record");
    stored_.PutExperiment();
    return object;
  }
  void PutTrial(int64_t number, v1::TrialPhase phase) {
    stored_.Put(MakeTrial(number, phase));
    stored_.experiment.mutable_status()->set_trials(
        std::max(number, stored_.experiment.status().trials()));
    stored_.PutExperiment();
  }

  Stored stored_{/*read_only=*/false};
  FakeCluster cluster_;
  std::unique_ptr<ClusterSync> sync_;  // last: it uses the others
};

TEST_F(SyncTest, AnObjectBecomesAnExperiment) {
  DefineAndStart();
  const Json object = cluster_.Put(Experiments(), SmallExperiment("one"));
  ASSERT_TRUE(AwaitReason("one", "ExperimentCreated"));
  const auto record = Record("one");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->metadata().annotations().at(experiment::kObjectUid), UidOf(object));
  EXPECT_EQ(record->spec().parallel_trial_count(), 2);
  const Json now = *cluster_.Find(ExperimentRef("one"));
  EXPECT_EQ(Text(now, {"status", "shirabe", "uid"}), record->metadata().uid());
  EXPECT_EQ(Number(now, {"status", "shirabe", "observedGeneration"}), 1);
  EXPECT_TRUE(cluster_.Await([&] { return !cluster_.All("suggestions").empty(); }));
}

// What only the cluster knows of a specification: here, its claim.
class ClaimTest : public SyncTest {
 protected:
  void SetUp() override {
    controller_ =
        stored_.client()
            .MakeController({.executor = "kubernetes",
                             .pods = {.client = &cluster_, .image = "x", .server = "x:1"}},
                            /*workers=*/1)
            .value();
    DefineAndStart();
  }
  void TearDown() override {
    sync_ = nullptr;
    controller_ = nullptr;
  }
  void PutClaim(const std::string& mode) {
    const kube::Ref claim{
        {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"}, "default", "checkpoints"};
    if (!cluster_.Find(claim)) {
      cluster_.Put(claim.resource,
                   {{"metadata", {{"name", claim.name}, {"namespace", claim.namespace_name}}}});
    }
    cluster_.Edit(claim,
                  [&](Json& object) { object["spec"]["accessModes"] = Json::array({mode}); });
  }
  void PutExperiment() {
    Json object = SmallExperiment("saved");
    object["spec"]["shirabe"]["checkpoint"]["volume"]["claim"] = "checkpoints";
    cluster_.Put(Experiments(), object);
  }

  std::unique_ptr<experiment::Controller> controller_;
};

TEST_F(ClaimTest, OneThatCannotBeSharedIsRefusedByField) {
  PutClaim("ReadWriteOnce");
  PutExperiment();
  ASSERT_TRUE(AwaitReason("saved", "InvalidSpec"));
  const std::string message = Text(Condition("saved"), {"message"});
  EXPECT_THAT(message, HasSubstr("spec.shirabe.checkpoint.volume.claim: \"checkpoints\" is "
                                 "ReadWriteOnce"));
  EXPECT_THAT(message, HasSubstr("parallelTrialCount: 1"));
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("InvalidSpec", "ReadWriteOnce"); }));
  EXPECT_TRUE(absl::IsNotFound(Record("saved").status()));
}

TEST_F(ClaimTest, OneThatIsNotThereYetIsAWarning) {
  PutExperiment();
  ASSERT_TRUE(AwaitRecord("saved"));
  EXPECT_TRUE(cluster_.Await(
      [&] { return HasEvent("SpecWarning", "has no PersistentVolumeClaim \"checkpoints\""); }));
}

// `shirabe validate --server` asks for no points, and so whether there could be any.
TEST_F(ClaimTest, ItIsReadByWhoeverOnlyAsks) {
  PutClaim("ReadWriteOnce");
  v1::Experiment experiment = stored_.experiment;
  experiment.mutable_metadata()->set_name("asked");
  experiment.mutable_spec()->set_parallel_trial_count(3);
  experiment.mutable_spec()->mutable_shirabe()->mutable_checkpoint()->mutable_volume()->set_claim(
      "checkpoints");
  EXPECT_TRUE(absl::IsInvalidArgument(stored_.client().Suggest(experiment, 0).status()));
  PutClaim("ReadWriteMany");
  const auto fits = stored_.client().Suggest(experiment, 0);
  EXPECT_TRUE(fits.ok()) << fits.status();
}

// More at the same time than the claim allows is refused, too.
TEST_F(ClaimTest, WhatIsScaledIsCheckedAgain) {
  PutClaim("ReadWriteOnce");
  Json object = SmallExperiment("saved");
  object["spec"]["shirabe"]["checkpoint"]["volume"]["claim"] = "checkpoints";
  object["spec"]["parallelTrialCount"] = 1;
  cluster_.Put(Experiments(), object);
  ASSERT_TRUE(AwaitRecord("saved"));
  v1::Intent more;
  more.set_verb(v1::Intent::SCALE);
  more.set_parallel_trial_count(4);
  const Status refused = stored_.client().Send({"default", "saved"}, more);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("spec.parallelTrialCount is 4"));
}

TEST_F(SyncTest, WhatIsWrongIsSaidByNameAndNothingRuns) {
  DefineAndStart();
  Json object = SmallExperiment("bad");
  object["spec"]["maxTrails"] = 3;
  cluster_.Put(Experiments(), object);
  ASSERT_TRUE(AwaitReason("bad", "InvalidSpec"));
  EXPECT_EQ(Text(Condition("bad"), {"type"}), "Failed");
  EXPECT_THAT(Text(Condition("bad"), {"message"}), HasSubstr("spec.maxTrails"));
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("InvalidSpec", "spec.maxTrails"); }));
  EXPECT_TRUE(absl::IsNotFound(Record("bad").status()));
  // Put right, it is taken up.
  cluster_.Edit(ExperimentRef("bad"), [](Json& edited) { edited["spec"].erase("maxTrails"); });
  EXPECT_TRUE(AwaitReason("bad", "ExperimentCreated"));
}

TEST_F(SyncTest, AStatusThatStandsIsNotWrittenAgain) {
  DefineAndStart();
  cluster_.Put(Experiments(), SmallExperiment("one"));
  cluster_.Put(Experiments(), SmallExperiment("two"));
  ASSERT_TRUE(AwaitReason("one", "ExperimentCreated"));
  ASSERT_TRUE(AwaitReason("two", "ExperimentCreated"));
  const int before = cluster_.writes("experiments");
  for (int i = 0; i < 3; ++i) {
    cluster_.Edit(ExperimentRef("one"),
                  [&](Json& edited) { edited["metadata"]["labels"]["n"] = std::to_string(i); });
  }
  cluster_.Edit(ExperimentRef("two"), [](Json& edited) { edited["status"]["trials"] = 99; });
  ASSERT_TRUE(cluster_.Await([&] {
    return Number(*cluster_.Find(ExperimentRef("two")), {"status", "trials"}) == 0;
  }));
  EXPECT_EQ(cluster_.writes("experiments"), before + 1) << "only what somebody else had changed";
}

// With hundreds of trials a minute they would be written each second.
TEST_F(SyncTest, CountsAloneAreWrittenOnceInAWhile) {
  PutOwned();
  DefineAndStart();
  const auto trials = [&] {
    return Number(*cluster_.Find(ExperimentRef("digits")), {"status", "trials"});
  };
  PutTrial(1, v1::TRIAL_RUNNING);
  ASSERT_TRUE(cluster_.Await([&] { return trials() == 1; }));
  const int before = cluster_.writes("experiments");
  const absl::Duration began = RealClock()->Monotonic();
  for (int64_t number = 2; number <= 20; ++number) PutTrial(number, v1::TRIAL_RUNNING);
  ASSERT_TRUE(cluster_.Await([&] { return cluster_.All("trials").size() == 20; }));
  ASSERT_TRUE(cluster_.Await([&] { return trials() == 20; }));
  const double seconds = absl::ToDoubleSeconds(RealClock()->Monotonic() - began);
  EXPECT_LE(cluster_.writes("experiments"), before + 1 + seconds / 5);
}

TEST_F(SyncTest, CountsAreFollowedAndAnotherSearchIsRefused) {
  DefineAndStart();
  cluster_.Put(Experiments(), SmallExperiment("one"));
  ASSERT_TRUE(AwaitReason("one", "ExperimentCreated"));
  cluster_.Edit(ExperimentRef("one"), [](Json& edited) { edited["spec"]["maxTrialCount"] = 9; });
  EXPECT_TRUE(AwaitIntent("one", v1::Intent::SCALE));
  cluster_.Edit(ExperimentRef("one"),
                [](Json& edited) { edited["spec"]["objective"]["type"] = "maximize"; });
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("SpecNotApplied", "spec.objective.type"); }));
  EXPECT_TRUE(cluster_.Await([&] {
    return Text(*cluster_.Find(ExperimentRef("one")), {"status", "shirabe", "specProblem"})
               .find("spec.objective.type") != std::string::npos;
  }));
}

TEST_F(SyncTest, CountsOfOneThatHasEndedForGoodAreRefused) {
  DefineAndStart();
  cluster_.Put(Experiments(), SmallExperiment("one"));
  ASSERT_TRUE(AwaitReason("one", "ExperimentCreated"));
  const auto stored = stored_.store().GetExperiment({"default", "one"});
  db::Batch batch;
  batch.experiment = {"default", "one"};
  batch.put = {stored->record, stored->revision};
  v1::Condition* ended = batch.put->record.mutable_status()->add_conditions();
  ended->set_type("Succeeded");
  ended->set_status("True");
  ended->set_reason("ExperimentMaxTrialsReached");
  ASSERT_TRUE(stored_.store().Commit(batch).ok());
  cluster_.Edit(ExperimentRef("one"), [](Json& edited) { edited["spec"]["maxTrialCount"] = 9; });
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("SpecNotApplied", "spec.resumePolicy"); }));
}

TEST_F(SyncTest, ADeletedObjectEndsItsExperiment) {
  DefineAndStart();
  cluster_.Put(Experiments(), SmallExperiment("one"));
  ASSERT_TRUE(AwaitRecord("one"));
  cluster_.Remove(ExperimentRef("one"));
  EXPECT_TRUE(AwaitIntent("one", v1::Intent::DELETE));
}

TEST_F(SyncTest, AnObjectDeletedWhileNobodyLookedEndsItToo) {
  PutOwned();
  cluster_.Remove(ExperimentRef("digits"));
  DefineAndStart();
  EXPECT_TRUE(AwaitIntent("digits", v1::Intent::DELETE));
}

TEST_F(SyncTest, AnExperimentOfTheApiKeepsItsName) {
  DefineAndStart();
  cluster_.Put(Experiments(), SmallExperiment("digits"));
  ASSERT_TRUE(AwaitReason("digits", "NameInUse"));
  cluster_.Remove(ExperimentRef("digits"));
  cluster_.Put(Experiments(), SmallExperiment("later"));
  ASSERT_TRUE(AwaitRecord("later"));
  EXPECT_TRUE(stored_.store().ListIntents({"default", "digits"})->empty());
}

TEST_F(SyncTest, WhatWasDeletedInTheStoreIsNotRunAgain) {
  Json object = SmallExperiment("gone");
  object["status"] = {{"shirabe", {{"uid", "some record"}}}};
  cluster_.Put(Experiments(), object);
  testing::internal::CaptureStderr();
  DefineAndStart();
  const bool refused = AwaitReason("gone", "RecordsGone");
  sync_.reset();  // the line follows the status
  // Who has named the wrong database reads it where the controller runs, too.
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("an Experiment is refused"), HasSubstr("RecordsGone")));
  ASSERT_TRUE(refused);
  EXPECT_TRUE(absl::IsNotFound(Record("gone").status()));
}

// Whoever may write an Experiment writes into the controller's log what it is refused for.
TEST_F(SyncTest, WhatIsRefusedIsOneLineOfTheLogWhateverItHolds) {
  Json object = SmallExperiment("hostile");
  object["spec"]["max\n{\"level\":\"error\"}\r\x1b[31mTrials"] = 1;
  cluster_.Put(Experiments(), object);
  testing::internal::CaptureStderr();
  DefineAndStart();
  const bool refused = AwaitReason("hostile", "InvalidSpec");
  sync_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(refused);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr("an Experiment is refused"));
  EXPECT_THAT(log, testing::Not(HasSubstr("\x1b")));
  EXPECT_THAT(log, testing::Not(HasSubstr("\n{\"level\"")));
}

TEST_F(SyncTest, ATemplateOfAConfigMapIsWaitedFor) {
  Json object = SmallExperiment("mapped");
  Json& trial_template = object["spec"]["trialTemplate"];
  const std::string text = trial_template["trialSpec"].dump();
  trial_template.erase("trialSpec");
  trial_template["configMap"] = {{"configMapName", "templates"}, {"templatePath", "t.yaml"}};
  cluster_.Put(Experiments(), object);
  DefineAndStart();
  ASSERT_TRUE(AwaitReason("mapped", "WaitingForConfigMap"));
  EXPECT_THAT(Text(Condition("mapped"), {"message"}), HasSubstr("default/templates"));
  cluster_.Put(ConfigMaps(), {{"metadata", {{"name", "templates"}, {"namespace", "default"}}},
                              {"data", {{"t.yaml", text}}}});
  cluster_.Edit(ExperimentRef("mapped"),
                [](Json& edited) { edited["metadata"]["labels"]["look"] = "again"; });
  ASSERT_TRUE(AwaitRecord("mapped"));
  EXPECT_EQ(Record("mapped")->spec().trial_template().trial_spec().fields().count("kind"), 1u);
}

// We may read what whoever wrote the experiment may not.
TEST_F(SyncTest, ATemplateOfAnotherNamespaceMustBeOfferedToAll) {
  Json object = SmallExperiment("mapped");
  Json& trial_template = object["spec"]["trialTemplate"];
  const std::string text = trial_template["trialSpec"].dump();
  trial_template.erase("trialSpec");
  trial_template["configMap"] = {
      {"configMapName", "templates"}, {"configMapNamespace", "shared"}, {"templatePath", "t.yaml"}};
  cluster_.Put(ConfigMaps(), {{"metadata", {{"name", "templates"}, {"namespace", "shared"}}},
                              {"data", {{"t.yaml", text}}}});
  cluster_.Put(Experiments(), object);
  DefineAndStart();
  ASSERT_TRUE(AwaitReason("mapped", "WaitingForConfigMap"));
  EXPECT_THAT(Text(Condition("mapped"), {"message"}),
              HasSubstr("shared/templates labelled katib.kubeflow.org/component=trial-templates"));
  cluster_.Edit({ConfigMaps(), "shared", "templates"}, [](Json& edited) {
    edited["metadata"]["labels"][kComponentLabel] = kTrialTemplates;
  });
  cluster_.Edit(ExperimentRef("mapped"),
                [](Json& edited) { edited["metadata"]["labels"]["look"] = "again"; });
  EXPECT_TRUE(AwaitRecord("mapped"));
}

// What `kubectl describe trial` shows, and `kubectl describe experiment`.
TEST_F(SyncTest, WhatHappensToATrialIsAnEventOfBothObjects) {
  PutOwned();
  PutTrial(1, v1::TRIAL_RUNNING);
  DefineAndStart();
  ASSERT_TRUE(cluster_.Await([&] { return cluster_.All("trials").size() == 1; }));
  db::Batch batch;
  batch.experiment = stored_.key();
  for (const int64_t trial : {1, 2}) {  // the second one has no object
    v1::Event event;
    event.set_namespace_(batch.experiment.ns);
    event.set_experiment(batch.experiment.name);
    event.set_trial(trial);
    event.set_warning(true);
    event.set_reason("AttemptFailed");
    event.set_message("out of memory");
    *event.mutable_time() = ToProto(RealClock()->Now());
    batch.events.push_back(event);
  }
  stored_.Commit(batch);
  ASSERT_TRUE(cluster_.Await([&] { return HasEvent("AttemptFailed", "digits-2"); }));
  std::multiset<std::string> told;
  for (const Json& event : cluster_.All("events")) {
    if (event["reason"] != "AttemptFailed") continue;
    told.insert(Text(event, {"involvedObject", "kind"}) + " " + Text(event, {"type"}) + " " +
                Text(event, {"message"}));
    if (Text(event, {"involvedObject", "kind"}) != "Trial") continue;
    EXPECT_EQ(Text(event, {"involvedObject", "name"}), "digits-1");
    EXPECT_EQ(Text(event, {"involvedObject", "uid"}), UidOf(cluster_.All("trials")[0]));
  }
  EXPECT_EQ(told, (std::multiset<std::string>{"Experiment Warning digits-1: out of memory",
                                              "Experiment Warning digits-2: out of memory",
                                              "Trial Warning out of memory"}));
}

// kubectl replace --force: the object is another before the records of the first are gone.
TEST_F(SyncTest, TheSecondObjectOfANameShowsNothingOfTheFirst) {
  PutOwned();
  PutTrial(1, v1::TRIAL_RUNNING);
  PutTrial(2, v1::TRIAL_SUCCEEDED);
  DefineAndStart();
  ASSERT_TRUE(cluster_.Await([&] { return cluster_.All("trials").size() == 2; }));
  cluster_.Remove(ExperimentRef("digits"));
  cluster_.Put(Experiments(), SmallExperiment("digits"));
  ASSERT_TRUE(AwaitIntent("digits", v1::Intent::DELETE));
  db::Batch batch;
  batch.experiment = {"default", "digits"};
  batch.delete_experiment = true;
  ASSERT_TRUE(stored_.store().Commit(batch).ok());
  EXPECT_TRUE(cluster_.Await([&] {
    const auto object = cluster_.Find(ExperimentRef("digits"));
    const Json* running = object ? FindAt(*object, {"status", "runningTrialList"}) : nullptr;
    return AwaitRecord("digits") && cluster_.All("trials").empty() &&
           (running == nullptr || running->empty()) &&
           Text(Condition("digits"), {"type"}) == "Created";
  }));
}

TEST_F(SyncTest, WithAnotherProjectsDefinitionsOnlyWhatIsLabelledIsTaken) {
  Define("katib");
  cluster_.Put(Experiments(), SmallExperiment("theirs"));
  Json ours = SmallExperiment("ours");
  ours["metadata"]["labels"][kManagedLabel] = "true";
  cluster_.Put(Experiments(), ours);
  Start();
  ASSERT_TRUE(AwaitRecord("ours"));
  EXPECT_TRUE(absl::IsNotFound(Record("theirs").status()));
  sync_ = nullptr;
  Start(/*adopt_all=*/true);
  EXPECT_TRUE(AwaitRecord("theirs"));
}

TEST_F(SyncTest, WithoutDefinitionsItSaysWhatToDo) {
  Start();
  EXPECT_TRUE(
      cluster_.Await([&] { return sync_->LastError().find("shirabe crds") != std::string::npos; }));
  Define(kPartOf);
  EXPECT_TRUE(cluster_.Await([&] { return sync_->LastError().empty(); }));
}

TEST_F(SyncTest, TrialsAreShownAndTheirNumberIsBounded) {
  PutOwned();
  for (int64_t number = 1; number <= 6; ++number) PutTrial(number, v1::TRIAL_SUCCEEDED);
  PutTrial(7, v1::TRIAL_RUNNING);
  DefineAndStart();
  // The one that runs, and the newest three that have ended.
  ASSERT_TRUE(cluster_.Await([&] { return cluster_.All("trials").size() == 4; }));
  const Json running = *cluster_.Find(TrialRef("digits-7"));
  EXPECT_EQ(LabelOf(running, kExperimentLabel), "digits");
  EXPECT_EQ(running["metadata"]["ownerReferences"][0]["name"], "digits");
  PutTrial(8, v1::TRIAL_SUCCEEDED);
  ASSERT_TRUE(cluster_.Await(
      [&] { return cluster_.Find(TrialRef("digits-8")) && !cluster_.Find(TrialRef("digits-4")); }));
  EXPECT_TRUE(cluster_.Find(TrialRef("digits-7")));
}

// Whoever comes and starts at once costs one write less.
TEST_F(SyncTest, ATrialThatIsAboutToStartIsShownWithoutAStatusFirst) {
  PutOwned();
  PutTrial(1, v1::TRIAL_PENDING);
  DefineAndStart();
  const absl::Duration began = RealClock()->Monotonic();
  ASSERT_TRUE(cluster_.Await([&] { return cluster_.Find(TrialRef("digits-1")).has_value(); }));
  PutTrial(1, v1::TRIAL_RUNNING);
  const auto phase = [&](const std::string& name) {
    const auto trial = cluster_.Find(TrialRef(name));
    return trial ? Text(*trial, {"status", "shirabe", "phase"}) : "";
  };
  ASSERT_TRUE(cluster_.Await([&] { return phase("digits-1") == "Running"; }));
  const bool fast = RealClock()->Monotonic() - began < absl::Seconds(2);
  EXPECT_TRUE(!fast || cluster_.writes("trials") == 1) << cluster_.writes("trials");
  // One that goes on waiting says so.
  PutTrial(2, v1::TRIAL_PENDING);
  EXPECT_TRUE(cluster_.Await([&] { return phase("digits-2") == "Pending"; }));
}

// Where many start at once, that they run waits for its turn; that they have ended does not.
TEST_F(SyncTest, WhatTellsOfNoEndIsWrittenWithinABudget) {
  constexpr int64_t kTrials = 60;
  PutOwned();
  for (int64_t number = 1; number <= kTrials; ++number) PutTrial(number, v1::TRIAL_RUNNING);
  DefineAndStart();
  const absl::Duration began = RealClock()->Monotonic();
  const auto in = [&](const std::string& phase) {
    const std::vector<Json> all = cluster_.All("trials");
    return std::count_if(all.begin(), all.end(), [&](const Json& trial) {
      return Text(trial, {"status", "shirabe", "phase"}) == phase;
    });
  };
  ASSERT_TRUE(cluster_.Await([&] { return cluster_.All("trials").size() == kTrials; }));
  ASSERT_TRUE(cluster_.Await([&] { return in("Running") >= 10; }));
  const double seconds = absl::ToDoubleSeconds(RealClock()->Monotonic() - began);
  EXPECT_LE(in("Running"), 21 + seconds / 2);
  for (int64_t number = 1; number <= kTrials; ++number) PutTrial(number, v1::TRIAL_FAILED);
  EXPECT_TRUE(cluster_.Await([&] { return in("Running") == 0 && in("Failed") > 0; }));
}

// More than is written in one go, and most of it changes all the time.
TEST_F(SyncTest, OldTrialsHaveTheirTurnWhileNewOnesChangeWithoutEnd) {
  PutOwned();
  for (int i = 101; i <= 200; ++i) {
    const std::string name = absl::StrCat("digits-", i);
    cluster_.Put(Trials(),
                 {{"metadata",
                   {{"namespace", "default"},
                    {"name", name},
                    {"labels", {{kManagedByLabel, kManagedBy}, {kExperimentLabel, "digits"}}}}}});
  }
  for (int64_t number = 1; number <= 90; ++number) PutTrial(number, v1::TRIAL_RUNNING);
  DefineAndStart();
  v1::TrialPhase phase = v1::TRIAL_RUNNING;
  EXPECT_TRUE(cluster_.Await([&] {
    phase = phase == v1::TRIAL_RUNNING ? v1::TRIAL_PENDING : v1::TRIAL_RUNNING;
    for (int64_t number = 10; number <= 90; ++number) PutTrial(number, phase);
    return cluster_.Find(TrialRef("digits-1")) && cluster_.All("trials").size() == 90;
  }));
}

// A busy API server takes half a second for each.
TEST_F(SyncTest, TrialsDoNotWaitForEachOthersObjects) {
  PutOwned();
  for (int64_t number = 1; number <= 40; ++number) PutTrial(number, v1::TRIAL_RUNNING);
  cluster_.set_slowness(absl::Milliseconds(50));
  DefineAndStart();
  ASSERT_TRUE(cluster_.Await([&] { return cluster_.All("trials").size() == 40; }));
  EXPECT_GT(cluster_.most_made_at_once(), 1);
  EXPECT_LE(cluster_.most_made_at_once(), 8);  // nor does the server drown in them
}

TEST_F(SyncTest, ATrialThatSomebodyTouchedIsPutRight) {
  PutOwned();
  PutTrial(1, v1::TRIAL_SUCCEEDED);
  PutTrial(2, v1::TRIAL_RUNNING);
  DefineAndStart();
  ASSERT_TRUE(cluster_.Await([&] {
    const auto last = cluster_.Find(TrialRef("digits-2"));
    return last && last->contains("status") && cluster_.Find(TrialRef("digits-1"));
  }));
  cluster_.Remove(TrialRef("digits-2"));
  EXPECT_TRUE(cluster_.Await([&] { return cluster_.Find(TrialRef("digits-2")).has_value(); }));
  cluster_.Edit(TrialRef("digits-1"),
                [](Json& edited) { edited["spec"]["parameterAssignments"] = Json::array(); });
  EXPECT_TRUE(cluster_.Await([&] {
    return !(*cluster_.Find(TrialRef("digits-1")))["spec"]["parameterAssignments"].empty();
  }));
}

}  // namespace
}  // namespace shirabe::crd
