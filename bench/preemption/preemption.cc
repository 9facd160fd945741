// What preemption costs: the real reconciler on a manual clock, over machines that are reclaimed in
// a Poisson stream, beside the floor and two baselines on traces of the same rate. Prints a table
// of bench/RESULTS.md. Called by run.sh.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "bench/preemption/trace.h"
#include "experiment/reconciler.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "tests/simulation/sim_executor.h"
#include "tests/support/small_spec.h"

namespace shirabe::bench {
namespace {

const ExperimentKey kKey{"sim", "bench"};

constexpr double kGiveUpHours = 200;  // of a run that undisturbed takes 10
constexpr int kMaxFailed = 3;         // as in Katib's own examples

v1::Experiment MakeExperiment(const Load& load) {
  v1::Experiment experiment = SmallExperiment(kKey);
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.set_parallel_trial_count(load.slots);
  spec.set_max_trial_count(load.trials);
  spec.set_max_failed_trial_count(0);
  spec.mutable_shirabe()->mutable_attempts()->set_max_preemptions(100'000);
  spec.mutable_metrics_collector_spec()->mutable_collector()->set_kind(v1::CUSTOM);
  spec.mutable_trial_template()->set_primary_container_name("c");
  auto& fields = *spec.mutable_trial_template()->mutable_trial_spec()->mutable_fields();
  fields["apiVersion"].set_string_value("batch/v1");
  fields["kind"].set_string_value("Job");
  experiment::SetDefaults(experiment);
  return experiment;
}

v1::NodePools MakePools(const Load& load) {
  v1::NodePools pools;
  v1::NodePool& spot = *pools.add_pools();
  spot.set_name("spot");
  spot.set_capacity(v1::SPOT);
  spot.set_price_per_hour(1);
  spot.set_slots(load.slots);
  spot.mutable_reclaim()->set_per_node_hour(load.reclaims_per_hour);
  spot.mutable_reclaim()->set_notice_seconds(load.notice);
  spot.mutable_reclaim()->set_returns_after_seconds(load.returns_after);
  return pools;
}

simulation::Training MakeTraining(const Load& load, int64_t trial) {
  simulation::Training training;
  training.seed = Mix(load.seed, static_cast<uint64_t>(trial));
  training.steps = static_cast<int64_t>(load.training / load.step);
  training.startup = absl::Seconds(load.startup);
  training.step = absl::Seconds(load.step);
  training.save = absl::Seconds(load.save);
  training.save_every = static_cast<int64_t>(YoungInterval(load) / load.step);
  training.on_notice = simulation::Training::OnNotice::kSaves;
  return training;
}

struct Outcome {
  int64_t finished = 0;
  int64_t failed = 0;
  int64_t reclaims = 0;
  double wasted = 0;  // lost, saved at a notice, and started again
};

// What the attempts ran beyond training and the periodic checkpoints of an undisturbed run.
double Wasted(const Load& load, double ran) {
  const simulation::Training training = MakeTraining(load, 1);
  const auto saves = static_cast<double>(training.steps / training.save_every);
  return ran - load.trials * (load.startup + load.training + saves * load.save);
}

void Add(const Load& load, const v1::ExperimentStatus& status, Outcome& outcome) {
  outcome.finished += status.trials_succeeded();
  outcome.failed += status.trials_failed() + status.trials_killed();
  outcome.reclaims += status.shirabe().preemptions();
  outcome.wasted += Wasted(load, status.shirabe().seconds());
}

// One run of the real reconciler on one trace.
v1::ExperimentStatus RunShirabe(const Load& load) {
  ManualClock clock;
  simulation::World world(load.seed, &clock);
  simulation::SetCollectedWorld(&world);
  world.SetCode([&load](int64_t trial) { return MakeTraining(load, trial); });
  world.SetPools(MakePools(load));
  auto store = *db::Open("memory:");
  simulation::SimExecutor executor(&world);
  experiment::AlgorithmWorkers workers(0);
  experiment::Reconciler reconciler({.store = store.get(),
                                     .executor = &executor,
                                     .clock = &clock,
                                     .algorithm_workers = &workers});
  CHECK(experiment::Submit(*store, clock, MakeExperiment(load)).ok());
  const db::LeaseRequest lease{
      .experiment = kKey, .holder = "bench", .now = clock.Now(), .ttl = absl::Hours(1'000'000)};
  reconciler.Own(kKey, store->AcquireLease(lease)->epoch());
  for (bool ended = false; !ended;) {
    const auto result = reconciler.Reconcile(kKey);
    CHECK(result.ok());
    CHECK(world.Now() < absl::Hours(kGiveUpHours));
    ended = result->ended;
    const absl::Duration event = world.NextEvent() - world.Now();
    clock.Advance(std::max(absl::Milliseconds(1), std::min(result->requeue_after, event)));
  }
  return store->GetExperiment(kKey)->record.status();
}

// As many traces as give some hundred reclaims, or the mean says little.
int Traces(const Load& load) { return std::max(1, static_cast<int>(12 / load.reclaims_per_hour)); }

void PrintRow(Load load) {
  const int traces = Traces(load);
  Outcome ours;
  Baseline scratch, failure;
  for (int i = 0; i < traces; ++i, ++load.seed) {
    Add(load, RunShirabe(load), ours);
    const Baseline again = FromScratch(load, kGiveUpHours);
    scratch.finished += again.finished;
    scratch.wasted += again.wasted;
    failure.finished += AsFailure(load, kMaxFailed).finished;
  }
  const double floor = FloorPerReclaim(load) * static_cast<double>(ours.reclaims);
  const int all = load.trials * traces;
  const double useful = all * load.training;
  absl::PrintF("| %g | %g s | %g s | %d | %.1f s | %.1f s | **%.2f** | %.1f %% | %d of %d | %d | ",
               load.reclaims_per_hour, load.notice, YoungInterval(load), ours.reclaims,
               FloorPerReclaim(load), ours.wasted / static_cast<double>(ours.reclaims),
               ours.wasted / floor, 100 * ours.wasted / useful, ours.finished, all, ours.failed);
  absl::PrintF("%d of %d, %.0f times the waste | %d of %d |\n", scratch.finished, all,
               scratch.wasted / ours.wasted, failure.finished, all);
  std::fflush(stdout);
}

}  // namespace
}  // namespace shirabe::bench

int main() {
  shirabe::SetLogLevel(shirabe::LogLevel::kError);
  std::puts(
      "| per node-hour | notice | interval | reclaims | floor each | wasted each | ratio |"
      " of the useful work | finished | failed | from scratch | preemption = failure |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const double rate : {1.0, 4.0, 12.0}) {
    for (const double notice : {0.0, 15.0, 120.0}) {
      shirabe::bench::PrintRow({.reclaims_per_hour = rate, .notice = notice});
    }
  }
}
