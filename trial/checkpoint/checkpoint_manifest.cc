#include "trial/checkpoint/checkpoint_manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/sorting.h"
#include "base/text/json_text.h"
#include "nlohmann/json.hpp"

namespace shirabe::trial {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;
constexpr size_t kMaxPathBytes = 2048;  // so that it can be opened wherever it is copied to
constexpr int kMaxDepth = 64;           // each level is an open descriptor on the way
constexpr int64_t kMaxBytes = int64_t{1} << 53;

Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("its manifest, ", kManifestName, ", ", what));
}

StatusOr<int64_t> Integer(const Json& object, const char* key) {
  const auto found = object.find(key);
  // What is negative is no unsigned number here, and what is larger than 64 bits a double.
  if (found != object.end() && found->is_number_unsigned() &&
      found->get<uint64_t>() <= static_cast<uint64_t>(kMaxBytes)) {
    return found->get<int64_t>();
  }
  return Malformed(absl::StrCat("has no whole number \"", key, "\" from 0 to 2^53"));
}

StatusOr<std::string> TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_string()) return found->get<std::string>();
  return Malformed(absl::StrCat("has no text \"", key, "\""));
}

StatusOr<ManifestFile> DecodeFile(const Json& json) {
  if (!json.is_object()) return Malformed("has a file that is not an object");
  ManifestFile file;
  ASSIGN_OR_RETURN(file.path, TextOf(json, "path"));
  if (const Status status = ValidatePath(file.path); !status.ok()) {
    return Malformed("lists " + Message(status));
  }
  ASSIGN_OR_RETURN(file.bytes, Integer(json, "bytes"));
  ASSIGN_OR_RETURN(file.sha256, TextOf(json, "sha256"));
  if (IsHexSha256(file.sha256)) return file;
  return Malformed("has a \"sha256\" that is not 64 digits of 0-9a-f, of " + file.path);
}

Status DecodeFiles(const Json& list, std::vector<ManifestFile>& files) {
  files.reserve(list.size());
  int64_t total = 0;
  for (const Json& json : list) {
    ASSIGN_OR_RETURN(ManifestFile file, DecodeFile(json));
    total += file.bytes;
    if (total > kMaxBytes) return Malformed("lists more bytes than any disk has");
    files.push_back(std::move(file));
  }
  StableSort(files, [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  const auto twice = std::adjacent_find(
      files.begin(), files.end(),
      [](const ManifestFile& a, const ManifestFile& b) { return a.path == b.path; });
  if (twice != files.end()) return Malformed("lists " + twice->path + " twice");
  return files.empty() ? Malformed("lists no file") : absl::OkStatus();
}

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// A pipe must not make us wait for its other end.
constexpr int kFileFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using FolderReader = std::unique_ptr<DIR, CloseFolder>;

Status NoRegularFile(const std::string& shown) {
  return absl::InvalidArgumentError(
      shown + " is a symbolic link, a device, a pipe, a socket or a folder, not a regular file");
}

StatusOr<Fd> OpenFolder(int parent, const std::string& name, const std::string& shown) {
  Fd fd(openat(parent, name.c_str(), kFolderFlags));
  if (fd.valid()) return fd;
  if (errno == ENOTDIR || errno == ELOOP) {
    return absl::InvalidArgumentError(shown + " is a symbolic link or a file, not a folder");
  }
  return ErrnoStatus("cannot open " + shown, errno);
}

// Walks a tree and writes down the paths of its files.
class Lister {
 public:
  Lister(const std::string& shown, int64_t most, std::vector<std::string>& paths)
      : shown_(shown), left_(most), paths_(paths) {}

  // `below` is the path of `folder`, with a '/' at its end unless it is the root's. How deep this
  // goes, and so how many descriptors it holds, is limited by ValidatePath.
  Status List(Fd folder, const std::string& below) {
    const int fd = folder.get();
    const FolderReader reader(fdopendir(folder.release()));
    if (reader == nullptr) return ErrnoStatus("cannot read " + shown_ + below, errno);
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(reader.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") RETURN_IF_ERROR(AddEntry(fd, below, entry->d_name));
    }
    return errno == 0 ? absl::OkStatus() : ErrnoStatus("cannot read " + shown_ + below, errno);
  }

 private:
  Status AddEntry(int folder, const std::string& below, const std::string& name) {
    const std::string path = below + name;
    if (left_-- == 0) {
      return absl::InvalidArgumentError(shown_ + " has more entries than one checkpoint may have" +
                                        ": save fewer and larger files");
    }
    if (path == kManifestName || path == kManifestDraft) return absl::OkStatus();
    if (const Status status = ValidatePath(path); !status.ok()) {
      return absl::InvalidArgumentError(shown_ + " holds " + Message(status));
    }
    struct stat info;
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return ErrnoStatus("cannot look at " + shown_ + path, errno);
    }
    if (S_ISREG(info.st_mode)) {
      paths_.push_back(path);
      return absl::OkStatus();
    }
    if (!S_ISDIR(info.st_mode)) return NoRegularFile(path);
    ASSIGN_OR_RETURN(Fd inner, OpenFolder(folder, name, shown_ + path));
    return List(std::move(inner), path + "/");
  }

  const std::string shown_;
  int64_t left_;
  std::vector<std::string>& paths_;
};

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  std::string text =
      absl::StrFormat(R"({"version":%d,"trial":%s,"attempt":%d,"step":%d,"files":[)", kVersion,
                      JsonQuoted(manifest.trial), manifest.attempt, manifest.step);
  const char* before = "\n";
  for (const ManifestFile& file : manifest.files) {
    absl::StrAppend(&text, before, R"({"path":)", JsonQuoted(file.path), R"(,"bytes":)", file.bytes,
                    R"(,"sha256":")", file.sha256, R"("})");
    before = ",\n";
  }
  return text + "\n]}\n";
}

StatusOr<Manifest> DecodeManifest(std::string_view text) {
  const Json json = ReadJsonOrDiscarded(text, {.bytes = kMaxManifestBytes});
  if (!json.is_object()) return Malformed("is not a JSON object");
  ASSIGN_OR_RETURN(const int64_t version, Integer(json, "version"));
  if (version != kVersion) {
    return Malformed(
        absl::StrFormat("has version %d; version %d is understood here", version, kVersion));
  }
  Manifest manifest;
  ASSIGN_OR_RETURN(manifest.trial, TextOf(json, "trial"));
  ASSIGN_OR_RETURN(const int64_t attempt, Integer(json, "attempt"));
  manifest.attempt = static_cast<int32_t>(std::min<int64_t>(attempt, INT32_MAX));
  ASSIGN_OR_RETURN(manifest.step, Integer(json, "step"));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) return Malformed("has no list \"files\"");
  RETURN_IF_ERROR(DecodeFiles(*files, manifest.files));
  return manifest;
}

Status CheckOwner(const Manifest& manifest, const AttemptKey& attempt, int64_t step) {
  const bool same = manifest.trial == TrialName(attempt.trial) &&
                    manifest.attempt == attempt.number && manifest.step == step;
  if (same) return absl::OkStatus();
  return Malformed(absl::StrFormat(
      "names trial %s, attempt %d, step %d: another checkpoint was copied here; remove the "
      "manifest from what is copied",
      Printable(manifest.trial), manifest.attempt, manifest.step));
}

Status ValidatePath(const std::string& path) {
  const std::string shown = "\"" + Printable(path.substr(0, 200)) + "\"";
  if (path.size() > kMaxPathBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, "…, a path of more than ", kMaxPathBytes, " bytes"));
  }
  if (std::count(path.begin(), path.end(), '/') > kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ", which lies more than ", kMaxDepth, " folders deep"));
  }
  for (const auto part : absl::StrSplit(path, '/')) {
    if (!part.empty() && part != "." && part != "..") continue;
    return absl::InvalidArgumentError(shown + ", which is not a path within its folder");
  }
  if (path == kManifestName || path == kManifestDraft) {
    return absl::InvalidArgumentError(shown + ", the manifest itself");
  }
  if (Printable(path) != path || path.find_first_of("\n\t") != std::string::npos) {
    return absl::InvalidArgumentError(
        shown + ", whose name is not UTF-8 or has control characters; rename it");
  }
  return absl::OkStatus();
}

int64_t TotalBytes(const Manifest& manifest) {
  int64_t total = 0;
  for (const ManifestFile& file : manifest.files) total += file.bytes;
  return total;
}

StatusOr<FileTree> FileTree::Open(int parent, const std::string& folder, const std::string& shown) {
  ASSIGN_OR_RETURN(Fd root, OpenFolder(parent, folder, shown));
  return FileTree(std::move(root), shown);
}

StatusOr<std::vector<std::string>> FileTree::Files(int64_t most) const {
  std::vector<std::string> paths;
  // A descriptor of its own, since the position of a reading is the descriptor's.
  ASSIGN_OR_RETURN(Fd folder, OpenFolder(root_.get(), ".", shown_));
  RETURN_IF_ERROR(Lister(shown_ + "/", most, paths).List(std::move(folder), ""));
  StableSort(paths);
  return paths;
}

// Opens the folders on the way to `path`, and returns the descriptor of the last.
StatusOr<int> FileTree::Enter(const std::string& path) {
  const auto leads_there = [&path](const Folder& folder) {
    return path.compare(0, folder.path.size(), folder.path) == 0;
  };
  while (!way_.empty() && !leads_there(way_.back())) way_.pop_back();
  int parent = way_.empty() ? root_.get() : way_.back().fd.get();
  size_t from = way_.empty() ? 0 : way_.back().path.size();
  for (;;) {
    const size_t slash = path.find('/', from);
    if (slash == std::string::npos) return parent;
    const std::string shown = path.substr(0, slash);
    ASSIGN_OR_RETURN(Fd inner, OpenFolder(parent, path.substr(from, slash - from), shown));
    if (syncing_) RETURN_IF_ERROR(SyncFd(inner.get(), shown));
    parent = inner.get();
    way_.push_back({path.substr(0, slash + 1), std::move(inner)});
    from = slash + 1;
  }
}

StatusOr<Fd> FileTree::OpenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const int folder, Enter(path));
  Fd fd(openat(folder, path.c_str() + (path.rfind('/') + 1), kFileFlags));
  if (!fd.valid() && (errno == ELOOP || errno == ENXIO)) return NoRegularFile(path);
  if (!fd.valid()) return ErrnoStatus("cannot open " + path, errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
  if (!S_ISREG(info.st_mode)) return NoRegularFile(path);
  return fd;
}

Status FileTree::SyncFolders(const std::vector<std::string>& paths) {
  way_.clear();
  syncing_ = true;
  Status status = absl::OkStatus();
  for (size_t i = 0; i < paths.size() && status.ok(); ++i) status = Enter(paths[i]).status();
  syncing_ = false;
  return status;
}

Status SyncFd(int fd, const std::string& shown) {
  if (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP) return absl::OkStatus();
  return ErrnoStatus("cannot sync " + shown, errno);
}

}  // namespace shirabe::trial
