// Notifications under faults: commits fail or their answers get lost, endpoints fail or say so
// although they took it, controllers die between any two effects or only seem to. What happened is
// told to each endpoint that wants it, in order, and nothing is lost; a repeat has the id of the
// first. `SHIRABE_SEED=n` plays one seed again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "db/commit_rules.h"
#include "experiment/conditions.h"
#include "experiment/reconciler.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/notification.h"
#include "experiment/submission.h"
#include "tests/simulation/faulty_store.h"
#include "tests/simulation/late_pool.h"
#include "tests/simulation/sim_executor.h"
#include "tests/support/small_spec.h"

namespace shirabe::simulation {
namespace {

constexpr int kToldFaultySteps = 120;
constexpr int kToldQuietSteps = 3000;
constexpr uint64_t kMaxToldTrials = 6;

const ExperimentKey kTold{"sim", "told"};

void WishFor(v1::Experiment& experiment, const std::string& endpoint,
             const std::vector<v1::NotificationCause>& causes) {
  v1::Notification& wish = *experiment.mutable_spec()->mutable_shirabe()->add_notifications();
  wish.mutable_webhook()->set_endpoint(endpoint);
  for (const v1::NotificationCause cause : causes) wish.add_events(cause);
}

v1::Experiment DrawTold(Rng& rng) {
  v1::Experiment experiment = SmallExperiment(kTold);
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.mutable_algorithm()->set_algorithm_name("random");
  spec.set_max_trial_count(1 + static_cast<int>(rng.Below(kMaxToldTrials)));
  spec.set_max_failed_trial_count(static_cast<int>(rng.Below(3)));
  spec.set_parallel_trial_count(1);
  spec.mutable_shirabe()->set_ask_and_tell(true);
  WishFor(experiment, "all", {v1::ON_SUCCEEDED, v1::ON_FAILED, v1::ON_IMPROVED});
  WishFor(experiment, "ends", {v1::ON_SUCCEEDED, v1::ON_FAILED});
  experiment::SetDefaults(experiment);
  return experiment;
}

// The endpoints, which outlive every controller.
class SimEndpoints : public notify::Sender {
 public:
  explicit SimEndpoints(uint64_t seed) : rng_(seed) {}

  double refuse = 0;  // it is not received
  double forget = 0;  // it is, and the answer gets lost
  bool dead = false;  // who calls has died: nothing is sent any more

  notify::SendResult Send(const notify::Notification& what, std::stop_token) override {
    const notify::SendResult lost = {absl::UnavailableError("no answer (injected)"),
                                     absl::ZeroDuration()};
    if (dead || rng_.Uniform() < refuse) return lost;
    std::vector<std::string>& ids = received_[what.endpoint];
    const bool repeat = std::find(ids.begin(), ids.end(), what.id) != ids.end();
    repeat ? (void)++repeats_ : ids.push_back(what.id);
    bodies_[what.id].insert(what.body);
    return rng_.Uniform() < forget ? lost
                                   : notify::SendResult{absl::OkStatus(), absl::ZeroDuration()};
  }

  // First arrivals, in their order.
  std::vector<std::string> Received(const std::string& endpoint) { return received_[endpoint]; }
  int64_t repeats() const { return repeats_; }
  // Whether a repeat said something else.
  bool Contradicts() const {
    return std::any_of(bodies_.begin(), bodies_.end(),
                       [](const auto& entry) { return entry.second.size() > 1; });
  }

 private:
  Rng rng_;
  std::map<std::string, std::vector<std::string>> received_;
  std::map<std::string, std::set<std::string>> bodies_;
  int64_t repeats_ = 0;
};

class ToldRun {
 public:
  explicit ToldRun(uint64_t seed)
      : rng_(Mix(seed, 177)),
        world_(Mix(seed, 178), &clock_),
        disk_(*db::Open("memory:")),
        store_(disk_.get(), &rng_),
        pool_(Mix(seed, 179)),
        endpoints_(Mix(seed, 180)) {}

  // The controller dies at this step, counted from 1; 0 = at none. Then nothing else is drawn.
  int64_t crash_at = 0;
  bool scripted = false;
  int64_t steps() const { return steps_; }
  int64_t repeats() const { return endpoints_.repeats(); }
  size_t told() { return endpoints_.Received("all").size(); }

  // The first broken promise, or "".
  std::string Run() {
    if (!experiment::Submit(*disk_, clock_, DrawTold(rng_)).ok()) return "cannot submit it";
    Boot();
    for (int step = 0; step < kToldFaultySteps + kToldQuietSteps; ++step) {
      const bool quiet = scripted || step >= kToldFaultySteps;
      if (quiet) Calm();
      if (!quiet) Disturb();
      if (std::string broken = Step(quiet); !broken.empty()) {
        return absl::StrFormat("step %d: %s", step, broken);
      }
      if (ended_) return AtEnd();
    }
    return "it did not come to an end after the faults had stopped";
  }

 private:
  void Boot() {
    db::LeaseRequest request{.experiment = kTold,
                             .holder = std::to_string(rng_.Next()),
                             .now = clock_.Now(),
                             .ttl = absl::Seconds(15),
                             .dead_epoch = epoch_};
    epoch_ = disk_->AcquireLease(request)->epoch();
    if (!scripted && rng_.Below(2) == 0) zombie_ = std::move(reconciler_);
    reconciler_ = std::make_unique<experiment::Reconciler>(
        experiment::ReconcilerOptions{.store = &store_,
                                      .executor = &executor_,
                                      .clock = &clock_,
                                      .algorithm_workers = &pool_,
                                      .sender = &endpoints_,
                                      .patience = absl::ZeroDuration(),
                                      .at_step = [this] { CountStep(); }});
    reconciler_->Own(kTold, epoch_);
  }

  void CountStep() {
    if (++steps_ == crash_at) store_.dead = endpoints_.dead = true;
  }

  void Disturb() {
    switch (rng_.Below(10)) {
      case 0: Boot(); break;
      case 1: store_.refuse = rng_.Below(2) == 0 ? 0 : 0.3; break;
      case 2: store_.forget = rng_.Below(2) == 0 ? 0 : 0.3; break;
      case 3: store_.unreadable = rng_.Below(2) == 0 ? 0 : 0.1; break;
      case 4: endpoints_.refuse = rng_.Below(2) == 0 ? 0 : 0.5; break;
      case 5: endpoints_.forget = rng_.Below(2) == 0 ? 0 : 0.5; break;
      case 6:
        clock_.StepWallClock(absl::Minutes(static_cast<int64_t>(rng_.Below(120)) - 60));
        break;
      default: break;
    }
  }

  void Calm() {
    store_.refuse = store_.forget = store_.unreadable = 0;
    endpoints_.refuse = endpoints_.forget = 0;
  }

  std::string Step(bool quiet) {
    pool_.late = !quiet;
    pool_.Answer();
    // What waits for a clock that was set back waits for an hour at most.
    clock_.Advance(quiet ? absl::Seconds(3) : absl::Milliseconds(500));
    Act();
    const auto result = reconciler_->Reconcile(kTold);
    if (store_.dead) {
      store_.dead = endpoints_.dead = false;
      Boot();
      return "";
    }
    if (zombie_ != nullptr && db::IsLeaseLost(zombie_->Reconcile(kTold).status())) {
      zombie_ = nullptr;
    }
    ended_ = result.ok() && result->ended;
    return "";
  }

  // Its caller asks for a trial, or tells the end of the one that it has.
  void Act() {
    const auto trials = disk_->ListTrials({.experiment = kTold, .live_only = true});
    const bool runs = !trials->empty() && trials->at(0).record.phase() == v1::TRIAL_RUNNING;
    if (!runs) {
      v1::Intent ask;
      ask.set_verb(v1::Intent::ASK);
      ask.set_caller("caller");
      if (trials->empty()) experiment::Send(*disk_, clock_, kTold, ask).IgnoreError();
      return;
    }
    const v1::Trial& trial = trials->at(0).record;
    // The same each time that it is told: a Commit may have failed.
    Rng fate(Mix(trial.number(), 181));
    experiment::Report report{.trial = {kTold, trial.number()}, .attempt = trial.attempts()};
    report.points.push_back({.metric = "loss", .value = fate.Uniform(), .step = 1});
    const bool fails = fate.Below(4) == 0;
    report.end = fails ? experiment::Report::End::kFailed : experiment::Report::End::kCompleted;
    auto told = std::make_shared<experiment::PendingReport>();  // shared with the queue
    told->report = std::move(report);
    if (const auto queue = reconciler_->ReportQueueOf(kTold)) queue->Put(told).IgnoreError();
  }

  // The numbers without a gap, each improvement better than the last, the end once and last.
  std::string CheckEvents(std::vector<v1::EventNotification>& made) {
    double best = 2;
    int ends = 0;
    const auto events = disk_->ListEvents({.experiment = kTold});
    for (const v1::Event& event : *events) {
      if (!event.has_notification()) continue;
      made.push_back(event.notification());
      if (made.back().number() != static_cast<int64_t>(made.size())) return "a number is left out";
      const auto body = nlohmann::json::parse(made.back().body());
      if (made.back().cause() != v1::ON_IMPROVED) {
        ++ends;
      } else {
        if (ends > 0) return "it improved after its end";
        const double value = body["best"]["value"];
        if (value >= best) return "what is told as an improvement is none";
        best = value;
      }
    }
    return ends == 1 ? "" : absl::StrFormat("%d ends were told", ends);
  }

  std::string AtEnd() {
    const v1::Experiment experiment = disk_->GetExperiment(kTold)->record;
    if (!experiment::IsEnded(experiment)) return "it stopped without an end";
    std::vector<v1::EventNotification> made;
    if (std::string broken = CheckEvents(made); !broken.empty()) return broken;
    if (endpoints_.Contradicts()) return "a repeat says something else";
    for (const v1::Notification& wish : experiment.spec().shirabe().notifications()) {
      const std::string& endpoint = wish.webhook().endpoint();
      std::vector<std::string> wanted;
      for (const v1::EventNotification& one : made) {
        const auto& on = wish.events();
        if (std::find(on.begin(), on.end(), one.cause()) == on.end()) continue;
        wanted.push_back(experiment::NotificationId(experiment, one.number()));
      }
      if (endpoints_.Received(endpoint) != wanted) return endpoint + " was not told all, in order";
      for (const auto& status : experiment.status().shirabe().notifications()) {
        if (status.endpoint() != endpoint) continue;
        const bool done = status.pending() == 0 && status.given_up() == 0 &&
                          status.delivered() == static_cast<int64_t>(wanted.size());
        if (!done) return "the counts of " + endpoint + " are wrong";
      }
    }
    return "";
  }

  Rng rng_;
  ManualClock clock_;
  World world_;
  std::unique_ptr<db::Store> disk_;
  FaultyStore store_;
  SimExecutor executor_{&world_};
  LatePool pool_;
  SimEndpoints endpoints_;
  int64_t epoch_ = 0;
  int64_t steps_ = 0;
  std::unique_ptr<experiment::Reconciler> reconciler_, zombie_;
  bool ended_ = false;
};

TEST(Notifications, NothingIsLostAndAllComesInOrder) {
  SetLogLevel(LogLevel::kError);
  const char* one = std::getenv("SHIRABE_SEED");
  const uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
  const uint64_t last = one == nullptr ? first + 300 : first + 1;
  int64_t repeats = 0;
  size_t told = 0;
  for (uint64_t seed = first; seed < last; ++seed) {
    ToldRun run(seed);
    ASSERT_EQ(run.Run(), "") << "play it again with SHIRABE_SEED=" << seed;
    repeats += run.repeats();
    told += run.told();
  }
  if (one != nullptr) return;
  EXPECT_GT(told, 300u);
  EXPECT_GT(repeats, 30) << "no fault made a repeat: nothing was threatened";
}

TEST(Notifications, SurviveACrashAtEachStep) {
  SetLogLevel(LogLevel::kError);
  int64_t repeats = 0;
  for (const uint64_t seed : {3, 8}) {
    ToldRun whole(seed);
    whole.scripted = true;
    ASSERT_EQ(whole.Run(), "") << "seed " << seed;
    ASSERT_GT(whole.steps(), 30) << "at_step is not called";
    EXPECT_EQ(whole.repeats(), 0);
    for (int64_t step = 1; step <= whole.steps(); ++step) {
      ToldRun crashed(seed);
      crashed.scripted = true;
      crashed.crash_at = step;
      ASSERT_EQ(crashed.Run(), "") << "seed " << seed << ", crash at step " << step;
      repeats += crashed.repeats();
    }
  }
  EXPECT_GT(repeats, 0) << "no crash came between an answer and its Commit";
}

}  // namespace
}  // namespace shirabe::simulation
