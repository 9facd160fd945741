#include "trial/local/trial_environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/open_beneath.h"
#include "base/text/number.h"
#include "trial/local/pidfd.h"

namespace shirabe::trial {

Environment ParseEnvironment(const char* const* entries) {
  Environment environment;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const std::string_view entry = *entries;
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

Environment ContractEnvironment(const AttemptRequest& request, const AttemptPaths& paths) {
  Environment environment = request.environment;
  environment.emplace("SHIRABE_GRACE_SECONDS", FormatNumber(absl::ToDoubleSeconds(request.grace)));
  environment["SHIRABE_PARAMS_FILE"] = paths.params_file;
  environment["SHIRABE_METRICS_FILE"] = paths.metrics_file;
  environment["SHIRABE_CHECKPOINT_DIR"] = paths.checkpoint_dir;
  environment["SHIRABE_OUTPUT_DIR"] = paths.output_dir;
  environment["SHIRABE_CONTROL_FILE"] = paths.control_file;
  environment["CLOUD_ML_HP_METRIC_FILE"] = paths.hypertune_file;
  return environment;
}

Environment MergeEnvironment(const EnvironmentLayers& layers) {
  Environment merged = layers.inherited;
  merged.erase(kCodeDirVariable);  // of a trial that this one runs in
  for (const auto& [name, value] : layers.contract) merged[name] = value;
  if (!layers.devices.empty()) {
    merged["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(layers.devices, ",");
    // Indices as nvidia-smi counts them, not by speed.
    merged.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  }
  for (const auto& [name, value] : layers.container) merged[name] = value;
  merged[kAttemptIdVariable] = layers.attempt_id;
  if (const auto code = layers.contract.find(kCodeDirVariable); code != layers.contract.end()) {
    std::string& path = merged["PYTHONPATH"];
    path = absl::StrCat(code->second, path.empty() ? "" : ":", path);
  }
  return merged;
}

Status WriteInput(const std::string& path, const std::string& text) {
  const auto fd = OpenBeneath("", path, O_WRONLY | O_CREAT | O_TRUNC);
  RETURN_IF_ERROR(InItsWay(fd.status()));
  const ssize_t written = write(fd->get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return absl::OkStatus();
  return InItsWay(ErrnoStatus("cannot write " + path, written < 0 ? errno : ENOSPC));
}

Status InItsWay(const Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::DataLossError(Message(status));
}

}  // namespace shirabe::trial
