// Where a search ends, and what users ask of it meanwhile, under faults: controllers die between
// any two passes, or only seem to; commits fail, or take effect and fail all the same; the model
// answers late. The same wishes and results lead to the same trials and to an end by the same rule
// with the same figures, as if nothing had happened, and an end is never taken back.
// `SHIRABE_SEED=n` plays one seed again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "db/commit_rules.h"
#include "experiment/conditions.h"
#include "experiment/reconciler.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/experiment_state.h"
#include "experiment/state/stop_rules.h"
#include "experiment/submission.h"
#include "tests/simulation/faulty_store.h"
#include "tests/simulation/late_pool.h"
#include "tests/simulation/sim_executor.h"
#include "tests/support/small_spec.h"

namespace shirabe::simulation {
namespace {

constexpr int kSteeredSteps = 4000;
const ExperimentKey kSteered{"sim", "steered"};

// By one caller, who runs one trial at a time: what the search learns comes in one order.
class SteeredRun {
 public:
  SteeredRun(uint64_t seed, bool faults)
      : seed_(seed),
        faults_(faults),
        rng_(Mix(seed, 41)),
        faults_rng_(Mix(seed, 42)),
        world_(Mix(seed, 43), &clock_),
        disk_(*db::Open("memory:")),
        store_(disk_.get(), &faults_rng_),
        pool_(Mix(seed, 44)) {}

  // The first broken promise, or "".
  std::string Run() {
    if (const auto sent = experiment::Submit(*disk_, clock_, Draw()); !sent.ok()) {
      return sent.status().ToString();
    }
    Boot();
    for (int step = 0; step < kSteeredSteps; ++step) {
      if (std::string broken = Step(); !broken.empty()) {
        return absl::StrFormat("step %d: %s", step, broken);
      }
      if (ended_) return CheckFront();
    }
    return "it did not end: " + Experiment().status().ShortDebugString();
  }

  // What must be the same with and without faults.
  std::string Outcome() {
    const v1::Experiment experiment = Experiment();
    const v1::ShirabeStatus& status = experiment.status().shirabe();
    std::string text =
        absl::StrCat(experiment::CurrentCondition(experiment).reason(), " ",
                     status.stop_rule().ShortDebugString(), " since ",
                     status.trials_since_improvement(), " tags ", absl::StrJoin(status.tags(), ","),
                     " note ", status.note(), " ranges ", status.space_changes(), " outside ",
                     status.outside_trials(), " front ", status.front().ShortDebugString(), "\n");
    const auto trials = disk_->ListTrials({.experiment = kSteered});
    for (const auto& [trial, revision] : *trials) {
      absl::StrAppend(&text, trial.number(), " ", v1::TrialPhase_Name(trial.phase()), " ",
                      trial.reason(), " ", trial.point().ShortDebugString(), " ",
                      trial.explanation(), " ", trial.note(), "\n");
    }
    return text;
  }
  v1::Experiment Experiment() { return disk_->GetExperiment(kSteered)->record; }

 private:
  v1::Experiment Draw() {
    v1::Experiment experiment = SmallExperiment(kSteered);
    v1::ExperimentSpec& spec = *experiment.mutable_spec();
    spec.set_max_trial_count(40);
    v1::ShirabeSpec& ours = *spec.mutable_shirabe();
    ours.set_ask_and_tell(true);
    ours.set_seed(static_cast<int64_t>(seed_));
    v1::StopWhen& stop = *ours.mutable_stop_when();
    stop.set_min_trials(3 + static_cast<int>(rng_.Below(6)));
    const bool model = rng_.Below(3) == 0;
    spec.mutable_algorithm()->set_algorithm_name(model ? "bayesianoptimization" : "random");
    if (model) stop.set_regret_below(rng_.Below(2) == 0 ? 0.05 : 0.005);
    if (!model || rng_.Below(2) == 0) {
      stop.set_no_improvement_trials(3 + static_cast<int>(rng_.Below(6)));
      if (rng_.Below(2) == 0) stop.set_min_improvement(0.01);
    }
    if (!stop.has_regret_below() && rng_.Below(2) == 0) AskForMore(ours);
    experiment::SetDefaults(experiment);
    return experiment;
  }

  // A second objective, and a constraint.
  void AskForMore(v1::ShirabeSpec& ours) {
    ours.mutable_stop_when()->clear_min_improvement();
    v1::AdditionalObjective& further = *ours.add_additional_objectives();
    further.set_metric_name("time");
    further.set_type(v1::MAXIMIZE);
    v1::ResultConstraint& constraint = *ours.add_constraints();
    constraint.set_metric_name("memory");
    constraint.set_max(0.8);
  }

  // Some programs forget one of the metrics.
  std::vector<metrics::Observation> PointsOf(const v1::Trial& trial) {
    const double lr = trial.assignments(0).number();
    std::vector<metrics::Observation> points = {
        {.metric = "loss", .value = (lr - 0.3) * (lr - 0.3), .step = 1}};
    if (Experiment().spec().shirabe().constraints_size() == 0) return points;
    points.push_back({.metric = "memory", .value = lr, .step = 1});
    Rng rng(Mix(seed_, 2000 + static_cast<uint64_t>(trial.number())));
    if (rng.Below(8) != 0) points.push_back({.metric = "time", .value = lr, .step = 1});
    return points;
  }

  // The front of what is stored: lr is best small for the loss below 0.3, large for the time.
  std::string CheckFront() {
    const v1::Experiment experiment = Experiment();
    if (experiment.spec().shirabe().additional_objectives_size() == 0) return "";
    std::vector<std::pair<double, double>> values;  // loss, -time
    const auto trials = disk_->ListTrials({.experiment = kSteered});
    int64_t infeasible = 0;
    for (const auto& [trial, revision] : *trials) {
      if (trial.phase() != v1::TRIAL_SUCCEEDED) continue;
      const double lr = trial.assignments(0).number();
      const bool whole = trial.observation().metrics_size() == 3;
      infeasible += trial.infeasible();
      if (trial.infeasible() == whole) return "a result that lacks a metric counts";
      if (whole && lr <= 0.8) values.emplace_back(trial.objective(), -lr);
    }
    std::set<std::pair<double, double>> front;
    for (const auto& a : values) {
      const bool beaten = std::any_of(values.begin(), values.end(), [&](const auto& b) {
        return b != a && b.first <= a.first && b.second <= a.second;
      });
      if (!beaten) front.insert(a);
    }
    std::set<std::pair<double, double>> told;
    const v1::ResultFront& status = experiment.status().shirabe().front();
    for (const v1::FrontTrial& trial : status.trials()) {
      told.emplace(trial.values(0), -trial.values(1));
    }
    if (told != front || status.size() != static_cast<int64_t>(front.size())) {
      return "the front is another: " + status.ShortDebugString();
    }
    const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
    if (best.has_objective() != !front.empty()) return "there is no best trial, or should be none";
    if (!front.empty() && best.objective() != front.begin()->first) return "the best is another";
    return infeasible == experiment.status().shirabe().trials_infeasible() ? "" : "miscounted";
  }

  void Boot() {
    db::LeaseRequest request{.experiment = kSteered,
                             .holder = std::to_string(faults_rng_.Next()),
                             .now = clock_.Now(),
                             .ttl = absl::Hours(1),
                             .dead_epoch = epoch_};
    epoch_ = disk_->AcquireLease(request)->epoch();
    if (faults_ && faults_rng_.Below(2) == 0) zombie_ = std::move(reconciler_);
    reconciler_ = std::make_unique<experiment::Reconciler>(
        experiment::ReconcilerOptions{.store = &store_,
                                      .executor = &executor_,
                                      .clock = &clock_,
                                      .algorithm_workers = &pool_,
                                      .patience = absl::ZeroDuration()});
    reconciler_->Own(kSteered, epoch_);
  }

  void Disturb() {
    switch (faults_rng_.Below(8)) {
      case 0: Boot(); break;
      case 1: store_.refuse = faults_rng_.Below(2) == 0 ? 0 : 0.3; break;
      case 2: store_.forget = faults_rng_.Below(2) == 0 ? 0 : 0.3; break;
      case 3: store_.unreadable = faults_rng_.Below(2) == 0 ? 0 : 0.1; break;
      default: break;
    }
  }

  std::string Step() {
    if (faults_) Disturb();
    pool_.late = faults_;
    pool_.Answer();
    clock_.Advance(absl::Milliseconds(500));
    Act();
    const auto result = reconciler_->Reconcile(kSteered);
    if (db::IsLeaseLost(result.status())) return "the owner was told that it is none";
    if (zombie_ != nullptr && db::IsLeaseLost(zombie_->Reconcile(kSteered).status())) {
      zombie_ = nullptr;
    }
    if (report_ != nullptr && report_->answered && !absl::IsUnavailable(report_->answer.status())) {
      report_ = nullptr;
    }
    ended_ = result.ok() && result->ended;
    return CheckDecided();
  }

  // Once a rule is recorded it stays, and nothing begins after it.
  std::string CheckDecided() {
    const v1::ExperimentStatus status = Experiment().status();
    const std::string rule = status.shirabe().stop_rule().SerializeAsString();
    if (!decided_.empty() && rule != decided_) return "the rule that ended it was taken back";
    if (!decided_.empty() && status.trials() != trials_) return "a trial was made after the end";
    decided_ = rule;
    trials_ = status.trials();
    return "";
  }

  void Send(v1::Intent intent) {
    intent.mutable_actor()->set_name("ann");
    experiment::Send(*disk_, clock_, kSteered, std::move(intent)).IgnoreError();
  }

  // Wishes come between two trials; of one that runs, before its result.
  void Wish(int64_t ended) {
    Rng rng(Mix(seed_, 1000 + static_cast<uint64_t>(ended)));
    v1::Intent intent;
    switch (rng.Below(6)) {
      case 5: {
        // The ranges become wider and narrower; the best is at 0.3.
        intent.set_verb(v1::Intent::SCALE);
        v1::ParameterChange& change = *intent.add_parameters();
        change.set_name("lr");
        change.mutable_feasible_space()->set_min(rng.Below(2) == 0 ? 0 : 0.2 * rng.Uniform());
        change.mutable_feasible_space()->set_max(0.4 + rng.Uniform());
        break;
      }
      case 0:
        intent.set_verb(v1::Intent::TRY);
        (*intent.mutable_point()->mutable_fields())["lr"].set_number_value(rng.Uniform());
        break;
      case 1:
        if (ended == 0) return;
        intent.set_verb(v1::Intent::TRY);
        intent.set_trial(1 + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(ended))));
        break;
      case 2:
        intent.set_verb(v1::Intent::ANNOTATE);
        intent.set_note(absl::StrCat("after ", ended));
        intent.add_add_tags(absl::StrCat("t", ended % 10));
        break;
      case 3:
        if (ended == 0) return;
        intent.set_verb(v1::Intent::ANNOTATE);
        intent.set_trial(ended);
        intent.set_note("seen");
        break;
      default: return;
    }
    Send(std::move(intent));
  }

  std::optional<v1::Trial> Running() {
    const auto trials = disk_->ListTrials({.experiment = kSteered, .live_only = true});
    for (const auto& [trial, revision] : *trials) {
      if (trial.caller() == "w" && trial.phase() == v1::TRIAL_RUNNING) return trial;
    }
    return std::nullopt;
  }

  void Act() {
    if (report_ != nullptr) return Deliver();
    const auto running = Running();
    if (!running) return AskNext();
    report_ = std::make_shared<experiment::PendingReport>();  // shared with the queue
    experiment::Report& report = report_->report;
    report = {.trial = {kSteered, running->number()}, .attempt = running->attempts()};
    report.points = PointsOf(*running);
    report.end = experiment::Report::End::kCompleted;
    Deliver();
  }

  // Or no model can bound the regret. What lies outside of today's range is not learned from.
  bool ResultsDiffer(const v1::Experiment& experiment) {
    std::set<double> losses;
    int inside = 0;
    const v1::FeasibleSpace& range = experiment.spec().parameters(0).feasible_space();
    const auto trials = disk_->ListTrials({.experiment = kSteered});
    for (const auto& [trial, revision] : *trials) {
      const double lr = trial.assignments(0).number();
      if (trial.phase() != v1::TRIAL_SUCCEEDED || lr < range.min() || lr > range.max()) continue;
      losses.insert(trial.objective());
      ++inside;
    }
    return losses.size() > 1 && inside >= 3;
  }

  void AskNext() {
    const v1::Experiment experiment = Experiment();
    const v1::ExperimentStatus& status = experiment.status();
    // Without faults the model has answered by now, and an end has come.
    if (status.shirabe().has_stop_rule()) return;
    if (experiment::WantsRegretBound(experiment) && ResultsDiffer(experiment)) return;
    const int64_t done = status.trials_succeeded();
    if (done >= experiment.spec().max_trial_count()) return;  // its end may be a pass away
    const bool busy = status.trials() > done && asked_ > done;
    if (busy || asked_ > done) return;
    asked_ = done + 1;
    Wish(done);
    v1::Intent ask;
    ask.set_verb(v1::Intent::ASK);
    ask.set_caller("w");
    Send(std::move(ask));
  }

  void Deliver() {
    auto again = std::make_shared<experiment::PendingReport>();  // shared with the queue
    again->report = report_->report;
    report_ = again;
    const auto queue = reconciler_->ReportQueueOf(kSteered);
    if (queue != nullptr) queue->Put(again).IgnoreError();
  }

  const uint64_t seed_;
  const bool faults_;
  Rng rng_, faults_rng_;
  ManualClock clock_;
  World world_;
  std::unique_ptr<db::Store> disk_;
  FaultyStore store_;
  SimExecutor executor_{&world_};
  LatePool pool_;
  int64_t epoch_ = 0;
  std::unique_ptr<experiment::Reconciler> reconciler_, zombie_;
  experiment::PendingReportPtr report_;
  int64_t asked_ = 0;
  int64_t trials_ = 0;
  std::string decided_;
  bool ended_ = false;
};

TEST(Steering, FaultsChangeNeitherTheTrialsNorTheEnd) {
  SetLogLevel(LogLevel::kError);
  const char* one = std::getenv("SHIRABE_SEED");
  const uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
  const uint64_t last = one == nullptr ? first + 40 : first + 1;
  std::map<std::string, int> rules;
  int fronts = 0, changed = 0, outside = 0;
  for (uint64_t seed = first; seed < last; ++seed) {
    SteeredRun calm(seed, false), disturbed(seed, true);
    ASSERT_EQ(calm.Run(), "") << "SHIRABE_SEED=" << seed;
    ASSERT_EQ(disturbed.Run(), "") << "SHIRABE_SEED=" << seed;
    ASSERT_EQ(calm.Outcome(), disturbed.Outcome()) << "SHIRABE_SEED=" << seed;
    ++rules[calm.Experiment().status().shirabe().stop_rule().rule()];
    changed += calm.Experiment().status().shirabe().space_changes() > 0;
    outside += calm.Experiment().status().shirabe().outside_trials() > 0;
    fronts += calm.Experiment().status().shirabe().front().size() > 1;
  }
  if (one != nullptr) return;
  EXPECT_GT(rules["stopWhen.noImprovementTrials"], 5);
  EXPECT_GT(rules["stopWhen.regretBelow"], 2);
  EXPECT_GT(fronts, 5);
  EXPECT_GT(changed, 10);
  EXPECT_GT(outside, 3);
}

}  // namespace
}  // namespace shirabe::simulation
