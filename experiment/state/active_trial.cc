#include "experiment/state/active_trial.h"

#include <algorithm>

#include "base/status.h"

namespace shirabe::experiment {

bool MayFollow(AttemptPhase from, AttemptPhase to) {
  using enum AttemptPhase;
  switch (to) {
    case kNone: return from == kExited;
    case kRecorded: return from == kNone || from == kStarted || from == kExited;
    case kStarted: return from == kRecorded;
    case kRunning: return from == kRecorded || from == kStarted;
    case kExited: return from == kRecorded || from == kStarted || from == kRunning;
  }
  return false;
}

absl::Duration CapacityWait::Pause(absl::Duration now, absl::Duration least) {
  if (!since) since = now;
  return std::clamp((now - *since) / 8, least, absl::Seconds(10));
}

bool CapacityWait::MayRecordReason(absl::Duration now) {
  if (!began) began = now;
  const bool may = !recorded || now - *recorded >= std::min((now - *began) / 4, absl::Minutes(1));
  if (may) recorded = now;
  return may;
}

void AttemptMemory::Enter(AttemptPhase next) {
  if (phase == next) return;
  CHECK(MayFollow(phase, next));
  phase = next;
  if (next == AttemptPhase::kRecorded) seen_pending = false;
}

absl::Duration AttemptMemory::Ran(absl::Duration monotonic) const {
  return running_since ? ran_before + (monotonic - *running_since) : absl::ZeroDuration();
}

void ActiveTrial::PutCheckpoint(v1::Checkpoint checkpoint) {
  size_t i = 0;
  for (; i < checkpoints.size(); ++i) {
    const v1::Checkpoint& old = checkpoints[i].record;
    if (old.attempt() == checkpoint.attempt() && old.step() == checkpoint.step()) break;
  }
  if (i == checkpoints.size()) checkpoints.emplace_back();
  checkpoints[i].record = std::move(checkpoint);
  checkpoints_changed.insert(i);
}

std::vector<v1::Checkpoint> RecordsOf(const std::vector<db::Versioned<v1::Checkpoint>>& rows) {
  std::vector<v1::Checkpoint> records;
  for (const db::Versioned<v1::Checkpoint>& row : rows) records.push_back(row.record);
  return records;
}

}  // namespace shirabe::experiment
