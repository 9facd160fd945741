#include "tests/simulation/world.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "absl/strings/str_format.h"

namespace shirabe::simulation {
namespace {

double OnDemandPrice(const v1::NodePools& pools, double otherwise) {
  double price = -1;
  for (const v1::NodePool& pool : pools.pools()) {
    if (pool.capacity() == v1::SPOT) continue;
    if (price < 0 || pool.price_per_hour() < price) price = pool.price_per_hour();
  }
  return price < 0 ? otherwise : price;
}

absl::Duration Gap(Rng& rng, double per_hour) {
  if (per_hour <= 0) return absl::InfiniteDuration();
  return absl::Hours(-std::log(1 - rng.Uniform()) / per_hour);
}

}  // namespace

void World::SetPools(const v1::NodePools& pools) {
  pools_ = pools;
  slots_.clear();
  for (const v1::NodePool& pool : pools_.pools()) {
    for (int i = 0; i < pool.slots(); ++i) {
      const std::string node = pool.name() + "-" + std::to_string(i);
      Slot slot{.node = node, .pool = &pool, .trace = Rng(Mix(seed_, Fingerprint(node)))};
      slot.next = Gap(slot.trace, pool.reclaim().per_node_hour());
      slots_.push_back(std::move(slot));
    }
  }
}

// ---- machines ----------------------------------------------------------------------------------

bool World::Free(const Slot& slot) {
  if (slot.program == nullptr) return true;
  const bool taken = slot.program->platform != v1::CAUSE_NONE;
  const absl::Duration away =
      taken ? absl::Seconds(slot.pool->reclaim().returns_after_seconds()) : absl::ZeroDuration();
  return Now() >= slot.program->SeenEnd() + away;
}

bool World::MayUse(const v1::NodePool& pool,
                   const trial::PlacementRequest& placement_request) const {
  const v1::CapacityPolicy& policy = placement_request.policy;
  const bool spot = pool.capacity() == v1::SPOT;
  if (policy.spot() == v1::REQUIRED && !spot) return false;
  if (policy.spot() == v1::SPOT_NEVER && spot) return false;
  if (policy.pools().empty()) return true;
  return std::find(policy.pools().begin(), policy.pools().end(), pool.name()) !=
         policy.pools().end();
}

// Spot before on-demand, unless on-demand is asked for and there is one.
StatusOr<World::Slot*> World::Choose(const trial::PlacementRequest& placement_request) {
  bool on_demand = false;
  for (const Slot& slot : slots_) {
    on_demand =
        on_demand || (MayUse(*slot.pool, placement_request) && slot.pool->capacity() != v1::SPOT);
  }
  const bool avoid_spot = placement_request.on_demand && on_demand;
  Slot* best = nullptr;
  for (Slot& slot : slots_) {
    const bool spot = slot.pool->capacity() == v1::SPOT;
    if (!MayUse(*slot.pool, placement_request) || (avoid_spot && spot) || !Free(slot)) continue;
    if (best == nullptr || (spot && best->pool->capacity() != v1::SPOT)) best = &slot;
  }
  if (best == nullptr) return absl::ResourceExhaustedError("no free slot in any pool");
  return best;
}

void World::Place(Slot& slot, Program& program) {
  program.placement.set_node(slot.node);
  program.placement.set_pool(slot.pool->name());
  program.placement.set_capacity(slot.pool->capacity() == v1::SPOT ? "spot" : "on-demand");
  program.placement.set_price_per_hour(slot.pool->price_per_hour());
  program.placement.set_on_demand_price_per_hour(
      OnDemandPrice(pools_, slot.pool->price_per_hour()));
  program.notice = absl::Seconds(slot.pool->reclaim().notice_seconds());
  while (slot.next < program.start) {
    slot.next += Gap(slot.trace, slot.pool->reclaim().per_node_hour());
  }
  program.reclaim_at = slot.next;
  slot.program = &program;
}

trial::PlacementQuote World::QuotePlacement(const trial::PlacementRequest& placement_request) {
  Play();
  if (slots_.empty()) {
    return {.waiting = RunningCount() >= hazards_.slots ? "no free slot" : ""};
  }
  trial::PlacementQuote quote;
  const auto slot = Choose(placement_request);
  if (!slot.ok()) quote.waiting = std::string(slot.status().message());
  for (const Slot& other : slots_) {
    if (!MayUse(*other.pool, placement_request)) continue;
    quote.price_per_hour = std::max(quote.price_per_hour, other.pool->price_per_hour());
  }
  return quote;
}

// ---- starting ----------------------------------------------------------------------------------

Status World::Start(const trial::AttemptRequest& request) {
  Play();
  if (Program* old = Find(request.key)) {
    if (old->token == request.token) return absl::OkStatus();
    return absl::AlreadyExistsError(AttemptName(request.key) + " exists with another token");
  }
  Slot* slot = nullptr;
  if (!slots_.empty()) {
    ASSIGN_OR_RETURN(slot, Choose(request.placement_request));
  } else if (RunningCount() >= hazards_.slots) {
    return absl::ResourceExhaustedError("no free slot");
  }
  Program& program = programs_[request.key];
  program.key = request.key;
  program.token = request.token;
  program.training = code_(request.key.trial.number);
  program.start = Now();
  program.wall_start = clock_->Now();
  program.placement.set_node("sim");
  program.placement.set_capacity("on-demand");
  program.placement.set_pid(1);
  *program.placement.mutable_start_time() = ToProto(program.wall_start);
  Resume(request, program);
  LayOut(program);
  if (slot != nullptr) Place(*slot, program);
  Rng rng(Mix(seed_, Fingerprint(AttemptName(request.key))));
  DrawFate(program, rng);
  DrawReclaim(program, rng);
  program.told_at = program.start;
  if (rng.Uniform() < hazards_.slow_word) program.told_at += absl::Seconds(5) * rng.Uniform();
  active_.push_back(&program);
  return absl::OkStatus();
}

// F13: a checkpoint that is not as it was committed is found before anyone resumes from it.
std::string World::WhyUnusable(const v1::Checkpoint& checkpoint) {
  const AttemptKey key{{ExperimentKeyOf(checkpoint), checkpoint.trial()}, checkpoint.attempt()};
  const Program* program = Find(key);
  const Save* save = program == nullptr ? nullptr : program->FindSave(checkpoint.step());
  const std::string name = absl::StrFormat("step %d of %s", checkpoint.step(), AttemptName(key));
  if (save == nullptr) {
    Violate("I6: asked to resume from what was never saved: " + name);
    return "it is not there";
  }
  if (save->at > program->SeenEnd()) Violate("I6: a zombie's checkpoint was committed: " + name);
  if (checkpoint.digest() != Describe(*program, *save).digest()) return "another digest";
  if (save->pruned) return "it is not there";
  return save->damaged ? "model.bin has 10 bytes instead of 20" : "";
}

void World::Resume(const trial::AttemptRequest& request, Program& program) {
  for (size_t i = 0; i + 1 < request.resume.size(); ++i) {
    const bool same_trial = request.resume[i].trial() == request.resume[i + 1].trial();
    if (same_trial && request.resume[i].step() < request.resume[i + 1].step()) {
      Violate("I6: an older checkpoint was offered before a newer one");
    }
  }
  for (const v1::Checkpoint& candidate : request.resume) {
    if (std::string why = WhyUnusable(candidate); !why.empty()) {
      program.damaged.push_back(candidate);
      program.damaged.back().set_gone(why);
      continue;
    }
    program.from = candidate.step();
    program.resumed = candidate;
    return;
  }
}

// ---- what will happen to it --------------------------------------------------------------------

void World::DrawFate(Program& program, Rng& rng) {
  for (Save& save : program.saves) {
    save.damaged = rng.Uniform() < hazards_.damage;
    save.refused = rng.Uniform() < hazards_.refusal;
  }
  const absl::Duration at = program.start + (program.end - program.start) * rng.Uniform();
  const double fate = rng.Uniform();
  double bound = hazards_.failure;
  if (fate < bound) {
    program.exit_code = 1;
  } else if (fate < (bound += hazards_.loss)) {
    program.vanishes = true;
  } else if (fate < (bound += hazards_.kill)) {
    program.signal = SIGKILL;
  } else if (fate < (bound += hazards_.yield)) {
    program.exit_code = 75;
  } else {
    if (fate < bound + hazards_.partition) program.lost_at = at;
    return;
  }
  Cut(program, at);
}

void World::DrawReclaim(Program& program, Rng& rng) {
  if (rng.Uniform() >= hazards_.reclaim) return;
  constexpr int kNotices[] = {0, 2, 15, 120};
  if (slots_.empty()) program.notice = absl::Seconds(kNotices[rng.Below(4)]);
  const absl::Duration life = program.end - program.start;
  program.reclaim_at = rng.Uniform() < hazards_.close_call
                           ? program.end + absl::Microseconds(rng.Uniform() * 2000 - 1000)
                           : program.start + life * rng.Uniform();
}

void World::Reclaim(Program& program) {
  const bool spot = program.placement.capacity() == "spot";
  program.platform = spot ? v1::PREEMPTED_SPOT : v1::PREEMPTED_NODE;
  Rng rng(Mix(seed_ + 1, Fingerprint(AttemptName(program.key))));
  if (Rng(rng.Next()).Uniform() < hazards_.infrastructure) program.platform = v1::INFRASTRUCTURE;
  if (rng.Uniform() < hazards_.zombie) {
    program.lost_at = program.reclaim_at;
    Cut(program, program.reclaim_at + absl::Minutes(10) * rng.Uniform());
    return;
  }
  Notify(program, program.reclaim_at, program.notice);
}

void World::Play() {
  for (Program* program : active_) {
    const bool due = program->reclaim_at <= Now() && program->platform == v1::CAUSE_NONE;
    if (due && program->reclaim_at < program->SeenEnd()) Reclaim(*program);
  }
  std::erase_if(active_, [this](const Program* program) { return !Running(*program); });
}

void World::Storm(absl::Duration notice) {
  Play();
  for (Program* program : active_) {
    program->reclaim_at = std::min(program->reclaim_at, Now());
    program->notice = notice;
  }
  Play();
}

void World::Stop(const AttemptKey& key, absl::Duration grace) {
  Play();
  Program* program = Find(key);
  if (program != nullptr && Running(*program)) Notify(*program, Now(), grace);
}

void World::Prune(const v1::Checkpoint& checkpoint) {
  Program* program =
      Find({{ExperimentKeyOf(checkpoint), checkpoint.trial()}, checkpoint.attempt()});
  if (program == nullptr) return Violate("asked to prune what was never saved");
  for (Save& save : program->saves) save.pruned = save.pruned || save.step == checkpoint.step();
}

void World::Kill(const AttemptKey& key) {
  Program* program = Find(key);
  if (program != nullptr) Cut(*program, Now());
}

void World::RemoveFiles(const ExperimentKey& experiment) {
  const auto of_it = [&](const AttemptKey& key) { return key.trial.experiment == experiment; };
  Play();
  for (const Program* program : active_) {
    if (of_it(program->key))
      Violate("I8: it was removed while " + AttemptName(program->key) + " runs");
  }
  std::erase_if(active_, [&](const Program* program) { return of_it(program->key); });
  for (Slot& slot : slots_) {
    if (slot.program != nullptr && of_it(slot.program->key)) slot.program = nullptr;
  }
  std::erase_if(programs_, [&](const auto& entry) { return of_it(entry.first); });
}

// ---- what there is -----------------------------------------------------------------------------

absl::Duration World::NextEvent() {
  Play();
  absl::Duration next = absl::InfiniteDuration();
  for (const Program* program : active_) {
    next = std::min(next, program->SeenEnd());
    for (const absl::Duration at : {program->reclaim_at, program->told_at}) {
      if (at > Now()) next = std::min(next, at);
    }
  }
  return next;
}

Program* World::Find(const AttemptKey& key) {
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : &found->second;
}

uint64_t World::ReportReply(const Program& program) {
  Play();
  const auto until = std::upper_bound(program.reported.begin(), program.reported.end(), Now());
  return until - program.reported.begin();
}

v1::Checkpoint World::Describe(const Program& program, const Save& save) const {
  v1::Checkpoint checkpoint;
  checkpoint.set_namespace_(program.key.trial.experiment.ns);
  checkpoint.set_experiment(program.key.trial.experiment.name);
  checkpoint.set_trial(program.key.trial.number);
  checkpoint.set_attempt(program.key.number);
  checkpoint.set_step(save.step);
  checkpoint.set_bytes(20);
  checkpoint.set_digest(absl::StrFormat("%s@%d", AttemptName(program.key), save.step));
  *checkpoint.mutable_time() = ToProto(program.WallAt(save.at));
  return checkpoint;
}

int World::RunningCount() {
  Play();
  return static_cast<int>(active_.size());
}

int World::RunningOf(const TrialKey& trial) {
  Play();
  return static_cast<int>(std::count_if(active_.begin(), active_.end(), [&](const Program* other) {
    return other->key.trial == trial;
  }));
}

void World::Violate(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

}  // namespace shirabe::simulation
