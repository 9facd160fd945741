#include "client/trial_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "artifacts/retries.h"
#include "base/file_io.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/timestamp.h"
#include "client/records/stored_records.h"
#include "client/wire_format.h"
#include "experiment/conditions.h"
#include "trial/checkpoint/checkpoint_copy.h"
#include "trial/checkpoint/checkpoint_folder.h"

namespace shirabe::client {

// A checkpoint, or the outputs of a trial.
struct TrialFiles::Folder {
  std::string shown;
  std::string dir;        // where it lies on this machine, below `layout`'s home; "" = it does not
  v1::Checkpoint record;  // its manifest's digest; "" = there is none
  v1::ArtifactPolicy policy;
  std::string removed;  // when the copies were deleted, "" = they were not
  bool outputs = false;

  // Whether its experiment has it copied.
  bool is_copied() const { return outputs ? policy.outputs() : policy.checkpoints(); }
};

namespace {

using trial::FileTree;
using trial::Manifest;
using trial::ManifestFile;

constexpr size_t kMaxManifests = 8;
// At the same time, of all callers: each holds a thread for as long as the store takes.
constexpr int kMaxStoreCalls = 16;
// Who asks can ask again.
constexpr artifacts::RetryPolicy kTwice{
    .attempts = 2, .backoff = {.first = absl::Milliseconds(200), .max = absl::Milliseconds(200)}};

const ManifestFile* FindIn(const Manifest& manifest, const std::string& path) {
  const auto found = std::lower_bound(
      manifest.files.begin(), manifest.files.end(), path,
      [](const ManifestFile& file, const std::string& wanted) { return file.path < wanted; });
  return found != manifest.files.end() && found->path == path ? &*found : nullptr;
}

v1::FileInfo InfoOf(const ManifestFile& file) {
  v1::FileInfo info;
  info.set_path(file.path);
  info.set_bytes(file.bytes);
  info.set_sha256(file.sha256);
  return info;
}

StatusOr<struct stat> StatOf(const Fd& fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
  return info;
}

// The same only while the contents are.
std::string VersionOf(const struct stat& info) {
  return absl::StrCat(info.st_ino, "-", info.st_size, "-", info.st_mtim.tv_sec, ".",
                      info.st_mtim.tv_nsec);
}

// How much is asked for of a file of this size.
int64_t WantedBytes(const v1::ReadFileRequest& request, int64_t size) {
  const int64_t most = std::clamp<int64_t>(request.max_bytes(), 1, kMaxFilePiece);
  return std::clamp<int64_t>(size - request.offset(), 0, most);
}

Status CheckVersion(const v1::ReadFileRequest& request, const std::string& version) {
  if (request.version().empty() || request.version() == version) return absl::OkStatus();
  return absl::AbortedError(request.path() + " is another one by now: read it from its start");
}

Status NoSuchFile(const std::string& path, const std::string& shown) {
  return absl::NotFoundError(Printable(path) + " is none of the files of " + shown);
}

Status CheckStep(const v1::FilesRequest& request) {
  const bool outputs = request.attempt() == 0 && request.step() == 0;
  if (outputs || (request.attempt() >= 0 && request.step() >= 1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "step must be that of a checkpoint, and attempt one that saved it; leave both out for the "
      "trial's outputs");
}

// Of the newest attempt, where none is named.
StatusOr<v1::Checkpoint> FindRecord(db::Store& store, const TrialKey& key,
                                    const v1::FilesRequest& request) {
  ASSIGN_OR_RETURN(const auto rows, store.ListCheckpoints(key));
  const v1::Checkpoint* found = nullptr;
  for (const auto& row : rows) {
    const v1::Checkpoint& one = row.record;
    if (one.step() != request.step()) continue;
    if (request.attempt() != 0 && one.attempt() != request.attempt()) continue;
    const bool better = found == nullptr || !found->gone().empty();
    if (better || (one.gone().empty() && one.attempt() > found->attempt())) found = &one;
  }
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "trial ", TrialName(key), " has no checkpoint at step ", request.step(),
        request.attempt() == 0 ? "" : absl::StrCat(" of attempt ", request.attempt())));
  }
  if (found->gone().empty()) return *found;
  return absl::NotFoundError(absl::StrCat("the checkpoint at step ", found->step(), " of attempt ",
                                          found->attempt(), " is gone: ", found->gone()));
}

}  // namespace

void TrialFiles::AddTo(MethodTable& table) {
  table.AddStream<v1::FileInfo>("ListFiles", this, &TrialFiles::ListFiles);
  table.Add("ReadFile", this, &TrialFiles::ReadFile);
}

// ---- finding them ------------------------------------------------------------------------------

StatusOr<TrialFiles::Folder> TrialFiles::Find(const v1::FilesRequest& request) const {
  const TrialKey key = FromWire(request.trial());
  RETURN_IF_ERROR(ValidateKey(key));
  RETURN_IF_ERROR(CheckStep(request));
  RETURN_IF_ERROR(options_.namespaces->CheckReadable(key.experiment));
  ASSIGN_OR_RETURN(const auto experiment, options_.store->GetExperiment(key.experiment));
  ASSIGN_OR_RETURN(const auto stored, options_.store->GetTrial(key));
  Folder folder{.policy = experiment.record.spec().shirabe().artifacts()};
  const v1::ShirabeStatus& status = experiment.record.status().shirabe();
  if (status.has_copies_removed()) folder.removed = FormatTime(status.copies_removed());
  folder.outputs = request.step() == 0;
  if (folder.outputs) {
    folder.shown = "the outputs of trial " + TrialName(key);
    folder.dir = options_.layout->Paths({key, 1}).output_dir;
    folder.record = stored.record.outputs();
  } else {
    ASSIGN_OR_RETURN(folder.record, FindRecord(*options_.store, key, request));
    folder.shown = absl::StrCat("the checkpoint of trial ", TrialName(key), " at step ",
                                request.step(), " of attempt ", folder.record.attempt());
    folder.dir = absl::StrCat(options_.layout->Paths({key, folder.record.attempt()}).checkpoint_dir,
                              "/", request.step());
  }
  if (!options_.elsewhere()) return folder;
  folder.dir.clear();
  if (folder.is_copied() && !folder.record.digest().empty()) return folder;
  return absl::NotFoundError(
      folder.shown +
      ": the files of trials that run in pods lie on their volume, and not on this "
      "server's machine: read them there, or have them copied to a store "
      "(spec.shirabe.artifacts)");
}

// Name by name from our own folder: any of them may have been replaced by a program.
StatusOr<FileTree> TrialFiles::OpenTree(const Folder& folder) const {
  if (folder.dir.empty()) return absl::NotFoundError(folder.shown + ": not on this machine");
  const std::string& home = options_.layout->home();
  auto tree = FileTree::Open(AT_FDCWD, home, folder.shown);
  const std::string below = folder.dir.substr(home.size());
  for (const auto name : absl::StrSplit(below, '/', absl::SkipEmpty())) {
    if (!tree.ok()) break;
    tree = FileTree::Open(tree->root(), std::string(name), folder.shown);
  }
  if (absl::IsNotFound(tree.status())) {
    return absl::NotFoundError(folder.shown + ": not on this machine");
  }
  return tree;
}

Status TrialFiles::WithStore(const Folder& folder, const StoreCall& call) {
  const std::string& name = folder.policy.store();
  if (!folder.is_copied())
    return absl::NotFoundError(folder.shown + ": not on this machine, and not copied");
  if (options_.stores == nullptr) return absl::NotFoundError("no stores are known here");
  const auto store = options_.stores->Find(name, folder.record.namespace_());
  if (!store.ok()) return absl::NotFoundError(Message(store.status()));
  const absl::Cleanup done = [this] { --store_calls_; };
  if (++store_calls_ > kMaxStoreCalls) {
    return absl::UnavailableError("too many files are being read from stores: try again");
  }
  artifacts::RetryingStore twice(store->get(), kTwice);
  const Status status = call(twice, trial::CopyOf(folder.policy.prefix(), folder.record));
  if (absl::IsNotFound(status) && !folder.removed.empty()) {
    return absl::NotFoundError(absl::StrCat("the copies of the experiment were deleted from store ",
                                            name, " on ", folder.removed));
  }
  return Prefix("store " + name, status);
}

// What cannot be right is an error of the store's, and not of who asks.
StatusOr<std::string> TrialFiles::ManifestText(const Folder& folder) {
  const std::string& digest = folder.record.digest();
  if (!folder.outputs) {
    auto tree = OpenTree(folder);
    auto text =
        tree.ok() ? trial::ReadManifest(*tree) : StatusOr<trial::ManifestText>(tree.status());
    if (text.ok() && HexSha256(text->text) == digest) return std::move(text->text);
  }
  std::string text;
  RETURN_IF_ERROR(
      WithStore(folder, [&](artifacts::ArtifactStore& store, const std::string& copy) -> Status {
        ASSIGN_OR_RETURN(text, GetText(store, copy + trial::kCopiedManifest,
                                       trial::kMaxManifestBytes, std::stop_token()));
        return absl::OkStatus();
      }));
  if (HexSha256(text) == digest) return text;
  return absl::DataLossError("the manifest of " + folder.shown + " is not the one that was saved");
}

StatusOr<TrialFiles::ManifestPtr> TrialFiles::FindManifest(const Folder& folder) {
  const std::string& digest = folder.record.digest();
  if (digest.empty()) return ManifestPtr();
  {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(manifests_.begin(), manifests_.end(),
                                    [&](const auto& one) { return one.first == digest; });
    if (found != manifests_.end()) {
      manifests_.splice(manifests_.begin(), manifests_, found);
      return found->second;
    }
  }
  const auto text = ManifestText(folder);
  // The folder itself is still as good as one that was never copied.
  if (folder.outputs && !text.ok() && OpenTree(folder).ok()) return ManifestPtr();
  RETURN_IF_ERROR(text.status());
  auto manifest = trial::DecodeManifest(*text);
  if (!manifest.ok()) return absl::DataLossError(Message(manifest.status()));
  auto read = std::make_shared<const Manifest>(*std::move(manifest));  // shared: see ManifestPtr
  const MutexLock lock(mutex_);
  manifests_.emplace_front(digest, read);
  if (manifests_.size() > kMaxManifests) manifests_.pop_back();
  return read;
}

// ---- listing and reading -----------------------------------------------------------------------

Status TrialFiles::ListFolder(const Folder& folder, const Sink& sink) const {
  ASSIGN_OR_RETURN(FileTree tree, OpenTree(folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, tree.Files(trial::kMaxFiles));
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const Fd fd, tree.OpenFile(path));
    ASSIGN_OR_RETURN(const auto found, StatOf(fd, path));
    v1::FileInfo info;
    info.set_path(path);
    info.set_bytes(found.st_size);
    RETURN_IF_ERROR(sink(info));
  }
  return absl::OkStatus();
}

Status TrialFiles::ListFiles(const v1::FilesRequest& request, const Sink& sink) {
  ASSIGN_OR_RETURN(const Folder folder, Find(request));
  ASSIGN_OR_RETURN(const ManifestPtr manifest, FindManifest(folder));
  if (manifest == nullptr) return ListFolder(folder, sink);
  for (const ManifestFile& file : manifest->files) {
    v1::FileInfo info = InfoOf(file);
    RETURN_IF_ERROR(sink(info));
  }
  return absl::OkStatus();
}

// kDataLoss if it is not as long as it is listed to be.
StatusOr<v1::FileChunk> TrialFiles::ReadFromFolder(const Folder& folder,
                                                   const v1::ReadFileRequest& request,
                                                   const ManifestFile* listed) const {
  ASSIGN_OR_RETURN(FileTree tree, OpenTree(folder));
  const auto fd = tree.OpenFile(request.path());
  if (absl::IsNotFound(fd.status())) return NoSuchFile(request.path(), folder.shown);
  RETURN_IF_ERROR(fd.status());
  ASSIGN_OR_RETURN(const auto info, StatOf(*fd, request.path()));
  if (listed != nullptr && info.st_size != listed->bytes) {
    return absl::DataLossError(request.path() + " has another size than it was saved with");
  }
  v1::FileChunk piece;
  piece.set_size(info.st_size);
  piece.set_version(listed != nullptr ? listed->sha256 : VersionOf(info));
  RETURN_IF_ERROR(CheckVersion(request, piece.version()));
  const int64_t wanted = WantedBytes(request, info.st_size);
  ASSIGN_OR_RETURN(*piece.mutable_data(),
                   ReadFileRange(fd->get(), request.offset(), wanted, request.path()));
  if (static_cast<int64_t>(piece.data().size()) < wanted) {
    return absl::AbortedError(request.path() + " has become shorter meanwhile");
  }
  return piece;
}

StatusOr<v1::FileChunk> TrialFiles::ReadFile(const v1::ReadFileRequest& request) {
  if (request.offset() < 0) return absl::InvalidArgumentError("offset must be at least 0");
  RETURN_IF_ERROR(Prefix("path", trial::ValidatePath(request.path())));
  ASSIGN_OR_RETURN(const Folder folder, Find(request.files()));
  ASSIGN_OR_RETURN(const ManifestPtr manifest, FindManifest(folder));
  if (manifest == nullptr) return ReadFromFolder(folder, request, nullptr);
  const ManifestFile* const file = FindIn(*manifest, request.path());
  if (file == nullptr) return NoSuchFile(request.path(), folder.shown);
  RETURN_IF_ERROR(CheckVersion(request, file->sha256));
  auto own = ReadFromFolder(folder, request, file);
  if (own.ok()) return own;
  v1::FileChunk piece;
  piece.set_size(file->bytes);
  piece.set_version(file->sha256);
  const int64_t wanted = WantedBytes(request, file->bytes);
  if (wanted == 0) return piece;
  RETURN_IF_ERROR(WithStore(folder, [&](artifacts::ArtifactStore& store, const std::string& copy) {
    return store.Get(
        trial::CopiedFileKey(copy, *file), {request.offset(), wanted},
        [&](std::string_view data) {
          piece.mutable_data()->append(data);
          return absl::OkStatus();
        },
        std::stop_token());
  }));
  if (std::ssize(piece.data()) == wanted) return piece;
  return absl::DataLossError(request.path() + " has another size in the store");
}

StatusOr<Execution> ExecutionOf(Client& client, const TrialKey& key) {
  if (key.number != kFollowUpNumber) {
    ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial(key));
    return Execution{trial.attempts(),
                     trial.phase() != v1::TRIAL_PENDING && trial.phase() != v1::TRIAL_RUNNING};
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key.experiment));
  const v1::OnSuccessStatus& status = experiment.status().shirabe().on_success();
  if (!experiment.spec().shirabe().has_on_success()) {
    return absl::NotFoundError("experiment " + key.experiment.name +
                               " has no spec.shirabe.onSuccess, so nothing follows it");
  }
  return Execution{status.attempts(), experiment.status().shirabe().has_on_success() &&
                                          !experiment::HasPendingFollowUp(experiment)};
}

}  // namespace shirabe::client
