#include "client/stale_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"

namespace shirabe::client {
namespace {

namespace fs = std::filesystem;

// Links are none of ours.
std::vector<std::string> SubfoldersOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::end(at); at.increment(error)) {
    if (fs::is_directory(at->symlink_status(error))) names.push_back(at->path().filename());
  }
  return names;
}

}  // namespace

Status StaleFiles::SetAside(const KnownAttempts& known) {
  for (const auto& [key, trials] : known) RETURN_IF_ERROR(SetAside(key, trials));
  return absl::OkStatus();
}

Status StaleFiles::SetAside(const ExperimentKey& key, const KnownTrials& known) {
  for (const std::string& name : SubfoldersOf(layout_->ExperimentDir(key))) {
    const auto trial = ParseTrialName(name, key.ns);
    if (!trial || trial->experiment != key) continue;
    const auto attempts = known.find(trial->number);
    if (attempts == known.end()) {
      RETURN_IF_ERROR(Move(layout_->TrialDir(*trial)));
      continue;
    }
    for (const std::string& below : SubfoldersOf(layout_->TrialDir(*trial))) {
      const auto attempt = ParseAttemptName(below, key.ns);
      if (!attempt || attempt->trial != *trial) continue;
      if (attempts->second.contains(attempt->number)) continue;
      RETURN_IF_ERROR(Move(layout_->Paths(*attempt).dir));
    }
  }
  return absl::OkStatus();
}

Status StaleFiles::Move(const std::string& path) {
  // The same place, below another folder.
  CHECK(absl::StartsWith(path, layout_->home() + "/"));
  const std::string to = folder_ + path.substr(layout_->home().size());
  RETURN_IF_ERROR(MakeDirs(fs::path(to).parent_path().string()));
  // As what lies below `trials` is: for its owner alone.
  if (moved_.empty() && chmod(folder_.c_str(), 0700) != 0) {
    return ErrnoStatus("cannot keep " + folder_ + " from others", errno);
  }
  if (rename(path.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(absl::StrCat("cannot move ", path, " to ", to), errno);
  }
  moved_.emplace_back(path, to);
  return absl::OkStatus();
}

Status StaleFiles::PutBack() {
  while (!moved_.empty()) {
    const auto& [from, to] = moved_.back();
    if (rename(to.c_str(), from.c_str()) != 0) {
      return ErrnoStatus(absl::StrCat("cannot move ", to, " back to ", from), errno);
    }
    moved_.pop_back();
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  return absl::OkStatus();
}

}  // namespace shirabe::client
