// The GPU of this program, if there is one: looked for once, when a history is first large enough
// for it or it is asked what there is, by the rules of gpu_library.h. Found or not, it stays so
// until the process ends; one that is lost is not looked for again, so that no experiment goes to
// and fro. Registered as an accelerator. Thread-safe.
#pragma once

#include <string>

#include "suggestion/accelerator/shared_gpu.h"

namespace shirabe::suggestion::accelerator {

// For people and for metrics.
struct GpuReport {
  enum class State { kNotAsked, kOff, kNone, kReady, kLost };
  State state = State::kNotAsked;
  std::string device;  // of kReady and kLost
  std::string reason;  // of kOff, kNone and kLost
  GpuCounts counts;
};
const char* WordFor(GpuReport::State state);

// From now on, where SHIRABE_GPU is not set, it is looked for when it is needed: of a server.
void UseGpuOfServer();
// Looks for it, as a server does, if that has not been done yet.
GpuReport ProbeGpu();
// Opens nothing.
GpuReport ReportGpu();

}  // namespace shirabe::suggestion::accelerator
