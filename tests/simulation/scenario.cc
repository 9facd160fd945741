#include "tests/simulation/scenario.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/number.h"
#include "experiment/submit.h"

namespace shirabe::simulation {
namespace {

constexpr int kFaultySteps = 250;
constexpr int kQuietSteps = 4000;

}  // namespace

Scenario::Scenario(uint64_t seed, Faults faults)
    : seed_(seed),
      faults_(faults),
      rng_(Mix(seed, 1)),
      world_(Mix(seed, 2), &clock_),
      disk_(*db::Open("memory:")),
      store_(std::make_unique<FaultyStore>(disk_.get(), &rng_)),
      pool_(Mix(seed, 9)),
      invariants_(key_, disk_.get(), &world_) {
  SetCollectedWorld(&world_);
  world_.SetCode([this](int64_t trial) { return TrainingOf(trial); });
  world_.SetPools(DrawPools(seed));
  world_.hazards() = DrawHazards(seed, faults);
}

// A parent's number is less than its child's.
Training Scenario::TrainingOf(int64_t number) {
  const v1::Trial trial = disk_->GetTrial({key_, number})->record;
  const int64_t parent = trial.parent().trial();
  const int64_t parent_steps = parent > 0 ? TrainingOf(parent).steps : 0;
  return DrawTraining(seed_, trial, parent_steps, faults_);
}

void Scenario::Boot() {
  const std::string holder = "sim:" + std::to_string(rng_.Next());
  db::LeaseRequest request{.experiment = key_,
                           .holder = holder,
                           .now = clock_.Now(),
                           .ttl = absl::Seconds(15),
                           .dead_epoch = epoch_};
  epoch_ = disk_->AcquireLease(request)->epoch();
  executor_ = std::make_unique<SimExecutor>(&world_);
  reconciler_ = std::make_unique<experiment::Reconciler>(
      experiment::ReconcilerOptions{.store = store_.get(),
                                    .executor = executor_.get(),
                                    .clock = &clock_,
                                    .proposer = &pool_,
                                    .patience = absl::ZeroDuration(),
                                    .at_step = [this] { CountStep(); }});
  reconciler_->Own(key_, epoch_);
  suspended_ = false;
  due_ = clock_.Monotonic();
}

// From here on nothing of the controller that runs has any effect.
void Scenario::CountStep() {
  if (++steps_ != crash_at) return;
  store_->dead = true;
  executor_->Die();
}

std::string Scenario::Run() {
  quiet_ = faults_ == Faults::kNone;
  return Play(kFaultySteps + kQuietSteps);
}

std::string Scenario::RunScripted() {
  quiet_ = true;
  world_.hazards().forget = world_.hazards().slow_verify = 0;
  v1::NodePools pools;
  v1::NodePool& pool = *pools.add_pools();
  pool.set_name("spot");
  pool.set_capacity(v1::SPOT);
  pool.set_price_per_hour(3);
  pool.set_slots(100);
  pool.mutable_reclaim()->set_notice_seconds(2);
  world_.SetPools(pools);
  return Play(kQuietSteps);
}

std::string Scenario::Play(int steps) {
  const v1::Experiment experiment = DrawExperiment(seed_, key_, faults_);
  const auto submitted = experiment::Submit(*disk_, clock_, experiment);
  if (!submitted.ok()) return "submit: " + submitted.status().ToString();
  most_parallel_ = experiment.spec().parallel_trial_count();
  Boot();
  for (int step = 0; step < steps && !ended_; ++step) {
    std::string broken;
    if (!quiet_ && step == kFaultySteps) broken = Calm();
    if (broken.empty()) broken = Step();
    if (!broken.empty()) return absl::StrFormat("step %d: %s", step, broken);
  }
  if (!ended_) return "I9: it did not come to an end after the faults had stopped\n" + Describe();
  return invariants_.AtEnd();
}

// I9: from here on it must come to an end by itself.
std::string Scenario::Calm() {
  quiet_ = true;
  world_.hazards() = Hazards{};
  store_->refuse = store_->forget = store_->unreadable = 0;
  if (suspended_) Boot();
  v1::Intent resume;
  resume.set_verb(v1::Intent::RESUME);
  return experiment::Send(*disk_, clock_, key_, resume).ok() ? "" : "cannot send an intent";
}

// ---- one step ----------------------------------------------------------------------------------

std::string Scenario::Step() {
  pool_.late = !quiet_;
  if (!quiet_) Disturb();
  pool_.Answer();
  Sleep(absl::Seconds(20));
  const auto result = reconciler_->Reconcile(key_);
  if (std::exchange(store_->dead, false)) {
    Boot();
    return invariants_.AfterStep(most_parallel_);
  }
  if (absl::IsFailedPrecondition(result.status())) {
    return "the owner was told that it is none: " + result.status().ToString();
  }
  if (result.ok()) {
    due_ = clock_.Monotonic() + result->requeue_after;
    ended_ = result->ended && (quiet_ || rng_.Below(3) == 0);
    if (suspended_ && result->idle && !ended_) Boot();
  } else {
    due_ = clock_.Monotonic() + absl::Milliseconds(50);
  }
  if (std::string broken = CheckZombie(); !broken.empty()) return broken;
  return invariants_.AfterStep(most_parallel_);
}

// Goes on to when the reconciler wants to be called or something happens, whichever comes first.
void Scenario::Sleep(absl::Duration most) {
  const absl::Duration now = clock_.Monotonic();
  absl::Duration until = std::min({due_, world_.NextEvent(), now + most});
  if (!quiet_ && rng_.Below(4) == 0) until = now;  // called for nothing
  clock_.Advance(std::max(until - now, absl::Milliseconds(1)));
}

void Scenario::Disturb() {
  switch (rng_.Below(24)) {
    case 0: Boot(); break;  // kill -9 of the controller between two steps
    case 1:                 // it only seems dead: both go on
      zombie_ = std::move(reconciler_);
      zombie_executor_ = std::move(executor_);
      Boot();
      break;
    case 2: store_->refuse = rng_.Below(2) == 0 ? 0 : 0.3; break;
    case 3: store_->forget = rng_.Below(2) == 0 ? 0 : 0.3; break;
    case 4: store_->unreadable = rng_.Below(2) == 0 ? 0 : 0.1; break;
    case 5: clock_.StepWallClock(absl::Minutes(static_cast<int64_t>(rng_.Below(120)) - 60)); break;
    case 6:
      if (rng_.Below(3) != 0) break;
      suspended_ = true;
      reconciler_->Suspend(key_, rng_.Below(2) == 0);
      break;
    case 7:
      if (faults_ == Faults::kAll) SendIntent();
      break;
    case 8:
    case 9: DisturbPlatform(); break;
    default: break;
  }
}

void Scenario::DisturbPlatform() {
  constexpr int kNotices[] = {0, 2, 15, 120};
  switch (rng_.Below(3)) {
    case 0: world_.hazards().start_fault = rng_.Below(2) == 0 ? 0 : 0.3; break;
    case 1: world_.hazards().slots = rng_.Below(2) == 0 ? 1000 : 2; break;
    default: world_.Storm(absl::Seconds(kNotices[rng_.Below(4)])); break;  // F21
  }
}

void Scenario::SendIntent() {
  v1::Intent intent;
  switch (rng_.Below(4)) {
    case 0: intent.set_verb(v1::Intent::PAUSE); break;
    case 1: intent.set_verb(v1::Intent::RESUME); break;
    default:
      intent.set_verb(v1::Intent::SCALE);
      intent.set_parallel_trial_count(1 + static_cast<int>(rng_.Below(8)));
      most_parallel_ = std::max(most_parallel_, intent.parallel_trial_count());
  }
  experiment::Send(*disk_, clock_, key_, intent).IgnoreError();
}

// F4: whatever the old owner writes is refused, and it is told so.
std::string Scenario::CheckZombie() {
  if (zombie_ == nullptr || rng_.Below(2) == 0) return "";
  const int64_t before = *disk_->Revision();
  const auto result = zombie_->Reconcile(key_);
  if (*disk_->Revision() != before) return "a process without the lease wrote something";
  if (!result.ok() && absl::IsFailedPrecondition(result.status())) zombie_ = nullptr;
  return "";
}

// ---- what came of it ---------------------------------------------------------------------------

std::string Scenario::Describe() {
  std::string text = Experiment().status().ShortDebugString() + "\n";
  const auto trials = disk_->ListTrials({.experiment = key_, .live_only = true});
  for (const auto& trial : *trials) text += trial.record.ShortDebugString() + "\n";
  const auto attempts = disk_->ListAttempts({.experiment = key_, .open_only = true});
  for (const auto& attempt : *attempts) text += attempt.record.ShortDebugString() + "\n";
  return text;
}

v1::Experiment Scenario::Experiment() { return disk_->GetExperiment(key_)->record; }

std::vector<std::string> Scenario::Results() {
  std::vector<std::string> results;
  const auto trials = disk_->ListTrials({.experiment = key_});
  for (const auto& [trial, revision] : *trials) {
    const std::string objective =
        trial.has_objective() ? FormatNumber(trial.objective()) : std::string("none");
    results.push_back(absl::StrFormat("%s %s at %d of %d", v1::TrialPhase_Name(trial.phase()),
                                      objective, trial.objective_step(), trial.last_step()));
  }
  return results;
}

std::vector<std::string> Scenario::Ledger() {
  std::vector<std::string> lines = Results();
  const auto attempts = disk_->ListAttempts({.experiment = key_});
  for (const auto& [attempt, revision] : *attempts) {
    lines.push_back(
        absl::StrFormat("%d-a%d %s from %d gained %d redone %d in %.6f s wasted %.6f s for %.9f",
                        attempt.trial(), attempt.number(), v1::Cause_Name(attempt.cause()),
                        attempt.resumed_from_step(), attempt.steps_gained(), attempt.steps_redone(),
                        attempt.seconds(), attempt.wasted_seconds(), attempt.cost()));
  }
  return lines;
}

}  // namespace shirabe::simulation
