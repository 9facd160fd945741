// Files of trials and attempts that a restored store does not know: those that came after the
// backup was taken. A new attempt of the same number could not start where they lie, so they are
// set aside, and put back if the restore fails after all. Used by client/store_backup; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "trial/file_layout.h"

namespace shirabe::client {

// What a backup has: the numbers of attempts by trial.
using KnownTrials = std::map<int64_t, std::set<int32_t>>;
using KnownAttempts = std::map<ExperimentKey, KnownTrials>;

class StaleFiles {
 public:
  // They go into `folder`, which is made when the first of them does.
  StaleFiles(const trial::FileLayout* layout, std::string folder)
      : layout_(layout), folder_(std::move(folder)) {}

  // Moves what lies in the folders of these experiments and belongs to none of their attempts.
  Status SetAside(const KnownAttempts& known);
  // Moves all of it back.
  Status PutBack();

  int64_t count() const { return std::ssize(moved_); }
  const std::string& folder() const { return folder_; }

 private:
  Status SetAside(const ExperimentKey& key, const KnownTrials& known);
  Status Move(const std::string& path);

  const trial::FileLayout* const layout_;
  const std::string folder_;
  std::vector<std::pair<std::string, std::string>> moved_;  // from, to
};

}  // namespace shirabe::client
