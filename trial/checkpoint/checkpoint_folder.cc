#include "trial/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"

namespace shirabe::trial {
namespace {

// Large enough that system calls cost nothing beside the hash, small enough for the caches.
constexpr size_t kChunk = 256 << 10;

constexpr size_t kFlushEachLimit = 64;  // that are flushed one by one

}  // namespace

StatusOr<FileContents> CopyAndHash(const FileCopyRequest& pass) {
  posix_fadvise(pass.from, 0, 0, POSIX_FADV_SEQUENTIAL);
  static thread_local std::vector<char> buffer(kChunk);
  FileContents contents;
  Sha256 hash;
  for (;;) {
    if (pass.stop) return absl::CancelledError("interrupted");
    const ssize_t n = read(pass.from, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read " + pass.shown, errno);
    if (n == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<size_t>(n));
    hash.Add(bytes);
    if (pass.to >= 0) RETURN_IF_ERROR(WriteAll(pass.to, bytes, pass.shown));
    contents.bytes += n;
  }
  contents.sha256 = hash.Hex();
  return contents;
}

bool CloneFile(int from, int to) { return ioctl(to, FICLONE, from) == 0; }

AttemptKey KeyOf(const v1::Checkpoint& checkpoint) {
  return {{ExperimentKeyOf(checkpoint), checkpoint.trial()}, checkpoint.attempt()};
}

void SetKey(const AttemptKey& key, v1::Checkpoint& checkpoint) {
  checkpoint.set_namespace_(key.trial.experiment.ns);
  checkpoint.set_experiment(key.trial.experiment.name);
  checkpoint.set_trial(key.trial.number);
  checkpoint.set_attempt(key.number);
}

Status ValidateStep(int64_t step) {
  if (step >= 1 && step <= kMaxStep) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "step ", step, " cannot have a checkpoint, since 0 means from the beginning: number steps ",
      "from 1, up to 2^53"));
}

StatusOr<CheckpointFolder> OpenCheckpoint(const std::string& checkpoint_dir, int64_t step) {
  const std::string name = absl::StrCat(step);
  const std::string path = absl::StrCat(checkpoint_dir, "/", name);
  ASSIGN_OR_RETURN(FileTree above, FileTree::Open(AT_FDCWD, checkpoint_dir, checkpoint_dir));
  ASSIGN_OR_RETURN(FileTree tree, FileTree::Open(above.root(), name, path));
  return CheckpointFolder{std::move(above), std::move(tree), path};
}

StatusOr<ManifestText> ReadManifest(FileTree& tree) {
  ASSIGN_OR_RETURN(const Fd fd, tree.OpenFile(kManifestName));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot look at its manifest", errno);
  if (info.st_size > kMaxManifestBytes) {
    return absl::InvalidArgumentError("its manifest is larger than one can be");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = read(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read its manifest", errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return ManifestText{std::move(text), absl::TimeFromTimespec(info.st_mtim)};
}

Status WriteManifest(int folder, const std::string& text, absl::Time saved) {
  unlinkat(folder, kManifestDraft, 0);  // of a writer that was killed, or a link in its place
  const Fd fd(openat(folder, kManifestDraft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus("cannot create its manifest", errno);
  const timespec times[] = {absl::ToTimespec(saved), absl::ToTimespec(saved)};
  Status status = WriteAll(fd.get(), text, "its manifest");
  if (status.ok() && futimens(fd.get(), times) != 0) {
    status = ErrnoStatus("cannot set the time of its manifest", errno);
  }
  if (status.ok()) status = SyncFd(fd.get(), "its manifest");
  if (status.ok() && renameat(folder, kManifestDraft, folder, kManifestName) != 0) {
    status = ErrnoStatus("cannot rename its manifest", errno);
  }
  if (!status.ok()) unlinkat(folder, kManifestDraft, 0);
  return status;
}

StatusOr<Fd> OpenListed(const ManifestFile& file, FileTree& tree) {
  auto fd = tree.OpenFile(file.path);
  if (absl::IsNotFound(fd.status())) return absl::DataLossError(file.path + " is missing");
  if (absl::IsInvalidArgument(fd.status())) return absl::DataLossError(Message(fd.status()));
  RETURN_IF_ERROR(fd.status());
  struct stat info;
  if (fstat(fd->get(), &info) != 0) return ErrnoStatus("cannot look at " + file.path, errno);
  if (info.st_size == file.bytes) return fd;
  return absl::DataLossError(absl::StrFormat("%s has %d bytes instead of %d", file.path,
                                             int64_t{info.st_size}, file.bytes));
}

Flusher::Flusher(const std::vector<ManifestFile>& files) {
  if (files.size() > kFlushEachLimit) return;
  for (const ManifestFile& file : files) few_.push_back(file.path);
}

Status Flusher::File(int fd, const std::string& path) const {
  return few_.empty() ? absl::OkStatus() : SyncFd(fd, path);
}

Status Flusher::Rest(FileTree& tree) const {
  if (!few_.empty()) return tree.SyncFolders(few_);
  return syncfs(tree.root()) == 0 ? absl::OkStatus() : ErrnoStatus("cannot sync it", errno);
}

}  // namespace shirabe::trial
