#include "tests/simulation/sim_executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "metrics/collector.h"

namespace shirabe::simulation {
namespace {

using State = trial::AttemptStatus::State;

// The keeper looks about this often.
constexpr absl::Duration kCommitDelay = absl::Milliseconds(500);

World* collected_world = nullptr;

// Reads what a program has reported since the cursor; the offset counts points.
class SimCollector : public metrics::Collector {
 public:
  StatusOr<metrics::Collected> Collect(const metrics::Source& source,
                                       const v1::CollectorCursor& cursor) override {
    metrics::Collected collected;
    collected.cursor = cursor;
    if (collected.cursor.files().empty()) collected.cursor.add_files();
    const auto key = ParseAttemptName(source.files.log, "sim");
    const Program* program = key ? collected_world->Find(*key) : nullptr;
    if (program == nullptr) return collected;
    const uint64_t reported = collected_world->ReportReply(*program);
    v1::FileCursor& file = *collected.cursor.mutable_files(0);
    constexpr uint64_t kMost = 2;  // a small limit, so that `more` is met
    const uint64_t end = std::min<uint64_t>(reported, file.offset() + kMost);
    for (uint64_t i = file.offset(); i < end; ++i) {
      collected.observations.push_back(PointAt(*program, i, collected.cursor));
    }
    file.set_offset(end);
    collected.more = end < reported;
    // The last line that it writes.
    const bool ended = collected_world->Now() >= program->end;
    if (!collected.more && ended && program->done) collected.cursor.set_done(true);
    return collected;
  }

  std::string Describe(const metrics::Source&) const override {
    return "in the points of the simulation";
  }

 private:
  static metrics::Observation PointAt(const Program& program, uint64_t i,
                                      v1::CollectorCursor& cursor) {
    const int64_t step = program.StepOf(static_cast<int64_t>(i));
    metrics::Observation point{.metric = "loss",
                               .value = ValueAt(program.training, step),
                               .step = step,
                               .implicit_step = program.training.implicit,
                               .time = program.WallAt(program.reported[i])};
    if (point.implicit_step) point.step = ++(*cursor.mutable_counts())["loss"];
    return point;
  }
};

StatusOr<std::unique_ptr<metrics::Collector>> CreateSimCollector(const v1::MetricsCollectorSpec&) {
  return std::make_unique<SimCollector>();
}

// Programs of the simulation have no files: their points are taken from the world. The registry is
// read-only once main runs, for everybody but this test program, before anything reads it.
void PlayCustomCollector() {
  const auto* custom = Registry<metrics::CollectorInfo>::Get().Find("Custom");
  CHECK(custom != nullptr);
  const_cast<metrics::CollectorInfo&>(*custom) = {
      .name = "Custom", .help = "points of the simulation", .create = CreateSimCollector};
}

}  // namespace

void SetCollectedWorld(World* world) {
  PlayCustomCollector();
  collected_world = world;
}

Status SimExecutor::Start(const trial::AttemptRequest& request) {
  if (dead_) return absl::UnavailableError("dead");
  if (!owns()) world_->Violate("F4: " + AttemptName(request.key) + " was started by no owner");
  deeds_.asked_for.insert(request.key);
  const Hazards& hazards = world_->hazards();
  if (world_->rng().Uniform() < hazards.start_fault) {
    return absl::UnavailableError("the machine cannot start anything now");
  }
  if (!request.resume.empty() && verified_.insert(request.key).second &&
      world_->rng().Uniform() < hazards.slow_verify) {
    return absl::UnavailableError("verifying the checkpoint");
  }
  RETURN_IF_ERROR(world_->Start(request));
  deeds_.started.insert(request.key);
  if (world_->rng().Uniform() < hazards.start_fault) {
    return absl::UnavailableError("started, but the answer was lost");
  }
  known_.insert(request.key);
  return absl::OkStatus();
}

Status SimExecutor::Stop(const AttemptKey& key, v1::Cause, absl::Duration grace) {
  if (dead_) return absl::OkStatus();
  const Program* program = world_->Find(key);
  if (program != nullptr && SeenAgain(*program)) {
    world_->Kill(key);
  } else {
    world_->Stop(key, grace);
  }
  return absl::OkStatus();
}

void SimExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  for (const v1::Attempt& attempt : open) {
    known_.insert({{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()});
  }
}

// F11: a machine that was thought to be gone is there again, once its attempt is closed.
bool SimExecutor::SeenAgain(const Program& program) const {
  const absl::Duration now = world_->Now();
  return now >= program.lost_at && now < program.end && !is_open(program.key);
}

std::vector<trial::AttemptStatus> SimExecutor::Observe(const ExperimentKey& experiment) {
  world_->Play();
  deeds_ = {};
  std::vector<trial::AttemptStatus> statuses;
  for (auto it = known_.begin(); it != known_.end();) {
    const AttemptKey key = *it++;
    if (key.trial.experiment != experiment) continue;
    if (world_->hazards().forget > 0 && world_->rng().Uniform() < world_->hazards().forget) {
      known_.erase(key);
      continue;
    }
    statuses.push_back(Look(key));
    if (statuses.back().state == State::kRunning) deeds_.shown_running.insert(key);
  }
  return statuses;
}

trial::AttemptStatus SimExecutor::Look(const AttemptKey& key) {
  trial::AttemptStatus observed{.key = key};
  const Program* program = world_->Find(key);
  if (program == nullptr) {
    observed.state = State::kLost;
    return observed;
  }
  observed.placement = program->placement;
  if (!world_->Placed(*program)) {
    v1::Placement& placement = observed.placement;
    placement.clear_pool();
    placement.clear_capacity();
    placement.clear_price_per_hour();
    placement.clear_on_demand_price_per_hour();
  }
  observed.platform = program->platform;
  LookAtCheckpoints(*program, observed);
  const bool running = world_->Running(*program) || SeenAgain(*program);
  observed.begin_known = !running || world_->Now() >= program->told_at;
  if (observed.begin_known) {
    observed.resumed = program->resumed;
    observed.damaged = program->damaged;
  }
  if (running) {
    observed.ran = world_->Now() - program->start;
    return observed;
  }
  const bool lost = program->vanishes || program->lost_at < program->end;
  observed.state = lost ? State::kLost : State::kExited;
  *observed.placement.mutable_end_time() = ToProto(program->WallAt(program->SeenEnd()));
  observed.ran = program->SeenEnd() - program->start;
  if (lost) return observed;
  observed.signal = program->signal;
  if (program->signal == 0) observed.exit_code = program->exit_code;
  return observed;
}

// All that was saved until its end; of one that runs, what the keeper has had the time for.
void SimExecutor::LookAtCheckpoints(const Program& program, trial::AttemptStatus& observed) {
  const bool running = world_->Running(program);
  const absl::Duration until = running ? world_->Now() - kCommitDelay : program.SeenEnd();
  for (const Save& save : program.saves) {
    if (save.at > until || save.pruned) continue;
    if (!save.refused) {
      observed.checkpoints.push_back(world_->Describe(program, save));
    } else {
      observed.refused.push_back(absl::StrFormat("the checkpoint of step %d is empty", save.step));
    }
  }
}

Status SimExecutor::RemoveFiles(const ExperimentKey& experiment, int64_t) {
  if (!dead_) world_->RemoveFiles(experiment);
  return absl::OkStatus();
}

// The log names the attempt.
trial::AttemptPaths SimExecutor::Paths(const AttemptKey& key) const {
  trial::AttemptPaths paths;
  paths.log = AttemptName(key);
  return paths;
}

trial::PlacementQuote SimExecutor::QuotePlacement(
    const ExperimentKey&, const google::protobuf::Struct&,
    const trial::PlacementRequest& placement_request) {
  return world_->QuotePlacement(placement_request);
}

void SimExecutor::Prune(const v1::Checkpoint& checkpoint) {
  if (!dead_) world_->Prune(checkpoint);
}

}  // namespace shirabe::simulation
