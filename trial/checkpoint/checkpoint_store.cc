#include "trial/checkpoint/checkpoint_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "base/sorting.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "trial/checkpoint/checkpoint_folder.h"

namespace shirabe::trial {
namespace {

// Of a name that is no step's, so that half a checkpoint is never taken for one.
constexpr const char* kPrunedSuffix = ".pruned.tmp";

// The step of a name that is one: decimal, without a sign or a leading zero.
std::optional<int64_t> ParseStep(std::string_view name) {
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto result = std::from_chars(name.data(), end, step);
  if (result.ec != std::errc() || result.ptr != end || step > kMaxStep) return std::nullopt;
  return absl::StrCat(step) == absl::string_view(name.data(), name.size()) && step >= 0
             ? std::optional(step)
             : std::nullopt;
}

StatusOr<std::vector<std::string>> NamesIn(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto close = [](DIR* folder) { closedir(folder); };
  const std::unique_ptr<DIR, decltype(close)> reader(fd.valid() ? fdopendir(fd.get()) : nullptr,
                                                     close);
  if (reader == nullptr) return ErrnoStatus("cannot open " + path, errno);
  fd.release();  // the reader's now
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(reader.get())) {
    names.emplace_back(entry->d_name);
    if (static_cast<int64_t>(names.size()) <= kMaxFiles) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", kMaxFiles,
                                                   " entries: a checkpoint is one folder in it"));
  }
  if (errno != 0) return ErrnoStatus("cannot read " + path, errno);
  return names;
}

bool SameState(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// What files take, by their sizes and on the disk.
struct Extent {
  int64_t bytes = 0;
  int64_t on_disk = 0;
};

// Of the files in a row, until there are more than `enough` bytes.
StatusOr<Extent> Measure(FileTree& tree, const std::vector<std::string>& paths, int64_t enough) {
  Extent extent;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const Fd fd, tree.OpenFile(path));
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
    // No sum of two overflows: each is below 2^63.
    extent.bytes = std::min(extent.bytes, kMaxStep) + std::min<int64_t>(info.st_size, kMaxStep);
    extent.on_disk += static_cast<int64_t>(info.st_blocks) * 512;
    if (extent.bytes > enough) break;
  }
  return extent;
}

// File systems that compress make files small as well, though hardly ever so small.
bool IsMostlySparse(const Extent& extent, const CheckpointLimits& limits) {
  return extent.bytes - extent.on_disk > limits.hole_bytes && extent.on_disk < extent.bytes / 16;
}

Status CheckExtent(const Extent& extent, const CheckpointLimits& limits) {
  if (IsMostlySparse(extent, limits)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it is sparse: ", FormatBytes(extent.bytes), " of which the disk holds ",
        FormatBytes(extent.on_disk), "; every byte would have to be read: save without holes"));
  }
  if (extent.bytes <= limits.bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("it has more than the ", FormatBytes(limits.bytes),
                   " that one checkpoint may have: save less, or in several steps"));
}

Status HashFile(const Fd& fd, const Interrupt& stop, ManifestFile& file) {
  struct stat before, after;
  if (fstat(fd.get(), &before) != 0) return ErrnoStatus("cannot look at " + file.path, errno);
  ASSIGN_OR_RETURN(FileContents contents, CopyAndHash({fd.get(), -1, stop, file.path}));
  if (fstat(fd.get(), &after) != 0) return ErrnoStatus("cannot look at " + file.path, errno);
  if (!SameState(before, after)) {
    return absl::UnavailableError(file.path +
                                  " is still written to: save into <step>.tmp, then rename");
  }
  file.bytes = contents.bytes;
  file.sha256 = std::move(contents.sha256);
  return absl::OkStatus();
}

// What a manifest says of its checkpoint.
struct Sealed {
  std::string digest;
  int64_t bytes = 0;
  absl::Time saved;
};

// A manifest that stands there, ours or the program's, is taken at its word but for the sizes.
Status CheckSizes(const Manifest& manifest, FileTree& tree) {
  const Flusher flusher(manifest.files);
  for (const ManifestFile& file : manifest.files) {
    const auto fd = OpenListed(file, tree);
    if (absl::IsDataLoss(fd.status())) return absl::InvalidArgumentError(Message(fd.status()));
    RETURN_IF_ERROR(fd.status());
    RETURN_IF_ERROR(flusher.File(fd->get(), file.path));
  }
  return flusher.Rest(tree);
}

Status HashFiles(FileTree& tree, const CheckpointLimits& limits, const Interrupt& stop,
                 Manifest& manifest) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, tree.Files(kMaxFiles));
  if (paths.empty()) return absl::InvalidArgumentError("it holds no file");
  ASSIGN_OR_RETURN(const Extent extent, Measure(tree, paths, kMaxStep));
  RETURN_IF_ERROR(CheckExtent(extent, limits));
  for (const std::string& path : paths) manifest.files.push_back({.path = path});
  const Flusher flusher(manifest.files);
  for (ManifestFile& file : manifest.files) {
    ASSIGN_OR_RETURN(const Fd fd, tree.OpenFile(file.path));
    RETURN_IF_ERROR(HashFile(fd, stop, file));
    RETURN_IF_ERROR(flusher.File(fd.get(), file.path));
  }
  return flusher.Rest(tree);
}

// When it was renamed to its name, which every common file system notes as a change of the folder.
StatusOr<absl::Time> SavedTime(int folder) {
  struct stat info;
  if (fstat(folder, &info) != 0) return ErrnoStatus("cannot look at it", errno);
  return absl::TimeFromTimespec(info.st_ctim);
}

StatusOr<Sealed> MakeSeal(Manifest manifest, FileTree& tree, const CheckpointLimits& limits,
                          const Interrupt& stop) {
  ASSIGN_OR_RETURN(const absl::Time saved, SavedTime(tree.root()));
  RETURN_IF_ERROR(HashFiles(tree, limits, stop, manifest));
  const std::string text = EncodeManifest(manifest);
  if (text.size() > kMaxManifestBytes) return absl::InvalidArgumentError("it has too many files");
  RETURN_IF_ERROR(WriteManifest(tree.root(), text, saved));
  return Sealed{HexSha256(text), TotalBytes(manifest), saved};
}

// The files of one that has a manifest are not read now, but before anyone resumes from them.
Status CheckListed(const Manifest& manifest, const CheckpointLimits& limits, FileTree& tree) {
  RETURN_IF_ERROR(CheckSizes(manifest, tree));
  std::vector<std::string> paths;
  for (const ManifestFile& file : manifest.files) paths.push_back(file.path);
  ASSIGN_OR_RETURN(const Extent extent, Measure(tree, paths, kMaxStep));
  return CheckExtent(extent, limits);
}

// What is to be made of a checkpoint.
struct SealRequest {
  AttemptKey attempt;
  int64_t step = 0;
  CheckpointLimits limits;
  Interrupt stop;
};

StatusOr<Sealed> Seal(const SealRequest& request, FileTree& tree) {
  const AttemptKey& attempt = request.attempt;
  const auto there = ReadManifest(tree);
  if (absl::IsNotFound(there.status())) {
    return MakeSeal({TrialName(attempt.trial), attempt.number, request.step, {}}, tree,
                    request.limits, request.stop);
  }
  RETURN_IF_ERROR(there.status());
  ASSIGN_OR_RETURN(const Manifest manifest, DecodeManifest(there->text));
  RETURN_IF_ERROR(CheckOwner(manifest, attempt, request.step));
  RETURN_IF_ERROR(CheckListed(manifest, request.limits, tree));
  return Sealed{HexSha256(there->text), TotalBytes(manifest), there->modified};
}

}  // namespace

StatusOr<std::vector<int64_t>> CheckpointStore::List(const AttemptKey& attempt) const {
  RETURN_IF_ERROR(ValidateKey(attempt));
  ASSIGN_OR_RETURN(const auto names, NamesIn(layout_->Paths(attempt).checkpoint_dir));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (const auto step = ParseStep(name)) steps.push_back(*step);
  }
  StableSort(steps);
  return steps;
}

std::string CheckpointStore::FindMisnamed(const AttemptKey& attempt) const {
  const std::string dir = layout_->Paths(attempt).checkpoint_dir;
  struct stat info;
  // Most file systems count a folder's folders, so that this is all it takes where there is none.
  if (stat(dir.c_str(), &info) != 0 || info.st_nlink == 2) return "";
  auto names = NamesIn(dir);
  if (!names.ok()) return "";
  StableSort(*names);
  for (const std::string& name : *names) {
    const bool ours = name[0] == '.' || absl::EndsWith(name, ".tmp") || ParseStep(name);
    const bool folder = lstat((dir + "/" + name).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (folder && !ours) return name;
  }
  return "";
}

bool CheckpointStore::IsLarge(const AttemptKey& attempt, int64_t step) const {
  if (!ValidateKey(attempt).ok()) return false;
  auto folder = OpenCheckpoint(layout_->Paths(attempt).checkpoint_dir, step);
  if (!folder.ok() || ReadManifest(folder->tree).ok()) return false;
  const auto paths = folder->tree.Files(kMaxFiles);
  if (!paths.ok()) return false;
  const auto extent = Measure(folder->tree, *paths, limits_.quick_bytes);
  return extent.ok() && extent->bytes > limits_.quick_bytes;
}

StatusOr<v1::Checkpoint> CheckpointStore::Commit(const AttemptKey& attempt, int64_t step,
                                                 const std::atomic<bool>* cancel) const {
  RETURN_IF_ERROR(ValidateKey(attempt));
  RETURN_IF_ERROR(ValidateStep(step));
  ASSIGN_OR_RETURN(CheckpointFolder folder,
                   OpenCheckpoint(layout_->Paths(attempt).checkpoint_dir, step));
  ASSIGN_OR_RETURN(const Sealed sealed,
                   Seal({attempt, step, limits_, {stop_, cancel}}, folder.tree));
  RETURN_IF_ERROR(SyncFd(folder.tree.root(), "its folder"));
  // The program's rename to the step's name must outlast a power cut as well.
  RETURN_IF_ERROR(SyncFd(folder.above.root(), "the folder above"));
  v1::Checkpoint checkpoint;
  SetKey(attempt, checkpoint);
  checkpoint.set_step(step);
  checkpoint.set_location(folder.path);
  checkpoint.set_bytes(sealed.bytes);
  checkpoint.set_digest(sealed.digest);
  *checkpoint.mutable_time() = ToProto(sealed.saved);
  return checkpoint;
}

Status CheckpointStore::Prune(const v1::Checkpoint& checkpoint) const {
  RETURN_IF_ERROR(ValidateKey(KeyOf(checkpoint)));
  RETURN_IF_ERROR(ValidateStep(checkpoint.step()));
  const std::string dir = layout_->Paths(KeyOf(checkpoint)).checkpoint_dir;
  const auto names = NamesIn(dir);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  // An earlier call may have been cut short.
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, kPrunedSuffix)) RETURN_IF_ERROR(RemoveAll(dir + "/" + name));
  }
  const std::string path = absl::StrCat(dir, "/", checkpoint.step());
  const std::string doomed = path + kPrunedSuffix;
  if (rename(path.c_str(), doomed.c_str()) == 0) return RemoveAll(doomed);
  return errno == ENOENT ? absl::OkStatus() : ErrnoStatus("cannot remove " + path, errno);
}

}  // namespace shirabe::trial
