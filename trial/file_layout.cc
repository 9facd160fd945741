#include "trial/file_layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/open_beneath.h"

namespace shirabe::trial {
namespace {

constexpr char kInvalidKeyDir[] = "_/_";  // no namespace and no experiment can be called so

// True if it was created, false if a directory of that name is there.
StatusOr<bool> MakeDir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return true;
  if (errno != EEXIST) return ErrnoStatus("cannot create folder " + path, errno);
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return false;
  return absl::DataLossError(path + " is a link or a file, where an attempt has its folder: a " +
                             "program put it there; remove it");
}

// Like MakeDir, but what is missing above is created too; it rarely is, so that is tried last.
StatusOr<bool> MakeDirBelow(const std::string& parent, const std::string& path) {
  auto made = MakeDir(path);
  if (made.ok() || !absl::IsNotFound(made.status())) return made;
  RETURN_IF_ERROR(MakeDirs(parent));
  return MakeDir(path);
}

bool IsOwnedByUs(const std::string& home) {
  std::error_code error;
  const std::string name = std::filesystem::path(home).filename().string();
  return name == "shirabe" || name == ".shirabe" || std::filesystem::is_empty(home, error);
}

// For its owner alone, from its first moment. False if it is another's, who must see to that.
StatusOr<bool> MakePrivate(const std::string& path, bool change) {
  if (mkdir(path.c_str(), S_IRWXU) == 0) return true;
  if (errno != EEXIST) return ErrnoStatus("cannot create folder " + path, errno);
  const Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot open " + path, errno);
  const mode_t others = info.st_mode & (S_IRWXG | S_IRWXO);
  if (others == 0) return true;
  if (!change || info.st_uid != geteuid()) return false;
  if (fchmod(fd.get(), info.st_mode & 07777 & ~others) == 0) return true;
  return ErrnoStatus("cannot keep others out of " + path, errno);
}

Status CheckNotLink(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoStatus("cannot look at " + path, errno);
  }
  if (S_ISDIR(info.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is not a directory of Shirabe's own but a link or a file; what it leads ",
      "to is not deleted: remove it by hand"));
}

}  // namespace

FileLayout::FileLayout(const std::string& home) {
  std::error_code error;
  home_ = std::filesystem::absolute(home, error).lexically_normal().string();
  if (error) home_ = home;
  while (home_.size() > 1 && home_.back() == '/') home_.pop_back();
}

std::string FileLayout::ExperimentDir(const ExperimentKey& key) const {
  if (!ValidateKey(key).ok()) return absl::StrCat(home_, "/trials/", kInvalidKeyDir);
  return absl::StrCat(home_, "/trials/", key.ns, "/", key.name);
}

std::string FileLayout::ReclaimsFile(const ExperimentKey& key) const {
  return ExperimentDir(key) + "/reclaims.json";
}

std::string FileLayout::TrialDir(const TrialKey& key) const {
  return absl::StrCat(ExperimentDir(key.experiment), "/", TrialName(key));
}

AttemptPaths FileLayout::Paths(const AttemptKey& key) const {
  const std::string trial = TrialDir(key.trial);
  const std::string dir = absl::StrCat(trial, "/", AttemptName(key));
  return {.dir = dir,
          .log = dir + "/log",
          .metrics_file = dir + "/metrics.jsonl",
          .hypertune_file = dir + "/hypertune.jsonl",
          .scrapes_file = dir + "/scrapes.jsonl",
          .params_file = dir + "/params.json",
          .control_file = dir + "/control.json",
          .checkpoint_dir = dir + "/checkpoints",
          .output_dir = trial + "/output"};
}

void FileLayout::KeepPrivate() const {
  auto kept = [this]() -> StatusOr<bool> {
    RETURN_IF_ERROR(MakeDirs(std::filesystem::path(home_).parent_path().string()));
    ASSIGN_OR_RETURN(const bool home, MakePrivate(home_, IsOwnedByUs(home_)));
    return home ? StatusOr<bool>(true) : MakePrivate(home_ + "/trials", /*change=*/true);
  }();
  if (kept.ok() && *kept) return;
  Log(LogLevel::kWarning,
      kept.ok() ? "other users may read logs and checkpoints: chmod 700 the directory"
                : "failed to keep logs and checkpoints from other users",
      {{"directory", home_}, {"error", Message(kept.status())}});
}

StatusOr<bool> FileLayout::Create(const AttemptKey& key) const {
  const AttemptPaths paths = Paths(key);
  ASSIGN_OR_RETURN(const bool new_trial,
                   MakeDirBelow(ExperimentDir(key.trial.experiment), TrialDir(key.trial)));
  ASSIGN_OR_RETURN(const bool new_attempt, MakeDir(paths.dir));
  RETURN_IF_ERROR(MakeDir(paths.checkpoint_dir).status());
  if (new_trial || new_attempt) RETURN_IF_ERROR(MakeDir(paths.output_dir).status());
  return new_attempt;
}

Status FileLayout::Remove(const ExperimentKey& experiment, int64_t trial) const {
  RETURN_IF_ERROR(ValidateKey(experiment));
  if (trial < 0) return absl::InvalidArgumentError(absl::StrCat("trial ", trial, " is below 0"));
  const std::string ns = absl::StrCat(home_, "/trials/", experiment.ns);
  std::string target = ExperimentDir(experiment);
  for (const std::string& part : {home_ + "/trials", ns, target}) {
    RETURN_IF_ERROR(CheckNotLink(part));
  }
  if (trial > 0) {
    target = TrialDir({experiment, trial});
    RETURN_IF_ERROR(CheckNotLink(target));
  }
  RETURN_IF_ERROR(RemoveAll(target));
  rmdir(ns.c_str());  // goes only if it was the namespace's last
  return absl::OkStatus();
}

}  // namespace shirabe::trial
