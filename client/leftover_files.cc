#include "client/leftover_files.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace shirabe::client {
namespace {

constexpr absl::Duration kFilePollInterval = absl::Milliseconds(50);

}  // namespace

Status LeftoverFiles::Check(const ExperimentKey& key) const {
  if (!absl::IsNotFound(store_->GetExperiment(key).status())) return absl::OkStatus();
  const std::string folder = layout_->ExperimentDir(key);
  if (access(folder.c_str(), F_OK) != 0) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(folder, " has the files of an experiment \"", key.name,
                   "\" that is not in this database: if it was deleted just now, try again when "
                   "they are gone; else remove that folder, or choose another name, database or "
                   "SHIRABE_HOME"));
}

Status LeftoverFiles::AwaitRemoved(const ExperimentKey& key, absl::Duration deadline,
                                   const Wait& wait) const {
  for (;;) {
    Status status = Check(key);
    if (!absl::IsAlreadyExists(status) || clock_->Monotonic() >= deadline) return status;
    if (!wait(kFilePollInterval)) return absl::CancelledError("interrupted; the deletion goes on");
  }
}

}  // namespace shirabe::client
