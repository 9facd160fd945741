// Passes over an experiment with notifications: what is told and when, what becomes of an endpoint
// that does not answer, and how long an experiment that has ended is kept for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiment/conditions.h"
#include "experiment/pass_steps.h"
#include "experiment/state/pass_delta.h"
#include "notify/endpoints.h"
#include "tests/experiment/reconciler_fixture.h"
#include "tests/support/small_spec.h"

namespace shirabe::experiment {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ToldEndpoints : public notify::Sender {
 public:
  Status answer;
  absl::Duration retry_after;
  std::vector<notify::Notification> sent;

  notify::SendResult Send(const notify::Notification& what, std::stop_token) override {
    sent.push_back(what);
    return {answer, retry_after};
  }
};

class NotifyTest : public ReconcilerTest {
 protected:
  NotifyTest() {
    told_ = std::make_unique<Reconciler>(ReconcilerOptions{.store = store_.get(),
                                                           .executor = &executor_,
                                                           .clock = &clock_,
                                                           .algorithm_workers = &workers_,
                                                           .sender = &endpoints_,
                                                           .enqueue = {},
                                                           .at_step = {}});
  }

  // One endpoint is told everything, another only ends.
  void Start(std::optional<double> max_cost = std::nullopt) {
    v1::Experiment experiment = SmallExperiment(kKey);
    experiment.mutable_spec()->mutable_algorithm()->set_algorithm_name("random");
    experiment.mutable_spec()->set_parallel_trial_count(1);
    v1::ShirabeSpec& spec = *experiment.mutable_spec()->mutable_shirabe();
    spec.set_ask_and_tell(true);
    if (max_cost) spec.mutable_budget()->set_max_cost(*max_cost);
    Wish(spec, "all", {v1::ON_SUCCEEDED, v1::ON_FAILED, v1::ON_IMPROVED, v1::ON_BUDGET_THRESHOLD});
    Wish(spec, "ends", {v1::ON_FAILED, v1::ON_SUCCEEDED});
    SetDefaults(experiment);
    CreateFrom(experiment);
    reconciler_.ReleaseOwnership(kKey);
    told_->Own(kKey, epoch_);
  }
  static void Wish(v1::ShirabeSpec& spec, const std::string& endpoint,
                   const std::vector<v1::NotificationCause>& causes) {
    v1::Notification& wish = *spec.add_notifications();
    wish.mutable_webhook()->set_endpoint(endpoint);
    for (const v1::NotificationCause cause : causes) wish.add_events(cause);
  }
  ReconcileResult Told() {
    told_->NotifyIntent(kKey);
    const auto result = told_->Reconcile(kKey);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : ReconcileResult();
  }
  void Settle() {
    for (int i = 0; i < 6; ++i) Told();
  }
  // A caller asks for a trial and tells its result.
  void Try(double loss) {
    v1::Intent ask;
    ask.set_verb(v1::Intent::ASK);
    ask.set_caller("caller");
    ASSERT_TRUE(experiment::Send(*store_, clock_, kKey, ask).ok());
    Settle();
    const auto trials = store_->ListTrials({.experiment = kKey, .live_only = true});
    ASSERT_FALSE(trials->empty());
    auto told = std::make_shared<PendingReport>();  // shared with the queue
    told->report = {.trial = {kKey, trials->back().record.number()}, .attempt = 1};
    told->report.points.push_back({.metric = "loss", .value = loss, .step = 1});
    told->report.end = Report::End::kCompleted;
    ASSERT_TRUE(told_->ReportQueueOf(kKey)->Put(told).ok());
    Settle();
    ASSERT_TRUE(told->answer.ok()) << told->answer.status();
  }
  void Stop() {
    Send(v1::Intent::STOP);
    Settle();
  }
  v1::Experiment Now() { return store_->GetExperiment(kKey)->record; }
  v1::NotificationStatus StatusOf(const std::string& endpoint) {
    const v1::Experiment experiment = Now();
    for (const auto& one : experiment.status().shirabe().notifications()) {
      if (one.endpoint() == endpoint) return one;
    }
    return {};
  }
  // "all: Improved 0.5" of each request.
  std::vector<std::string> Sent() {
    std::vector<std::string> lines;
    for (const notify::Notification& one : endpoints_.sent) {
      const auto body = nlohmann::json::parse(one.body);
      const auto best = body["best"].is_null() ? "" : " " + body["best"]["value"].dump();
      lines.push_back(one.endpoint + ": " + body["type"].get<std::string>() + best);
    }
    return lines;
  }
  std::vector<std::string> Events(const std::string& reason) {
    std::vector<std::string> messages;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) {
      if (event.reason() == reason) messages.push_back(event.message());
    }
    return messages;
  }

  ToldEndpoints endpoints_;
  std::unique_ptr<Reconciler> told_;
};

TEST_F(NotifyTest, EachEndpointIsToldWhatItWantsOnce) {
  Start();
  Try(0.5);
  Try(0.75);
  Try(0.25);
  Stop();
  Settle();
  EXPECT_THAT(Sent(), ElementsAre("all: Improved 0.5", "all: Improved 0.25", "all: Succeeded 0.25",
                                  "ends: Succeeded 0.25"));
  EXPECT_EQ(StatusOf("all").delivered(), 3);
  EXPECT_EQ(StatusOf("all").pending(), 0);
  EXPECT_EQ(StatusOf("ends").delivered(), 1);
  EXPECT_THAT(Events("NotificationDelivered"), Contains("Improved (2) to all"));
  EXPECT_TRUE(Told().ended);
  EXPECT_FALSE(NeedsOwner(Now()));
}

TEST_F(NotifyTest, TheBodySaysWhatHappenedThen) {
  Start();
  Try(0.5);
  ASSERT_EQ(endpoints_.sent.size(), 1u);
  const notify::Notification& sent = endpoints_.sent[0];
  const auto body = nlohmann::json::parse(sent.body);
  EXPECT_EQ(sent.ns, "default");
  EXPECT_EQ(sent.id, Now().metadata().uid() + ".1");
  EXPECT_EQ(body["id"], sent.id);
  EXPECT_EQ(body["number"], 1);
  EXPECT_EQ(body["experiment"]["name"], "good");
  EXPECT_EQ(body["best"]["trial"], "good-1");
  EXPECT_EQ(body["best"]["metric"], "loss");
  EXPECT_TRUE(body["best"]["parameters"].contains("lr"));
  EXPECT_EQ(body["trials"]["created"], 1);
  EXPECT_EQ(body["time"], "2023-11-14T22:13:20Z");
}

TEST_F(NotifyTest, AnEndpointThatFailsIsAskedLessAndLessOftenAndHoldsUpNoOther) {
  Start();
  endpoints_.answer = absl::UnavailableError("the endpoint answered HTTP 500");
  Try(0.5);
  EXPECT_EQ(endpoints_.sent.size(), 1u);
  EXPECT_EQ(StatusOf("all").attempts(), 1);
  EXPECT_EQ(StatusOf("all").error(), "the endpoint answered HTTP 500");
  EXPECT_THAT(Events("NotificationFailed"),
              ElementsAre(HasSubstr("Improved (1) to all: the endp")));
  size_t before = 1;
  for (int doubling = 1; doubling < 8; ++doubling) {
    const absl::Duration wait = Told().requeue_after;
    EXPECT_GE(wait, absl::Seconds(1 << (doubling - 1)) / 2) << doubling;
    EXPECT_LE(wait, absl::Seconds(1 << (doubling - 1))) << doubling;
    clock_.Advance(wait - absl::Milliseconds(1));
    Told();
    EXPECT_EQ(endpoints_.sent.size(), before) << "too early";
    clock_.Advance(absl::Milliseconds(2));
    Settle();
    EXPECT_EQ(endpoints_.sent.size(), ++before);
  }
  // The same notification, under the same id, and only one event about it.
  for (const auto& sent : endpoints_.sent) EXPECT_EQ(sent.body, endpoints_.sent[0].body);
  EXPECT_EQ(Events("NotificationFailed").size(), 1u);
  Stop();
  EXPECT_FALSE(Told().ended) << "what is to be delivered needs an owner";
  EXPECT_TRUE(NeedsOwner(Now()));
  endpoints_.answer = absl::OkStatus();
  clock_.Advance(absl::Hours(1));
  Settle();
  EXPECT_TRUE(Told().ended);
  EXPECT_EQ(StatusOf("all").delivered(), 2);
  EXPECT_EQ(StatusOf("all").error(), "");
}

TEST_F(NotifyTest, AfterADayItIsGivenUpWithAnEvent) {
  Start();
  endpoints_.answer = absl::UnavailableError("gone");
  Try(0.5);
  Stop();
  for (int i = 0; i < 60 && !Told().ended; ++i) clock_.Advance(absl::Hours(1));
  EXPECT_TRUE(Told().ended);
  EXPECT_EQ(StatusOf("all").given_up(), 2);
  EXPECT_EQ(StatusOf("all").delivered(), 0);
  EXPECT_EQ(StatusOf("all").pending(), 0);
  EXPECT_EQ(StatusOf("ends").given_up(), 1);
  EXPECT_THAT(Events("NotificationGivenUp"),
              Contains(HasSubstr("Improved (1) to all: gone; given")));
  EXPECT_LE(endpoints_.sent.size(), size_t{3} * kMaxNotificationAttempts);
}

TEST_F(NotifyTest, AnEndpointMayWishToBeLeftAloneForAWhile) {
  Start();
  endpoints_.answer = absl::UnavailableError("the endpoint answered HTTP 429");
  endpoints_.retry_after = absl::Minutes(10);
  Try(0.5);
  EXPECT_GE(Told().requeue_after, absl::Minutes(9));
}

TEST_F(NotifyTest, AClockThatIsSetBackHoldsNothingUpForLong) {
  Start();
  endpoints_.answer = absl::UnavailableError("gone");
  Try(0.5);
  endpoints_.answer = absl::OkStatus();
  clock_.StepWallClock(-absl::Hours(10));
  Settle();
  EXPECT_EQ(StatusOf("all").delivered(), 1);
}

TEST_F(NotifyTest, AProcessWithoutEndpointsLeavesThemToOneThatHasSome) {
  Start();
  told_->ReleaseOwnership(kKey);
  reconciler_.Own(kKey, epoch_);
  Send(v1::Intent::STOP);
  Pass();
  Pass();
  EXPECT_EQ(StatusOf("ends").pending(), 1);
  EXPECT_THAT(endpoints_.sent, IsEmpty());
  reconciler_.ReleaseOwnership(kKey);
  told_->Own(kKey, epoch_);
  Settle();
  EXPECT_EQ(StatusOf("ends").delivered(), 1);
  EXPECT_TRUE(Told().ended);
}

TEST_F(NotifyTest, TheDeletionOfAnExperimentWaitsForNoEndpoint) {
  Start();
  endpoints_.answer = absl::UnavailableError("gone");
  Try(0.5);
  Send(v1::Intent::DELETE);
  told_->NotifyIntent(kKey);
  bool deleted = false;
  for (int i = 0; i < 6 && !deleted; ++i) deleted = Told().deleted;
  EXPECT_TRUE(deleted);
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment(kKey).status()));
}

// ---- the budget --------------------------------------------------------------------------------

TEST_F(NotifyTest, ThresholdsOfTheBudgetAreToldOnceEach) {
  Start(10);
  Told();
  const auto state = ExperimentState::Load(*store_, kKey, epoch_);
  ASSERT_TRUE(state.ok()) << state.status();
  const ReconcilerOptions options{.store = store_.get(), .clock = &clock_};
  const ReconcileMode mode;
  const PassInput in{**state, options, mode, clock_.Now(), clock_.Monotonic()};
  std::vector<std::string> told;
  for (const double spent : {7.9, 8.0, 9.5, 10.0, 11.0}) {
    Apply(RecordNotifications(in, {.cap = 10, .spent = spent}), **state);
    told.push_back(absl::StrCat((*state)->batch().events.size()));
  }
  EXPECT_THAT(told, ElementsAre("0", "1", "1", "2", "2"));
  EXPECT_THAT((*state)->batch().events[0].message(),
              HasSubstr("BudgetThreshold, for all: 80 % of the budget are spent: 8 of 10 USD"));
}

// ---- what a specification may say --------------------------------------------------------------

std::string WithNotifications(const std::string& list) {
  return Replaced(kGood,
                  "  parameters:", "  shirabe: {notifications: " + list + "}\n  parameters:");
}

TEST(NotificationRules, AreToldByField) {
  const std::string path = "spec.shirabe.notifications";
  const auto has = [&](const std::string& list, const std::string& text) {
    EXPECT_THAT(FindingsOf(WithNotifications(list)), Contains(HasSubstr(path + text))) << list;
  };
  has("[{events: [Succeeded], webhook: {endpoint: Team}}]",
      "[0].webhook.endpoint: endpoint name \"Team\" must be");
  has("[{events: [Succeeded]}]", "[0].webhook: is required");
  has("[{events: [], webhook: {endpoint: a}}]", "[0].events: is required");
  has("[{events: [Succeeded, Succeeded], webhook: {endpoint: a}}]",
      "[0].events[1]: is given twice");
  has("[{events: [Done], webhook: {endpoint: a}}]", "[0].events[0]");
  has("[{events: [BudgetThreshold], webhook: {endpoint: a}}]",
      "[0].events[0]: nothing is ever told");
  has("[{events: [Failed], webhook: {endpoint: a}}, {events: [Succeeded], webhook: {endpoint: a}}]",
      "[1].webhook.endpoint: \"a\" is told already");
  has("[{events: [Failed], webhook: {endpoint: a, url: http://b}}]", "[0].webhook.url");
}

TEST(NotificationRules, EndpointsMustExistWhereTheyAreKnown) {
  const std::string text = WithNotifications("[{events: [Failed], webhook: {endpoint: team}}]");
  ASSERT_TRUE(notify::SetEndpoints({}).ok());
  EXPECT_THAT(FindingsOf(text),
              Contains(HasSubstr("there is no endpoint \"team\" for namespace default here")));
}

}  // namespace
}  // namespace shirabe::experiment
