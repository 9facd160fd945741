// Reading a checkpoint back: Verify and Fork of CheckpointStore. A fork is checked as it is
// copied, so that what is resumed from is what was committed, even if a program that should be
// dead writes to the original meanwhile.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::trial {
namespace {

// What is wrong with the checkpoint itself is damage; whatever else, its disk does not answer.
Status AsVerdict(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound: return absl::NotFoundError("it is no longer there");
    case absl::StatusCode::kOk:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kCancelled: return status;
    case absl::StatusCode::kInvalidArgument: return absl::DataLossError(Message(status));
    default: return absl::UnavailableError(Message(status));
  }
}

// What goes wrong where a copy is made says nothing about the original.
Status AsTargets(const Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(Message(status));
}

// The manifest that was committed; kDataLoss if another one stands there.
StatusOr<ManifestText> LoadManifest(const v1::Checkpoint& checkpoint, FileTree& tree) {
  auto there = ReadManifest(tree);
  if (absl::IsNotFound(there.status())) return absl::DataLossError("its manifest is missing");
  RETURN_IF_ERROR(there.status());
  if (HexSha256(there->text) == checkpoint.digest()) return there;
  ASSIGN_OR_RETURN(const Manifest manifest, DecodeManifest(there->text));
  RETURN_IF_ERROR(CheckOwner(manifest, KeyOf(checkpoint), checkpoint.step()));
  return absl::DataLossError("its manifest is not the one that was committed");
}

Status CheckContents(const ManifestFile& file, const FileContents& contents) {
  if (contents.bytes != file.bytes) {
    return absl::DataLossError(
        absl::StrFormat("%s has %d bytes instead of %d", file.path, contents.bytes, file.bytes));
  }
  if (contents.sha256 == file.sha256) return absl::OkStatus();
  return absl::DataLossError("the contents of " + file.path + " have changed");
}

// Looks at every byte of the checkpoint as it stands in this directory.
Status VerifyIn(const std::string& checkpoint_dir, const v1::Checkpoint& checkpoint,
                const std::atomic<bool>* stop) {
  ASSIGN_OR_RETURN(CheckpointFolder folder, OpenCheckpoint(checkpoint_dir, checkpoint.step()));
  ASSIGN_OR_RETURN(const ManifestText there, LoadManifest(checkpoint, folder.tree));
  ASSIGN_OR_RETURN(const Manifest manifest, DecodeManifest(there.text));
  for (const ManifestFile& file : manifest.files) {
    ASSIGN_OR_RETURN(const Fd fd, OpenListed(file, folder.tree));
    ASSIGN_OR_RETURN(const FileContents contents, CopyAndHash({fd.get(), -1, {stop}, file.path}));
    RETURN_IF_ERROR(CheckContents(file, contents));
  }
  return absl::OkStatus();
}

// Makes the files of a checkpoint from the start in a folder that no other process knows.
class Copier {
 public:
  Copier(std::string folder, const std::atomic<bool>* stop)
      : folder_(std::move(folder)), stop_(stop) {}

  Status Copy(const Manifest& manifest, FileTree& tree) {
    const Flusher flusher(manifest.files);
    for (const ManifestFile& file : manifest.files) {
      ASSIGN_OR_RETURN(const Fd from, OpenListed(file, tree));
      ASSIGN_OR_RETURN(const Fd to, Create(file.path, from));
      RETURN_IF_ERROR(CopyContents(file, from, to));
      RETURN_IF_ERROR(AsTargets(flusher.File(to.get(), file.path)));
    }
    auto made = FileTree::Open(AT_FDCWD, folder_, folder_);
    RETURN_IF_ERROR(AsTargets(made.status()));
    return AsTargets(flusher.Rest(*made));
  }

 private:
  StatusOr<Fd> Create(const std::string& path, const Fd& model) {
    struct stat info;
    if (fstat(model.get(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
    const std::string whole = absl::StrCat(folder_, "/", path);
    const std::string parent = whole.substr(0, whole.rfind('/'));
    if (parent != made_) RETURN_IF_ERROR(AsTargets(MakeDirs(parent)));
    made_ = parent;
    Fd fd(open(whole.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    // The copy is for the users who could use the original, and can be executed if that can.
    if (!fd.valid() || fchmod(fd.get(), 0600 | (info.st_mode & 0777)) != 0) {
      return AsTargets(ErrnoStatus("cannot create " + whole, errno));
    }
    return fd;
  }

  // Every byte passes by here for its hash, so that nothing is won by letting the kernel copy.
  Status CopyContents(const ManifestFile& file, const Fd& from, const Fd& to) const {
    const bool cloned = CloneFile(from.get(), to.get());
    const FileCopyRequest pass = cloned ? FileCopyRequest{to.get(), -1, {stop_}, file.path}
                                        : FileCopyRequest{from.get(), to.get(), {stop_}, file.path};
    ASSIGN_OR_RETURN(const FileContents contents, CopyAndHash(pass));
    return CheckContents(file, contents);
  }

  const std::string folder_;
  const std::atomic<bool>* const stop_;
  std::string made_;  // the folder made last
};

Status CopyInto(const std::string& staging, const v1::Checkpoint& checkpoint,
                CheckpointFolder& source, const std::atomic<bool>* stop) {
  ASSIGN_OR_RETURN(const ManifestText there, LoadManifest(checkpoint, source.tree));
  ASSIGN_OR_RETURN(const Manifest manifest, DecodeManifest(there.text));
  RETURN_IF_ERROR(AsTargets(MakeDirs(staging)));
  RETURN_IF_ERROR(Copier(staging, stop).Copy(manifest, source.tree));
  const auto folder = FileTree::Open(AT_FDCWD, staging, staging);
  RETURN_IF_ERROR(AsTargets(folder.status()));
  RETURN_IF_ERROR(AsTargets(WriteManifest(folder->root(), there.text, there.modified)));
  return AsTargets(SyncFd(folder->root(), staging));
}

Status Publish(const std::string& staging, const std::string& path, const std::string& dir) {
  if (rename(staging.c_str(), path.c_str()) != 0) {
    return AsTargets(ErrnoStatus("cannot rename " + staging + " to " + path, errno));
  }
  const auto above = FileTree::Open(AT_FDCWD, dir, dir);
  RETURN_IF_ERROR(AsTargets(above.status()));
  return AsTargets(SyncFd(above->root(), dir));
}

// In the place of nothing.
Status PublishNew(const std::string& staging, const std::string& path) {
  if (renameat2(AT_FDCWD, staging.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus("cannot rename " + staging + " to " + path, errno);
}

Status ValidateCheckpoint(const v1::Checkpoint& checkpoint) {
  RETURN_IF_ERROR(ValidateKey(KeyOf(checkpoint)));
  return ValidateStep(checkpoint.step());
}

}  // namespace

Status CheckpointStore::Verify(const v1::Checkpoint& checkpoint) const {
  RETURN_IF_ERROR(AsVerdict(ValidateCheckpoint(checkpoint)));
  return AsVerdict(VerifyIn(layout_->Paths(KeyOf(checkpoint)).checkpoint_dir, checkpoint, stop_));
}

StatusOr<std::string> CheckpointStore::Fork(const v1::Checkpoint& checkpoint,
                                            const AttemptKey& to) const {
  RETURN_IF_ERROR(AsVerdict(ValidateCheckpoint(checkpoint)));
  RETURN_IF_ERROR(ValidateKey(to));
  const std::string from_dir = layout_->Paths(KeyOf(checkpoint)).checkpoint_dir;
  const std::string dir = layout_->Paths(to).checkpoint_dir;
  const std::string path = absl::StrCat(dir, "/", checkpoint.step());
  const Status there = AsVerdict(VerifyIn(dir, checkpoint, stop_));
  if (there.ok()) return path;
  if (dir == from_dir || absl::IsCancelled(there)) return there;  // never delete the original
  const std::string staging = path + ".tmp";
  RETURN_IF_ERROR(AsTargets(RemoveAll(path)));
  RETURN_IF_ERROR(AsTargets(RemoveAll(staging)));
  auto source = OpenCheckpoint(from_dir, checkpoint.step());
  RETURN_IF_ERROR(AsVerdict(source.status()));
  Status status = CopyInto(staging, checkpoint, *source, stop_);
  if (status.ok()) status = Publish(staging, path, dir);
  if (status.ok()) return path;
  RemoveAll(staging).IgnoreError();  // what is left of it only takes room
  return absl::IsResourceExhausted(status) ? status : AsVerdict(status);
}

Status CheckpointStore::Export(const v1::Checkpoint& checkpoint, const std::string& path) const {
  RETURN_IF_ERROR(AsVerdict(ValidateCheckpoint(checkpoint)));
  const std::string from_dir = layout_->Paths(KeyOf(checkpoint)).checkpoint_dir;
  auto source = OpenCheckpoint(from_dir, checkpoint.step());
  RETURN_IF_ERROR(AsVerdict(source.status()));
  const std::string staging = path + ".tmp";
  if (mkdir(staging.c_str(), 0700) != 0) return ErrnoStatus("cannot make " + staging, errno);
  Status status = CopyInto(staging, checkpoint, *source, stop_);
  if (status.ok()) status = PublishNew(staging, path);
  if (!status.ok()) RemoveAll(staging).IgnoreError();
  return status;
}

bool CheckpointStore::HoldsFork(const v1::Checkpoint& from, const AttemptKey& to) const {
  auto folder = OpenCheckpoint(layout_->Paths(to).checkpoint_dir, from.step());
  if (!folder.ok()) return false;
  const auto manifest = ReadManifest(folder->tree);
  return manifest.ok() && HexSha256(manifest->text) == from.digest();
}

}  // namespace shirabe::trial
