#include "trial/checkpoint/checkpoint_copy.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "base/timestamp.h"
#include "trial/checkpoint/checkpoint_folder.h"

namespace shirabe::trial {
namespace {

using artifacts::ObjectInfo;
using artifacts::PutSource;

constexpr size_t kMaxObjects = 2 * kMaxFiles;
constexpr int64_t kMaxPages = 100'000;  // of a thousand objects

// What the store has of the files, by key.
StatusOr<std::map<std::string, int64_t>> ListFiles(const std::string& folder,
                                                   const CheckpointCopy& copy) {
  ASSIGN_OR_RETURN(const std::vector<ObjectInfo> objects,
                   ListAll(*copy.store, folder + kCopiedFiles, kMaxObjects, copy.stop));
  std::map<std::string, int64_t> sizes;
  for (const ObjectInfo& object : objects) sizes[object.key] = object.bytes;
  return sizes;
}

bool Has(const std::map<std::string, int64_t>& sizes, const std::string& key, int64_t bytes) {
  const auto found = sizes.find(key);
  return found != sizes.end() && found->second == bytes;
}

// What a local file says of itself is not the store's fault, and would be the same again.
Status AsLocal(const Status& status) {
  return absl::IsDataLoss(status) ? absl::InvalidArgumentError(Message(status)) : status;
}

// ---- out ---------------------------------------------------------------------------------------

Status PutFiles(const Manifest& manifest, FileTree& tree, const std::string& folder,
                const CheckpointCopy& copy) {
  ASSIGN_OR_RETURN(auto there, ListFiles(folder, copy));
  for (const ManifestFile& file : manifest.files) {
    const std::string key = CopiedFileKey(folder, file);
    if (Has(there, key, file.bytes)) continue;
    const auto fd = OpenListed(file, tree);
    RETURN_IF_ERROR(AsLocal(fd.status()));
    RETURN_IF_ERROR(copy.store->Put(key, {fd->get(), file.bytes, file.sha256}, copy.stop));
    there[key] = file.bytes;
  }
  return absl::OkStatus();
}

// That the store has said so is not enough.
Status CheckFiles(const Manifest& manifest, const std::string& folder, const CheckpointCopy& copy) {
  ASSIGN_OR_RETURN(const auto there, ListFiles(folder, copy));
  for (const ManifestFile& file : manifest.files) {
    if (Has(there, CopiedFileKey(folder, file), file.bytes)) continue;
    return absl::DataLossError(file.path + " was put into the store and is not there");
  }
  return absl::OkStatus();
}

// False if there is none, or that of another checkpoint.
StatusOr<bool> HoldsManifest(const v1::Checkpoint& checkpoint, const std::string& folder,
                             const CheckpointCopy& copy) {
  const auto text = GetText(*copy.store, folder + kCopiedManifest, kMaxManifestBytes, copy.stop);
  if (absl::IsNotFound(text.status())) return false;
  RETURN_IF_ERROR(text.status());
  return HexSha256(*text) == checkpoint.digest();
}

struct CopySource {
  const Manifest& manifest;
  FileTree& tree;
  PutSource text;  // of the manifest
};

// The manifest comes last: with it all is there.
Status PutAll(const CopySource& source, const std::string& folder, const CheckpointCopy& copy) {
  // Another one's, of an experiment of this name that was deleted elsewhere.
  RETURN_IF_ERROR(copy.store->Remove(folder + kCopiedManifest, copy.stop));
  RETURN_IF_ERROR(PutFiles(source.manifest, source.tree, folder, copy));
  RETURN_IF_ERROR(CheckFiles(source.manifest, folder, copy));
  return copy.store->Put(folder + kCopiedManifest, source.text, copy.stop);
}

// Each file is read once, for its SHA-256.
StatusOr<Manifest> MakeManifest(const AttemptKey& key, FileTree& tree,
                                const std::stop_token& stop) {
  Manifest manifest{.trial = TrialName(key.trial), .attempt = key.number, .step = kOutputsStep};
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, tree.Files(kMaxFiles));
  std::atomic<bool> stopped = false;
  const std::stop_callback on_stop(stop, [&stopped] { stopped = true; });
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const Fd fd, tree.OpenFile(path));
    ASSIGN_OR_RETURN(const FileContents contents,
                     CopyAndHash({fd.get(), -1, {.all = &stopped}, path}));
    manifest.files.push_back({path, contents.bytes, contents.sha256});
  }
  return manifest;
}

// A file that has no name.
StatusOr<Fd> FileOf(const std::string& text) {
  Fd fd(memfd_create("manifest", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot make a file in memory", errno);
  RETURN_IF_ERROR(WriteAll(fd.get(), text, "a file in memory"));
  return fd;
}

// ---- in ----------------------------------------------------------------------------------------

StatusOr<Manifest> ReadCopiedManifest(const v1::Checkpoint& checkpoint, const std::string& text) {
  if (HexSha256(text) != checkpoint.digest()) {
    return absl::DataLossError("its manifest in the store is not the one that was committed");
  }
  auto manifest = DecodeManifest(text);
  if (!manifest.ok()) return absl::DataLossError(Message(manifest.status()));
  const Status owner = CheckOwner(*manifest, KeyOf(checkpoint), checkpoint.step());
  if (!owner.ok()) return absl::DataLossError(Message(owner));
  return manifest;
}

StatusOr<Fd> CreateCopied(const std::string& path) {
  RETURN_IF_ERROR(MakeDirs(path.substr(0, path.rfind('/'))));
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus("cannot create " + path, errno);
  return fd;
}

Status GetFile(const ManifestFile& file, const std::string& folder, int to,
               const CheckpointCopy& copy) {
  Sha256 hash;
  int64_t bytes = 0;
  const auto write = [&](std::string_view piece) -> Status {
    bytes += static_cast<int64_t>(piece.size());
    if (bytes > file.bytes) return absl::DataLossError(file.path + " is larger in the store");
    hash.Add(piece);
    return WriteAll(to, piece, file.path);
  };
  const Status got = copy.store->Get(CopiedFileKey(folder, file), {}, write, copy.stop);
  if (absl::IsNotFound(got)) return absl::DataLossError(file.path + " is missing in the store");
  RETURN_IF_ERROR(got);
  if (bytes == file.bytes && hash.Hex() == file.sha256) return absl::OkStatus();
  return absl::DataLossError("the contents of " + file.path + " in the store have changed");
}

Status GetFiles(const Manifest& manifest, const std::string& folder, const std::string& staging,
                const CheckpointCopy& copy) {
  const Flusher flusher(manifest.files);
  for (const ManifestFile& file : manifest.files) {
    ASSIGN_OR_RETURN(const Fd fd, CreateCopied(staging + "/" + file.path));
    RETURN_IF_ERROR(GetFile(file, folder, fd.get(), copy));
    RETURN_IF_ERROR(flusher.File(fd.get(), file.path));
  }
  ASSIGN_OR_RETURN(FileTree made, FileTree::Open(AT_FDCWD, staging, staging));
  return flusher.Rest(made);
}

Status FillStaging(const v1::Checkpoint& checkpoint, const std::string& staging,
                   const CheckpointCopy& copy) {
  const std::string folder = CopyOf(copy.prefix, checkpoint);
  ASSIGN_OR_RETURN(const std::string text,
                   GetText(*copy.store, folder + kCopiedManifest, kMaxManifestBytes, copy.stop));
  ASSIGN_OR_RETURN(const Manifest manifest, ReadCopiedManifest(checkpoint, text));
  RETURN_IF_ERROR(MakeDirs(staging));
  RETURN_IF_ERROR(GetFiles(manifest, folder, staging, copy));
  ASSIGN_OR_RETURN(const FileTree tree, FileTree::Open(AT_FDCWD, staging, staging));
  RETURN_IF_ERROR(WriteManifest(tree.root(), text, FromProto(checkpoint.time())));
  return SyncFd(tree.root(), staging);
}

Status RemoveBelow(const std::string& folder, const CheckpointCopy& copy,
                   const std::function<Status()>& before_each = nullptr) {
  std::string after;
  for (int64_t pages = 0; pages < kMaxPages; ++pages) {
    if (before_each) RETURN_IF_ERROR(before_each());
    ASSIGN_OR_RETURN(const artifacts::ObjectPage page, copy.store->List(folder, after, copy.stop));
    for (const ObjectInfo& object : page.objects) {
      if (before_each) RETURN_IF_ERROR(before_each());
      RETURN_IF_ERROR(copy.store->Remove(object.key, copy.stop));
    }
    if (page.next.empty()) return absl::OkStatus();
    after = page.next;
  }
  return absl::ResourceExhaustedError("the store's list of " + folder + " does not end");
}

}  // namespace

std::string CopiesOfExperiment(const std::string& prefix, const ExperimentKey& key) {
  return absl::StrCat(prefix, prefix.empty() ? "" : "/", "_/", key.name, "/");
}

std::string CopiedFileKey(const std::string& copy, const ManifestFile& file) {
  return copy + kCopiedFiles + file.sha256;
}

std::optional<CopiedKey> ParseCopiedKey(const std::string& key) {
  static const RE2 form(
      "([^/]+)/_/([^/]+)/([1-9]\\d{0,17})/([1-9]\\d{0,8})/(0|[1-9]\\d{0,17})/"
      "(|files/|manifest\\.json|files/[0-9a-f]{64})");
  CopiedKey parsed;
  std::string ns, experiment;
  int64_t trial = 0, step = 0;
  int32_t attempt = 0;
  if (!RE2::FullMatch(key, form, &ns, &experiment, &trial, &attempt, &step, &parsed.rest)) {
    return std::nullopt;
  }
  parsed.checkpoint.set_namespace_(ns);
  parsed.checkpoint.set_experiment(experiment);
  parsed.checkpoint.set_trial(trial);
  parsed.checkpoint.set_attempt(attempt);
  parsed.checkpoint.set_step(step);
  return parsed;
}

std::string CopyOf(const std::string& prefix, const v1::Checkpoint& checkpoint) {
  return absl::StrCat(CopiesOfExperiment(prefix, ExperimentKeyOf(checkpoint)), checkpoint.trial(),
                      "/", checkpoint.attempt(), "/", checkpoint.step(), "/");
}

Status CopyOut(const v1::Checkpoint& checkpoint, const std::string& checkpoint_dir,
               const CheckpointCopy& copy) {
  const std::string folder = CopyOf(copy.prefix, checkpoint);
  ASSIGN_OR_RETURN(CheckpointFolder local, OpenCheckpoint(checkpoint_dir, checkpoint.step()));
  ASSIGN_OR_RETURN(const ManifestText own, ReadManifest(local.tree));
  if (HexSha256(own.text) != checkpoint.digest()) {
    return absl::InvalidArgumentError("its manifest is not the one that was committed");
  }
  ASSIGN_OR_RETURN(const bool there, HoldsManifest(checkpoint, folder, copy));
  if (there) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Manifest manifest, DecodeManifest(own.text));
  ASSIGN_OR_RETURN(const Fd fd, local.tree.OpenFile(kManifestName));
  const PutSource text{fd.get(), static_cast<int64_t>(own.text.size()), checkpoint.digest()};
  return PutAll({manifest, local.tree, text}, folder, copy);
}

StatusOr<v1::Checkpoint> CopyOutputsOut(const AttemptKey& key, const std::string& output_dir,
                                        const CheckpointCopy& copy) {
  v1::Checkpoint outputs;
  SetKey(key, outputs);
  outputs.set_step(kOutputsStep);
  auto tree = FileTree::Open(AT_FDCWD, output_dir, "its outputs");
  if (absl::IsNotFound(tree.status())) return outputs;
  RETURN_IF_ERROR(tree.status());
  const auto manifest = MakeManifest(key, *tree, copy.stop);
  if (!manifest.ok()) return AsLocal(manifest.status());
  if (manifest->files.empty()) return outputs;
  const std::string text = EncodeManifest(*manifest);
  outputs.set_bytes(TotalBytes(*manifest));
  outputs.set_digest(HexSha256(text));
  const std::string folder = CopyOf(copy.prefix, outputs);
  ASSIGN_OR_RETURN(const bool there, HoldsManifest(outputs, folder, copy));
  if (there) return outputs;
  ASSIGN_OR_RETURN(const Fd fd, FileOf(text));
  RETURN_IF_ERROR(
      PutAll({*manifest, *tree, {fd.get(), static_cast<int64_t>(text.size()), outputs.digest()}},
             folder, copy));
  return outputs;
}

Status CopyIn(const v1::Checkpoint& checkpoint, const std::string& path,
              const CheckpointCopy& copy) {
  const std::string staging = path + ".tmp";
  RETURN_IF_ERROR(RemoveAll(staging));
  Status status = FillStaging(checkpoint, staging, copy);
  if (status.ok()) status = RemoveAll(path);
  if (status.ok() && rename(staging.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus("cannot rename " + staging + " to " + path, errno);
  }
  if (!status.ok()) {
    RemoveAll(staging).IgnoreError();  // what is left of it only takes room
    return status;
  }
  const std::string dir = path.substr(0, path.rfind('/'));
  ASSIGN_OR_RETURN(const FileTree above, FileTree::Open(AT_FDCWD, dir, dir));
  return SyncFd(above.root(), dir);
}

Status RemoveCopy(const v1::Checkpoint& checkpoint, const CheckpointCopy& copy) {
  const std::string folder = CopyOf(copy.prefix, checkpoint);
  RETURN_IF_ERROR(copy.store->Remove(folder + kCopiedManifest, copy.stop));
  return RemoveBelow(folder, copy);
}

Status RemoveCopies(const ExperimentKey& key, const CheckpointCopy& copy,
                    const std::function<Status()>& before_each) {
  return RemoveBelow(CopiesOfExperiment(copy.prefix, key), copy, before_each);
}

}  // namespace shirabe::trial
