#include "suggestion/accelerator/program_gpu.h"

#include <atomic>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/registry.h"

namespace shirabe::suggestion::accelerator {
namespace {

std::atomic<bool> of_server{false};

// One a process, never destroyed: its thread may hang in a driver when the process ends.
class ProgramGpu {
 public:
  static ProgramGpu& Get() {
    static ProgramGpu* const gpu = std::make_unique<ProgramGpu>().release();
    return *gpu;
  }

  std::shared_ptr<SharedGpu> Find() {  // shared: by what is on it
    const MutexLock opening(opening_);
    if (!HasLooked()) Keep(Look());
    const MutexLock lock(mutex_);
    return found_->ok() && !(**found_)->lost() ? **found_ : nullptr;
  }

  GpuReport Report() {
    const MutexLock lock(mutex_);
    using State = GpuReport::State;
    if (!found_) return {};
    if (!found_->ok()) {
      const bool off = absl::IsFailedPrecondition(found_->status());
      return {.state = off ? State::kOff : State::kNone, .reason = Message(found_->status())};
    }
    const SharedGpu& gpu = ***found_;
    return {.state = gpu.lost() ? State::kLost : State::kReady,
            .device = gpu.name(),
            .reason = gpu.reason(),
            .counts = gpu.counts()};
  }

 private:
  using Found = StatusOr<std::shared_ptr<SharedGpu>>;  // shared: by what is on it

  bool HasLooked() {
    const MutexLock lock(mutex_);
    return found_.has_value();
  }
  void Keep(Found found) {
    const MutexLock lock(mutex_);
    found_ = std::move(found);
  }

  Found Look() {
    ASSIGN_OR_RETURN(const GpuSetting setting, ReadGpuSetting());
    if (setting.off) return absl::FailedPreconditionError("SHIRABE_GPU=off");
    if (!setting.said && !of_server) {
      return absl::FailedPreconditionError(
          "only servers use one of their own accord: set SHIRABE_GPU=auto");
    }
    SharedGpu::Options options;
    options.folders = GpuLibraryFolders(setting);
    options.ordinal = setting.ordinal;
    Found found = SharedGpu::Open(options);
    // Most machines have neither, and that is nothing to warn of.
    const bool asked = setting.ordinal >= 0 || !setting.folder.empty();
    if (!found.ok() && (asked || !absl::IsNotFound(found.status()))) {
      Log(LogLevel::kWarning, "no GPU for suggestions; the processor computes them",
          {{"error", Message(found.status())}});
    }
    if (found.ok()) Log(LogLevel::kInfo, "a GPU computes suggestions", {{"gpu", (*found)->name()}});
    return found;
  }

  Mutex opening_;  // serialises looking for it, which others need not wait for
  Mutex mutex_;
  std::optional<Found> found_ ABSL_GUARDED_BY(mutex_);
};

std::shared_ptr<Accelerator> FindGpu() { return ProgramGpu::Get().Find(); }  // shared: see above

}  // namespace

const char* WordFor(GpuReport::State state) {
  switch (state) {
    case GpuReport::State::kNotAsked: return "not asked yet";
    case GpuReport::State::kOff: return "off";
    case GpuReport::State::kNone: return "none";
    case GpuReport::State::kReady: return "ready";
    case GpuReport::State::kLost: return "lost";
  }
  return "none";
}

void UseGpuOfServer() { of_server = true; }

GpuReport ProbeGpu() {
  UseGpuOfServer();
  ProgramGpu::Get().Find();
  return ProgramGpu::Get().Report();
}

GpuReport ReportGpu() { return ProgramGpu::Get().Report(); }

SHIRABE_REGISTER(AcceleratorInfo, {.name = "cuda", .find = &FindGpu});

}  // namespace shirabe::suggestion::accelerator
