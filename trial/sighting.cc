#include "trial/sighting.h"

#include <algorithm>

namespace shirabe::trial {
namespace {

void SetEnd(absl::Time began, absl::Time ended, v1::Placement& placement) {
  if (!placement.has_start_time()) *placement.mutable_start_time() = ToProto(began);
  *placement.mutable_end_time() = ToProto(std::max(ended, FromProto(placement.start_time())));
}

// A machine that is taken away ends whatever runs there, unless that had ended by itself before.
void SetPlatform(const Found& found, Sighting& sighting) {
  if (found.reclaim) sighting.platform = found.reclaim->cause;
  const bool by_itself = found.state == Found::State::kEnded && !found.exit.told;
  if (by_itself) sighting.platform = v1::CAUSE_NONE;
}

void SetExit(const ExitRecord& exit, absl::Time now, Sighting& sighting) {
  sighting.state = Sighting::State::kExited;
  sighting.signal = exit.signal;
  if (exit.signal == 0) sighting.exit_code = exit.code;
  sighting.out_of_memory = exit.oom;
  sighting.ran = exit.ran;
  sighting.message = exit.message;
  if (exit.overdue == kJobLimit) sighting.overdue = Sighting::Overdue::kJob;
  if (exit.overdue == kPodLimit) sighting.overdue = Sighting::Overdue::kPod;
  // Also where the program ended well once it was asked to: it was not done.
  if (!exit.overdue.empty()) sighting.platform = v1::APP_ERROR;
  if (exit.oom) sighting.message = "killed by the kernel, which had run out of memory";
  SetEnd(std::min(exit.began, now), std::min(exit.ended, now), sighting.placement);
}

}  // namespace

void UpdateSighting(const Found& found, absl::Time now, Sighting& sighting) {
  SetPlatform(found, sighting);
  v1::Placement& placement = sighting.placement;
  if (found.pid.pid != 0) {
    placement.set_pid(found.pid.pid);
    placement.set_devices(found.pid.devices);
    ReadPlace(found.pid.place, placement);
  }
  const absl::Time began = found.pid.pid != 0 ? found.pid.began : now;
  switch (found.state) {
    case Found::State::kRunning:
      sighting.state = Sighting::State::kRunning;
      if (!placement.has_start_time()) *placement.mutable_start_time() = ToProto(began);
      return;
    case Found::State::kEnded: return SetExit(found.exit, now, sighting);
    case Found::State::kNeverStarted:
    case Found::State::kForeign:
    case Found::State::kVanished:
      sighting.state = Sighting::State::kLost;
      sighting.message = found.message;
      SetEnd(began, now, placement);
  }
}

}  // namespace shirabe::trial
