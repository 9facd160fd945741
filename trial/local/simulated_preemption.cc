#include "trial/local/simulated_preemption.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/sorting.h"
#include "base/text/json_fields.h"
#include "base/text/json_text.h"
#include "nlohmann/json.hpp"
#include "trial/node_slots.h"

namespace shirabe::trial {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxReclaimBytes = 1 << 16;
// The words of DIR/reclaim.
constexpr const char* kSpotWord = "preempted-spot";
constexpr const char* kNodeWord = "preempted-node";

StatusOr<Json> ReadJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadBeneath("", path, kMaxReclaimBytes));
  Json json = ReadJsonOrDiscarded(text);
  if (!json.is_object()) return absl::DataLossError(path + " holds no JSON object");
  return json;
}

StatusOr<int64_t> Number(const Json& json, const char* key, const std::string& path) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number_integer()) return found->get<int64_t>();
  return absl::DataLossError(path + " has no whole number \"" + key + "\"");
}

bool Reclaiming(const v1::NodePool& pool) {
  return pool.reclaim().per_node_hour() > 0 || pool.reclaim().times_size() > 0;
}

}  // namespace

// ---- the trace of an experiment -----------------------------------------------------------------

ReclaimTrace::ReclaimTrace(const v1::NodePools& pools) {
  for (int i = 0; i < pools.pools_size(); ++i) {
    const v1::NodePool& pool = pools.pools(i);
    const v1::Reclaim& reclaim = pool.reclaim();
    Source listed(i);
    listed.times.assign(reclaim.times().begin(), reclaim.times().end());
    std::sort(listed.times.rbegin(), listed.times.rend());
    if (Draw(listed)) sources_.push_back(std::move(listed));
    if (reclaim.per_node_hour() <= 0) continue;
    const int slots = pool.has_slots() ? pool.slots() : 1;
    for (int slot = 0; slot < slots; ++slot) {
      const std::string node = NodeName(pool.name(), slot);
      Source random(i);
      random.event.node = node;
      random.per_hour = reclaim.per_node_hour();
      random.rng = Rng(Mix(static_cast<uint64_t>(pools.seed()), Fingerprint(node)));
      Draw(random);
      sources_.push_back(std::move(random));
    }
  }
}

// The source's next event; false if it has none.
bool ReclaimTrace::Draw(Source& source) {
  if (source.per_hour > 0) {
    // 1 - u is never 0.
    source.event.at += absl::Hours(-std::log1p(-source.rng.Uniform()) / source.per_hour);
    return true;
  }
  if (source.times.empty()) return false;
  source.event.at = absl::Seconds(source.times.back());
  source.times.pop_back();
  return true;
}

const ReclaimTrace::Event* ReclaimTrace::Next() const {
  const auto next =
      std::min_element(sources_.begin(), sources_.end(),
                       [](const Source& a, const Source& b) { return a.event.at < b.event.at; });
  return next == sources_.end() ? nullptr : &next->event;
}

void ReclaimTrace::Pop() {
  const Event* next = Next();
  if (next == nullptr) return;
  const auto source = std::find_if(sources_.begin(), sources_.end(),
                                   [&](const Source& each) { return &each.event == next; });
  if (!Draw(*source)) sources_.erase(source);
}

// ---- playing ------------------------------------------------------------------------------------

bool Reclaims::any() const {
  return std::any_of(pools_.pools().begin(), pools_.pools().end(), Reclaiming);
}

void Reclaims::Begin(const ExperimentKey& experiment, const TraceState& state,
                     absl::Duration first_start) {
  TraceProgress playing = {ReclaimTrace(pools_), first_start, state};
  while (const auto* event = playing.trace.Next()) {
    if (event->at > state.until) break;
    playing.trace.Pop();
  }
  traces_.insert_or_assign(experiment, std::move(playing));
}

std::vector<Reclaims::Preemption> Reclaims::Play(std::vector<RunningAttempt> running,
                                                 absl::Duration now) {
  std::vector<Preemption> preemptions;
  // The longest-running first; of two that started together the one with the lower key.
  StableSort(running, [](const RunningAttempt& a, const RunningAttempt& b) {
    return std::tie(a.since, a.key) < std::tie(b.since, b.key);
  });
  for (auto& entry : traces_) {
    const ExperimentKey& experiment = entry.first;
    TraceProgress& playing = entry.second;
    while (const auto* next = playing.trace.Next()) {
      const ReclaimTrace::Event event = *next;
      const absl::Duration due = playing.first_start + event.at;
      if (due > now) break;
      playing.trace.Pop();
      const v1::NodePool& pool = pools_.pools(event.pool);
      const auto hit =
          std::find_if(running.begin(), running.end(), [&](const RunningAttempt& runner) {
            const bool there = event.node.empty() ? runner.placement.pool() == pool.name()
                                                  : runner.placement.node() == event.node;
            return there && runner.since <= due && runner.key.trial.experiment == experiment;
          });
      if (hit == running.end()) continue;
      playing.state.until = std::max(playing.state.until, event.at);
      preemptions.push_back({.key = hit->key,
                             .node = hit->placement.node(),
                             .cause = ReclaimCause(hit->placement),
                             .notice = absl::Seconds(pool.reclaim().notice_seconds()),
                             .away = absl::Seconds(pool.reclaim().returns_after_seconds()),
                             .state = playing.state});
      running.erase(hit);
    }
  }
  return preemptions;
}

std::optional<absl::Duration> Reclaims::Next() const {
  std::optional<absl::Duration> next;
  for (const auto& [experiment, playing] : traces_) {
    const auto* event = playing.trace.Next();
    if (event == nullptr) continue;
    const absl::Duration due = playing.first_start + event->at;
    next = std::min(next.value_or(due), due);
  }
  return next;
}

// ---- files --------------------------------------------------------------------------------------

StatusOr<TraceState> ReadTraceState(const std::string& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  ASSIGN_OR_RETURN(const int64_t origin, Number(json, "first_start_ns", path));
  ASSIGN_OR_RETURN(const int64_t until, Number(json, "played_until_ns", path));
  return TraceState{absl::FromUnixNanos(origin), absl::Nanoseconds(until)};
}

Status WriteTraceState(const std::string& path, const TraceState& state) {
  const Json json = {{"first_start_ns", absl::ToUnixNanos(state.origin)},
                     {"played_until_ns", absl::ToInt64Nanoseconds(state.until)}};
  return WriteFileAtomic(path, JsonText(json) + "\n");
}

StatusOr<ReclaimRecord> ReadReclaimRecord(const std::string& dir) {
  const std::string path = dir + "/reclaim";
  ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  ASSIGN_OR_RETURN(const int64_t deadline, Number(json, "deadline_ns", path));
  ASSIGN_OR_RETURN(const int64_t back, Number(json, "back_ns", path));
  const v1::Cause cause =
      Text(json, {"cause"}) == kSpotWord ? v1::PREEMPTED_SPOT : v1::PREEMPTED_NODE;
  return ReclaimRecord{Text(json, {"id"}), cause, absl::FromUnixNanos(deadline),
                       absl::FromUnixNanos(back)};
}

Status WriteReclaimRecord(const std::string& dir, const ReclaimRecord& record) {
  const Json json = {{"id", record.id},
                     {"cause", record.cause == v1::PREEMPTED_SPOT ? kSpotWord : kNodeWord},
                     {"deadline_ns", absl::ToUnixNanos(record.deadline)},
                     {"back_ns", absl::ToUnixNanos(record.back)}};
  return WriteFileAtomic(dir + "/reclaim", JsonText(json) + "\n");
}

}  // namespace shirabe::trial
