#include "tests/simulation/scenario.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/text/number.h"
#include "db/commit_rules.h"
#include "experiment/conditions.h"
#include "experiment/state/budget.h"
#include "experiment/submission.h"

namespace shirabe::simulation {
namespace {

constexpr int kScenarioFaultySteps = 250;
constexpr int kScenarioQuietSteps = 4000;

}  // namespace

Scenario::Scenario(uint64_t seed, Faults faults, bool mirrored)
    : seed_(seed),
      faults_(faults),
      mirrored_(mirrored),
      wishes_(DrawWishes(seed, faults)),
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
  store_->watch = [this](const db::Batch& batch) { WatchPrunes(batch); };
}

// A parent's number is less than its child's.
Training Scenario::TrainingOf(int64_t number) {
  const v1::Trial trial = disk_->GetTrial({key_, number})->record;
  const int64_t parent = trial.parent().trial();
  const int64_t parent_steps = parent > 0 ? TrainingOf(parent).steps : 0;
  Training training = DrawTraining(seed_, trial, parent_steps, faults_);
  training.maximise = Maximises(seed_) != mirrored_;
  return training;
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
  executor_->owns = [this, epoch = epoch_] { return epoch == epoch_; };
  executor_->is_open = [this](const AttemptKey& key) {
    const auto open = disk_->ListAttempts({.experiment = key_, .open_only = true});
    return std::any_of(open->begin(), open->end(), [&](const auto& attempt) {
      return attempt.record.trial() == key.trial.number && attempt.record.number() == key.number;
    });
  };
  reconciler_ = std::make_unique<experiment::Reconciler>(
      experiment::ReconcilerOptions{.store = store_.get(),
                                    .executor = executor_.get(),
                                    .clock = &clock_,
                                    .algorithm_workers = &pool_,
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
  return Play(kScenarioFaultySteps + kScenarioQuietSteps);
}

std::string Scenario::RunScripted() {
  quiet_ = true;
  wishes_ = {};
  world_.hazards().forget = world_.hazards().slow_verify = 0;
  v1::NodePools pools;
  v1::NodePool& pool = *pools.add_pools();
  pool.set_name("spot");
  pool.set_capacity(v1::SPOT);
  pool.set_price_per_hour(3);
  pool.set_slots(100);
  pool.mutable_reclaim()->set_notice_seconds(2);
  world_.SetPools(pools);
  return Play(kScenarioQuietSteps);
}

std::string Scenario::Play(int steps) {
  const v1::Experiment experiment = DrawExperiment(seed_, key_, faults_, mirrored_);
  const auto submitted = experiment::Submit(*disk_, clock_, experiment);
  if (!submitted.ok()) return "submit: " + submitted.status().ToString();
  most_parallel_ = experiment.spec().parallel_trial_count();
  Boot();
  if (std::string broken = PlayUntilItEnds(steps); !broken.empty() || deleted_) return broken;
  if (std::string broken = invariants_.AtEnd(); !broken.empty()) return broken;
  return wishes_.more_trials ? GoOn(steps) : "";
}

std::string Scenario::PlayUntilItEnds(int steps) {
  for (int step = 0; step < steps && !ended_; ++step) {
    std::string broken;
    if (!quiet_ && step == kScenarioFaultySteps) broken = Calm();
    Wish(step);
    if (broken.empty()) broken = Step();
    if (!broken.empty()) return absl::StrFormat("step %d: %s", step, broken);
  }
  if (ended_) return "";
  return "I9: it did not come to an end after the faults had stopped\n" + Describe();
}

// What has ended goes on only where its resumePolicy says so and there is more to do; nothing else
// is to be seen of the wish, though it comes from somebody who did not ask whether it makes sense.
std::string Scenario::GoOn(int steps) {
  if (!quiet_) {
    if (std::string broken = Calm(); !broken.empty()) return broken;
  }
  const v1::Experiment before = Experiment();
  const std::string reason = experiment::CurrentCondition(before).reason();
  const bool may = before.spec().resume_policy() != v1::NEVER;
  const bool goes_on = may && *wishes_.more_trials > 0 && reason == "ExperimentMaxTrialsReached";
  v1::Intent scale;
  scale.set_verb(v1::Intent::SCALE);
  scale.set_parallel_trial_count(before.spec().parallel_trial_count());
  scale.set_max_trial_count(before.spec().max_trial_count() + *wishes_.more_trials);
  if (!Leave(scale)) return "cannot send an intent";
  ended_ = false;
  for (int step = 0; step < 10 && IsAskedFor(v1::Intent::SCALE); ++step) {
    if (std::string broken = Step(); !broken.empty()) return broken;
  }
  if (std::string broken = PlayUntilItEnds(steps); !broken.empty()) return "going on: " + broken;
  const v1::Experiment after = Experiment();
  const bool same =
      before.status().conditions_size() == after.status().conditions_size() &&
      FromProto(before.status().completion_time()) == FromProto(after.status().completion_time()) &&
      before.status().trials() == after.status().trials();
  if (same == goes_on) return goes_on ? "it did not go on" : "it went on though it had ended";
  return invariants_.AtEnd();
}

void Scenario::Wish(int step) {
  const auto send = [&](int at, v1::Intent::Verb verb) {
    if (at == 0 || at != step) return;
    v1::Intent intent;
    intent.set_verb(verb);
    experiment::Send(*disk_, clock_, key_, intent).IgnoreError();
  };
  send(wishes_.stop_at, v1::Intent::STOP);
  send(wishes_.cancel_at, v1::Intent::CANCEL);
  send(wishes_.delete_at, v1::Intent::DELETE);
}

bool Scenario::IsAskedFor(v1::Intent::Verb verb) {
  const auto intents = disk_->ListIntents(key_);
  return intents.ok() && std::any_of(intents->begin(), intents->end(),
                                     [&](const auto& intent) { return intent.verb() == verb; });
}

// I9: from here on it must come to an end by itself.
std::string Scenario::Calm() {
  quiet_ = true;
  world_.hazards() = Hazards{};
  store_->refuse = store_->forget = store_->unreadable = 0;
  if (suspended_) Boot();
  v1::Intent resume;
  resume.set_verb(v1::Intent::RESUME);
  // It may have ended by now, and the wish is left all the same.
  return Leave(resume) ? "" : "cannot send an intent";
}

// ---- one step ----------------------------------------------------------------------------------

std::string Scenario::Step() {
  pool_.late = !quiet_;
  if (!quiet_) Disturb();
  pool_.Answer();
  Sleep(absl::Seconds(20));
  const bool cancel = IsAskedFor(v1::Intent::CANCEL);
  const auto result = reconciler_->Reconcile(key_);
  if (!disk_->GetExperiment(key_).ok()) return AfterDeletion();
  if (std::exchange(store_->dead, false)) {
    Boot();
    return invariants_.AfterStep(most_parallel_);
  }
  if (db::IsLeaseLost(result.status())) {
    return "the owner was told that it is none: " + result.status().ToString();
  }
  if (result.ok()) {
    due_ = clock_.Monotonic() + result->requeue_after;
    ended_ = result->ended && (quiet_ || rng_.Below(3) == 0);
    const bool cancelled = cancel && !IsAskedFor(v1::Intent::CANCEL);
    if (std::string broken = CheckDeeds(cancelled); !broken.empty()) return broken;
    if (std::string broken = invariants_.AfterPass(); !broken.empty()) return broken;
    if (suspended_ && result->idle && !ended_) Boot();
  } else {
    due_ = clock_.Monotonic() + absl::Milliseconds(50);
  }
  if (std::string broken = CheckZombie(); !broken.empty()) return broken;
  return invariants_.AfterStep(most_parallel_);
}

std::string Scenario::AfterDeletion() {
  ended_ = deleted_ = true;
  if (!world_.violation().empty()) return world_.violation();
  return world_.RunningCount() > 0 ? "I8: it was deleted while a program runs" : "";
}

// What a pass that went well must have done.
std::string Scenario::CheckDeeds(bool cancelled) {
  for (const AttemptKey& key : executor_->deeds().shown_running) {
    const Program* program = world_.Find(key);
    const bool runs = program != nullptr && world_.Now() < program->end;
    if (runs && !executor_->is_open(key)) return "F11: a zombie that was seen was not stopped";
  }
  const auto open = disk_->ListAttempts({.experiment = key_, .open_only = true});
  for (const auto& [attempt, revision] : *open) {
    const AttemptKey key{{key_, attempt.trial()}, attempt.number()};
    const Program* program = world_.Find(key);
    const bool runs = program != nullptr && world_.Running(*program);
    const bool shown = runs && executor_->deeds().shown_running.contains(key);
    if (shown && world_.Placed(*program) && !experiment::IsPlaced(attempt)) {
      return "I7: it was seen where a program runs, and its price is not that place's";
    }
    if (cancelled && runs) return "it was cancelled, and a program has its grace";
    if (attempt.stop().cause() == v1::EARLY_STOPPED && !pool_.HasCondemned(attempt)) {
      return "F25: an attempt was stopped early by what was said of another";
    }
  }
  return world_.HasPools() ? "" : CheckTurns();
}

// Where a place has become free, the trial that waits longest is asked first; but for one that goes
// on from a checkpoint, which may wait for that to be verified.
std::string Scenario::CheckTurns() {
  const SimExecutor::Deeds& deeds = executor_->deeds();
  if (!deeds.forgot || deeds.started.empty()) return "";
  const int64_t last = deeds.started.rbegin()->trial.number;
  const auto open = disk_->ListAttempts({.experiment = key_, .open_only = true});
  for (const auto& [attempt, revision] : *open) {
    const AttemptKey key{{key_, attempt.trial()}, attempt.number()};
    const bool waits = attempt.state() == v1::ATTEMPT_CREATED && !attempt.has_stop() &&
                       world_.Find(key) == nullptr;
    const auto trial = disk_->GetTrial(key.trial);
    const auto saved = disk_->ListCheckpoints(key.trial);
    if (!trial.ok() || !saved.ok() || trial->record.has_parent() || !saved->empty()) continue;
    if (waits && attempt.trial() < last && !deeds.asked_for.contains(key)) {
      return absl::StrFormat("trial %d was started, and trial %d waits longer", last,
                             attempt.trial());
    }
  }
  return "";
}

// Nothing is pruned that the trials which the owner knew of may go on from.
void Scenario::WatchPrunes(const db::Batch& batch) {
  for (const auto& write : batch.checkpoints) {
    if (write.record.gone() != "pruned" || batch.epoch != epoch_) continue;
    const auto trials = disk_->ListTrials({.experiment = key_, .live_only = true});
    for (const auto& [trial, revision] : *trials) {
      const v1::Parent& parent = trial.parent();
      if (parent.trial() != write.record.trial() || parent.step() != write.record.step()) continue;
      world_.Violate(absl::StrFormat("I6: step %d of trial %d is pruned, and trial %d began there",
                                     parent.step(), parent.trial(), trial.number()));
    }
  }
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

// An intent that nobody has checked, as an older version may have left it.
bool Scenario::Leave(v1::Intent intent) {
  intent.set_namespace_(key_.ns);
  intent.set_experiment(key_.name);
  db::Batch batch{.experiment = key_};
  batch.intents.push_back(std::move(intent));
  return disk_->Commit(batch).ok();
}

void Scenario::SendIntent() {
  v1::Intent intent;
  switch (rng_.Below(4)) {
    case 0: intent.set_verb(v1::Intent::PAUSE); break;
    case 1: intent.set_verb(v1::Intent::RESUME); break;
    default:
      intent.set_verb(v1::Intent::SCALE);
      intent.set_parallel_trial_count(static_cast<int>(rng_.Below(9)));
      most_parallel_ = std::max(most_parallel_, intent.parallel_trial_count());
      if (intent.parallel_trial_count() == 0) Leave(intent);
  }
  experiment::Send(*disk_, clock_, key_, intent).IgnoreError();
}

// F4: whatever the old owner writes is refused, and it is told so.
std::string Scenario::CheckZombie() {
  if (zombie_ == nullptr || rng_.Below(2) == 0) return "";
  const int64_t before = *disk_->Revision();
  const auto result = zombie_->Reconcile(key_);
  if (*disk_->Revision() != before) return "a process without the lease wrote something";
  if (!result.ok() && db::IsLeaseLost(result.status())) zombie_ = nullptr;
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
    const double sign = Maximises(seed_) != mirrored_ ? -1 : 1;
    const std::string objective =
        trial.has_objective() ? FormatNumber(sign * trial.objective()) : std::string("none");
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
