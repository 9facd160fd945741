#include "tests/simulation/world.h"

#include <algorithm>
#include <limits>

namespace shirabe::simulation {
namespace {

World* collected_world = nullptr;

// Reads what a program has reported since the cursor; the offset counts points.
class SimCollector : public metrics::Collector {
 public:
  StatusOr<metrics::Collected> Collect(const metrics::Source& source,
                                       const v1::CollectorCursor& cursor) override {
    metrics::Collected collected;
    collected.cursor = cursor;
    if (collected.cursor.files().empty()) collected.cursor.add_files();
    const auto key = ParseAttemptName(source.log, "sim");
    Program* program = key ? collected_world->Find(*key) : nullptr;
    if (program == nullptr) return collected;
    const uint64_t reported = collected_world->Reported(*program);
    v1::FileCursor& file = *collected.cursor.mutable_files(0);
    constexpr uint64_t kMost = 7;  // a small limit, so that `more` is met
    const uint64_t end = std::min<uint64_t>(reported, file.offset() + kMost);
    for (uint64_t i = file.offset(); i < end; ++i) collected.points.push_back(program->points[i]);
    file.set_offset(end);
    collected.more = end < reported;
    return collected;
  }
};

StatusOr<std::unique_ptr<metrics::Collector>> CreateSimCollector(const v1::MetricsCollectorSpec&) {
  return std::make_unique<SimCollector>();
}

std::string DescribeSim(const metrics::Source&) { return "in the points of the simulation"; }
std::string NoFile(const metrics::Source&) { return ""; }

}  // namespace

void SetCollectedWorld(World* world) { collected_world = world; }

Status World::Start(const trial::AttemptRequest& request) {
  if (Program* old = Find(request.key)) {
    if (old->token == request.token) return absl::OkStatus();
    return absl::AlreadyExistsError(AttemptName(request.key) + " exists with another token");
  }
  Program program;
  program.token = request.token;
  program.start = clock_->Monotonic();
  program.wall_start = clock_->Now();
  program.end = program.start + absl::Milliseconds(500 + rng_.Below(60000));
  DrawFate(program);
  DrawPoints(program);
  programs_[request.key] = program;
  return absl::OkStatus();
}

void World::DrawFate(Program& program) {
  const double fate = rng_.Uniform();
  double bound = hazards_.failure;
  if (fate < bound) {
    program.exit_code = 1;
  } else if (fate < (bound += hazards_.loss)) {
    program.vanishes = true;
  } else if (fate < (bound += hazards_.kill)) {
    program.signal = 9;
  } else if (fate < bound + hazards_.yield) {
    program.exit_code = 75;
  }
}

void World::DrawPoints(Program& program) {
  if (rng_.Uniform() < hazards_.silent) return;
  const bool nan = rng_.Uniform() < hazards_.nan;
  const int64_t steps = 1 + static_cast<int64_t>(rng_.Below(20));
  const absl::Duration life = program.end - program.start;
  for (int64_t step = 1; step <= steps; ++step) {
    const double value =
        nan ? std::numeric_limits<double>::quiet_NaN() : rng_.Uniform() / static_cast<double>(step);
    program.points.push_back({.metric = "loss", .value = value, .step = step});
    program.reported.push_back(program.start + life * step / (steps + 1));
  }
}

Program* World::Find(const AttemptKey& key) {
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : &found->second;
}

// Half of the programs end at once when asked to, the others use up the grace and are killed.
void World::Stop(const AttemptKey& key, absl::Duration grace) {
  Program* program = Find(key);
  if (program == nullptr || !Running(*program)) return;
  const bool polite = rng_.Uniform() < 0.5;
  program->vanishes = false;
  program->exit_code = 0;
  program->signal = polite ? 15 : 9;
  program->end =
      std::min(program->end, clock_->Monotonic() + (polite ? absl::ZeroDuration() : grace));
}

uint64_t World::Reported(const Program& program) {
  const absl::Duration until = std::min(clock_->Monotonic(), program.end);
  return std::upper_bound(program.reported.begin(), program.reported.end(), until) -
         program.reported.begin();
}

absl::Duration World::NextEnd() {
  absl::Duration next = absl::InfiniteDuration();
  for (auto& [key, program] : programs_) {
    if (Running(program)) next = std::min(next, program.end);
  }
  return next;
}

int World::RunningCount() {
  return static_cast<int>(std::count_if(programs_.begin(), programs_.end(),
                                        [&](auto& entry) { return Running(entry.second); }));
}

int World::RunningOf(const TrialKey& trial) {
  return static_cast<int>(std::count_if(programs_.begin(), programs_.end(), [&](auto& entry) {
    return entry.first.trial == trial && Running(entry.second);
  }));
}

Status SimExecutor::Start(const trial::AttemptRequest& request) {
  if (world_->rng().Uniform() < world_->hazards().start_fault) {
    return absl::UnavailableError("the machine cannot start anything now");
  }
  if (world_->RunningCount() >= world_->hazards().slots && world_->Find(request.key) == nullptr) {
    return absl::ResourceExhaustedError("no free slot");
  }
  RETURN_IF_ERROR(world_->Start(request));
  if (world_->rng().Uniform() < world_->hazards().start_fault) {
    return absl::UnavailableError("started, but the answer was lost");
  }
  known_[request.key] = true;
  return absl::OkStatus();
}

Status SimExecutor::Stop(const AttemptKey& key, v1::Cause, absl::Duration grace) {
  world_->Stop(key, grace);
  return absl::OkStatus();
}

void SimExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  for (const v1::Attempt& attempt : open) {
    known_[{{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()}] = true;
  }
}

std::vector<trial::Sighting> SimExecutor::Observe(const ExperimentKey& experiment) {
  using State = trial::Sighting::State;
  std::vector<trial::Sighting> sightings;
  for (const auto& [key, known] : known_) {
    if (key.trial.experiment != experiment) continue;
    trial::Sighting sighting{.key = key};
    Program* program = world_->Find(key);
    if (program == nullptr) {
      sighting.state = State::kLost;
      sightings.push_back(std::move(sighting));
      continue;
    }
    sighting.placement.set_node("sim");
    sighting.placement.set_pid(1);
    *sighting.placement.mutable_start_time() = ToProto(program->wall_start);
    if (!world_->Running(*program)) {
      sighting.state = program->vanishes ? State::kLost : State::kExited;
      sighting.signal = program->signal;
      if (program->signal == 0) sighting.exit_code = program->exit_code;
      *sighting.placement.mutable_end_time() =
          ToProto(program->wall_start + (program->end - program->start));
    }
    sightings.push_back(std::move(sighting));
  }
  return sightings;
}

Status SimExecutor::RemoveFiles(const ExperimentKey& experiment, int64_t) {
  std::erase_if(world_->programs(),
                [&](const auto& entry) { return entry.first.trial.experiment == experiment; });
  return absl::OkStatus();
}

trial::AttemptPaths SimExecutor::Paths(const AttemptKey& key) const {
  trial::AttemptPaths paths;
  paths.log = AttemptName(key);
  return paths;
}

trial::Offer SimExecutor::Quote(const google::protobuf::Struct&, const trial::Placing&) {
  return {.waiting = world_->RunningCount() >= world_->hazards().slots ? "no free slot" : ""};
}

}  // namespace shirabe::simulation

namespace shirabe::metrics {
SHIRABE_REGISTER(CollectorInfo, {.name = "Custom",
                                 .help = "points of the simulation",
                                 .create = simulation::CreateSimCollector,
                                 .describe = simulation::DescribeSim,
                                 .shared_file = simulation::NoFile});
}  // namespace shirabe::metrics
