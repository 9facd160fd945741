#include "trial/sighting.h"

#include <algorithm>

namespace shirabe::trial {
namespace {

void SetEnd(absl::Time began, absl::Time ended, v1::Placement& placement) {
  if (!placement.has_start_time()) *placement.mutable_start_time() = ToProto(began);
  *placement.mutable_end_time() = ToProto(std::max(ended, FromProto(placement.start_time())));
}

void SetExit(const ExitRecord& exit, absl::Time now, Sighting& sighting) {
  sighting.state = Sighting::State::kExited;
  sighting.signal = exit.signal;
  if (exit.signal == 0) sighting.exit_code = exit.code;
  sighting.out_of_memory = exit.oom;
  sighting.message = exit.message;
  if (exit.oom) sighting.message = "killed by the kernel, which had run out of memory";
  SetEnd(std::min(exit.began, now), std::min(exit.ended, now), sighting.placement);
}

}  // namespace

void UpdateSighting(const Found& found, absl::Time now, Sighting& sighting) {
  v1::Placement& placement = sighting.placement;
  if (found.pid.pid != 0) {
    placement.set_pid(found.pid.pid);
    placement.set_devices(found.pid.devices);
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
