#include "cmd/device_choice.h"

#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "trial/local/gpu_pool.h"

namespace shirabe::cmd {

std::vector<std::string> ChooseDevices(const std::string& gpus, const v1::Experiment* experiment) {
  if (!gpus.empty()) return absl::StrSplit(gpus, ',', absl::SkipWhitespace());
  if (experiment != nullptr) {
    const auto& trial_spec = experiment->spec().trial_template().trial_spec();
    if (trial::RequestedGpus(trial_spec) == 0) return {};
  }
  return trial::DetectDevices(RealClock());
}

}  // namespace shirabe::cmd
