// ScheduledExperiment objects of a cluster in memory: what is due becomes an Experiment object,
// once, also after a leader died between making it and noting that; history, policies and mistakes.
// Time is set by hand.
#include "crd/schedule_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "crd/resource_kinds.h"
#include "crd/schedule_object.h"
#include "schedule/parse_schedule.h"
#include "tests/crd/fake_cluster.h"

namespace shirabe::crd {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ScheduleSyncTest : public testing::Test {
 protected:
  static absl::Time Day(int day, int hour) {
    return absl::FromCivil(absl::CivilSecond(2026, 11, day, hour, 0, 0), absl::UTCTimeZone());
  }
  void GoTo(absl::Time time) { clock_.Advance(time - clock_.Now()); }
  void Start() {
    sync_ = nullptr;
    sync_ = ScheduleSync::Start(
        {.kube = &cluster_, .clock = &clock_, .interval = absl::Milliseconds(10)});
  }

  Json Put(const Json& more = Json::object()) {
    Json object = Json::parse(R"({
      "apiVersion": "kubeflow.org/v1beta1", "kind": "ScheduledExperiment",
      "metadata": {"name": "nightly", "namespace": "default",
                   "creationTimestamp": "2026-11-01T00:00:00Z"},
      "spec": {"schedule": "0 2 * * *", "experimentTemplate": {
        "metadata": {"labels": {"team": "vision"}},
        "spec": {
          "objective": {"type": "minimize", "objectiveMetricName": "loss"},
          "algorithm": {"algorithmName": "random"}, "maxTrialCount": 3,
          "parameters": [{"name": "lr", "parameterType": "double",
                          "feasibleSpace": {"min": "0", "max": "1"}}],
          "shirabe": {"askAndTell": true}}}}})",
                              nullptr, false);
    object["spec"].update(more);
    return cluster_.Put(ScheduledExperiments(), object);
  }
  static kube::Ref Ref() { return {ScheduledExperiments(), "default", "nightly"}; }
  Json StatusNow() {
    const auto object = cluster_.Find(Ref());
    const Json* status = object ? FindAt(*object, {"status"}) : nullptr;
    return status == nullptr ? Json::object() : *status;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const Json& object : cluster_.All("experiments")) names.push_back(NameOf(object));
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::string NameAt(absl::Time time) { return schedule::ExperimentNameOf("nightly", time); }
  bool AwaitStart(absl::Time time) {
    return cluster_.Await(
        [&] { return Text(StatusNow(), {"lastScheduleTime"}) == FormatTime(ToProto(time)); });
  }
  void End(const std::string& name, const std::string& how) {
    cluster_.Edit({Experiments(), "default", name}, [&](Json& object) {
      object["status"] = {{"conditions", Json::array({{{"type", how}, {"status", "True"}}})},
                          {"completionTime", FormatTime(ToProto(clock_.Now()))}};
    });
  }
  bool HasEvent(const std::string& reason, const std::string& words) {
    for (const Json& event : cluster_.All("events")) {
      if (Text(event, {"reason"}) == reason &&
          Text(event, {"message"}).find(words) != std::string::npos) {
        return Text(event, {"involvedObject", "kind"}) == "ScheduledExperiment";
      }
    }
    return false;
  }

  ManualClock clock_{Day(1, 1)};
  FakeCluster cluster_;
  std::unique_ptr<ScheduleSync> sync_;
};

TEST_F(ScheduleSyncTest, MakesAnExperimentAtItsTimeAndSaysSo) {
  const Json object = Put();
  Start();
  ASSERT_TRUE(cluster_.Await([&] { return StatusNow().contains("nextScheduleTime"); }));
  EXPECT_THAT(Names(), IsEmpty());
  GoTo(Day(1, 2));
  ASSERT_TRUE(AwaitStart(Day(1, 2)));
  ASSERT_THAT(Names(), ElementsAre(NameAt(Day(1, 2))));
  const Json made = *cluster_.Find({Experiments(), "default", NameAt(Day(1, 2))});
  EXPECT_TRUE(IsOwnedBy(made, object));
  EXPECT_EQ(LabelOf(made, "team"), "vision");
  EXPECT_EQ(LabelOf(made, schedule::kScheduleLabel), "nightly");
  EXPECT_EQ(Number(made, {"spec", "maxTrialCount"}), 3);
  EXPECT_EQ(StatusNow()["active"], Json::array({NameAt(Day(1, 2))}));
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("ExperimentStarted", "2026-11-01T02:00"); }));
  End(NameAt(Day(1, 2)), "Succeeded");
  EXPECT_TRUE(cluster_.Await([&] { return StatusNow().contains("lastSuccessfulTime"); }));
}

TEST_F(ScheduleSyncTest, AfterACrashBetweenMakingAndNotingItIsNotMadeAgain) {
  const Json object = Put();
  // What the leader before has made, and had no time to note.
  schedule::StartDecision decision{.start = Day(1, 2), .name = NameAt(Day(1, 2))};
  cluster_.Put(Experiments(), ExperimentObject(object, decision, ""));
  GoTo(Day(1, 3));
  Start();
  ASSERT_TRUE(AwaitStart(Day(1, 2)));
  EXPECT_THAT(Names(), SizeIs(1));
  EXPECT_FALSE(HasEvent("NameTaken", ""));
  // And with the next leader as well.
  Start();
  GoTo(Day(2, 2));
  ASSERT_TRUE(AwaitStart(Day(2, 2)));
  EXPECT_THAT(Names(), ElementsAre(NameAt(Day(1, 2)), NameAt(Day(2, 2))));
}

// ---- started by hand ----------------------------------------------------------------------------

TEST_F(ScheduleSyncTest, OneThatIsAskedForIsMadeAtOnceAndOnce) {
  Put({{"suspend", true}, {"concurrencyPolicy", "Forbid"}});
  Start();
  const auto ask = [&] {
    cluster_.Edit(Ref(), [](Json& object) {
      object["metadata"]["annotations"] = {{schedule::kRunNow, "now"}, {"team", "vision"}};
    });
  };
  const auto starts = [&](int64_t count) {
    return cluster_.Await([&] { return Number(StatusNow(), {"starts"}) == count; });
  };
  ask();
  ASSERT_TRUE(starts(1));
  ASSERT_THAT(Names(), SizeIs(1));
  EXPECT_THAT(Names()[0], HasSubstr("nightly-m"));
  EXPECT_EQ(StatusNow()["lastExperiment"], Names()[0]);
  EXPECT_FALSE(StatusNow().contains("lastScheduleTime")) << "its times are as before";
  EXPECT_EQ((*cluster_.Find(Ref()))["metadata"]["annotations"], Json({{"team", "vision"}}));
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("ExperimentStarted", schedule::kRunNow); }));
  Start();  // the next leader makes no other
  clock_.Advance(absl::Minutes(2));
  ASSERT_TRUE(starts(1));
  ask();  // again, in the same words
  ASSERT_TRUE(starts(2));
  EXPECT_THAT(Names(), SizeIs(2));
}

TEST_F(ScheduleSyncTest, AfterACrashBeforeItIsNotedWhatWasAskedForIsNotMadeAgain) {
  const Json object = Put();
  const std::string name =
      schedule::ExperimentNameFor("nightly", Fingerprint("\"7\" 0"));  // as the leader before
  cluster_.Put(Experiments(), ExperimentObject(object, {.start = Day(1, 1), .name = name}, ""));
  cluster_.Edit(Ref(), [](Json& changed) {
    changed["metadata"]["annotations"] = {{schedule::kRunNow, "7"}};
  });
  Start();
  ASSERT_TRUE(cluster_.Await([&] { return StatusNow().contains("lastExperiment"); }));
  EXPECT_THAT(Names(), ElementsAre(name));
}

TEST_F(ScheduleSyncTest, OneThatCannotBeMadeIsSaidAndNotAskedForAgain) {
  Put();
  const std::string name = schedule::ExperimentNameFor("nightly", Fingerprint("\"7\" 0"));
  cluster_.Put(Experiments(), {{"apiVersion", kApiVersion},
                               {"kind", "Experiment"},
                               {"metadata", {{"name", name}, {"namespace", "default"}}}});
  cluster_.Edit(Ref(), [](Json& changed) {
    changed["metadata"]["annotations"] = {{schedule::kRunNow, "7"}};
  });
  Start();
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("StartFailed", "of that name is there"); }));
  EXPECT_TRUE(cluster_.Await([&] {
    return FindAt(*cluster_.Find(Ref()), {"metadata", "annotations", schedule::kRunNow}) == nullptr;
  }));
  EXPECT_FALSE(StatusNow().contains("starts"));
}

TEST_F(ScheduleSyncTest, AnExperimentOfAnotherIsLeftAlone) {
  Put();
  Json other = {{"apiVersion", kApiVersion},
                {"kind", "Experiment"},
                {"metadata", {{"name", NameAt(Day(1, 2))}, {"namespace", "default"}}}};
  cluster_.Put(Experiments(), other);
  GoTo(Day(1, 2));
  Start();
  ASSERT_TRUE(AwaitStart(Day(1, 2)));
  EXPECT_TRUE(cluster_.Await([&] { return HasEvent("NameTaken", NameAt(Day(1, 2))); }));
  EXPECT_FALSE(StatusNow().contains("starts"));
}

TEST_F(ScheduleSyncTest, KeepsAsManyAsItsLimitsSayAndLearnsFromTheLast) {
  Put({{"successfulExperimentsHistoryLimit", 1},
       {"failedExperimentsHistoryLimit", 0},
       {"warmStartFromLast", true}});
  Start();
  const char* ends[] = {"Succeeded", "Failed", "Succeeded"};
  for (int day = 1; day <= 3; ++day) {
    GoTo(Day(day, 2));
    ASSERT_TRUE(AwaitStart(Day(day, 2))) << day;
    End(NameAt(Day(day, 2)), ends[day - 1]);
  }
  EXPECT_TRUE(cluster_.Await([&] { return Names().size() == 1; }));
  ASSERT_THAT(Names(), ElementsAre(NameAt(Day(3, 2))));
  const Json last = *cluster_.Find({Experiments(), "default", NameAt(Day(3, 2))});
  const Json* from = FindAt(last, {"spec", "shirabe", "warmStart", "experiments"});
  ASSERT_NE(from, nullptr);
  EXPECT_EQ(*from, Json::array({NameAt(Day(1, 2))}));
}

TEST_F(ScheduleSyncTest, ForbidWaitsAndReplaceDeletes) {
  Put({{"concurrencyPolicy", "Forbid"}});
  Start();
  GoTo(Day(1, 2));
  ASSERT_TRUE(AwaitStart(Day(1, 2)));
  GoTo(Day(2, 2));
  ASSERT_TRUE(cluster_.Await(
      [&] { return Text(StatusNow(), {"waiting"}).find("still runs") != std::string::npos; }));
  EXPECT_THAT(Names(), SizeIs(1));
  cluster_.Edit(Ref(), [](Json& object) { object["spec"]["concurrencyPolicy"] = "Replace"; });
  ASSERT_TRUE(AwaitStart(Day(2, 2)));
  EXPECT_THAT(Names(), ElementsAre(NameAt(Day(2, 2))));
  EXPECT_FALSE(StatusNow().contains("waiting"));
}

TEST_F(ScheduleSyncTest, SaysWhatIsWrongAndStartsOnceItIsRight) {
  Put({{"timeZone", "Mars/Olympus"}});
  GoTo(Day(1, 2));
  Start();
  ASSERT_TRUE(cluster_.Await([&] { return HasEvent("InvalidSpec", "Mars/Olympus"); }));
  EXPECT_TRUE(cluster_.Await([&] { return StatusNow().contains("waiting"); }));
  EXPECT_THAT(Names(), IsEmpty());
  cluster_.Edit(Ref(), [](Json& object) { object["spec"]["timeZone"] = "Etc/UTC"; });
  EXPECT_TRUE(AwaitStart(Day(1, 2)));
}

TEST_F(ScheduleSyncTest, StartsNoneWhileSuspended) {
  Put({{"suspend", true}});
  GoTo(Day(3, 12));
  Start();
  ASSERT_TRUE(cluster_.Await([&] { return StatusNow().contains("active"); }));
  EXPECT_THAT(Names(), IsEmpty());
  cluster_.Edit(Ref(), [](Json& object) { object["spec"]["suspend"] = false; });
  ASSERT_TRUE(AwaitStart(Day(3, 2)));
  EXPECT_THAT(Names(), ElementsAre(NameAt(Day(3, 2)))) << "the last that was missed";
  EXPECT_EQ(Number(StatusNow(), {"missedStarts"}), 2);
}

}  // namespace
}  // namespace shirabe::crd
