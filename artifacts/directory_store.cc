#include "artifacts/directory_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "base/sorting.h"

namespace shirabe::artifacts {
namespace {

constexpr size_t kPageKeys = 1000;
constexpr size_t kChunkBytes = 1 << 20;
constexpr int kMaxFolderTries = 100;
constexpr size_t kMaxEntries = 1'000'000;  // of one folder

// One of its names, opened from the folder above. With `make`, made where it is missing.
StatusOr<Fd> EnterFolder(int above, const std::string& name, bool make) {
  if (make && mkdirat(above, name.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus("cannot make folder " + name, errno);
  }
  Fd fd(openat(above, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid()) return fd;
  if (errno == ENOTDIR || errno == ELOOP) {
    return absl::InvalidArgumentError(name + " is a link or a file, where a folder is expected");
  }
  return ErrnoStatus("cannot open folder " + name, errno);
}

// The folder of a key, below the root.
StatusOr<Fd> EnterFolderOf(Fd folder, const std::string& key, bool make) {
  const std::vector<std::string> names = absl::StrSplit(key, '/');
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const int above = folder.get();
    ASSIGN_OR_RETURN(Fd next, EnterFolder(above, names[i], make));
    if (make && fsync(above) != 0) return ErrnoStatus("cannot flush a folder", errno);
    folder = std::move(next);
  }
  return folder;
}

bool IsRemoved(int folder) {
  struct stat info;
  return fstat(folder, &info) == 0 && info.st_nlink == 0;
}

std::string LastName(const std::string& key) { return key.substr(key.rfind('/') + 1); }

Status WriteBytes(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// Tells the sink of those bytes of a file.
Status ReadRange(int fd, ByteRange range, const PieceSink& sink, const std::stop_token& stop) {
  std::string buffer(kChunkBytes, '\0');
  while (range.bytes > 0) {
    if (stop.stop_requested()) return absl::CancelledError("interrupted");
    const size_t wanted = std::min<int64_t>(range.bytes, kChunkBytes);
    const ssize_t n = pread(fd, buffer.data(), wanted, static_cast<off_t>(range.first));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read", errno);
    if (n == 0) return absl::DataLossError("it is shorter than it was");
    RETURN_IF_ERROR(sink(std::string_view(buffer.data(), static_cast<size_t>(n))));
    range.first += n;
    range.bytes -= n;
  }
  return absl::OkStatus();
}

struct Entry {
  std::string name;
  bool folder = false;
};

// What may be a key's name in a folder, in the order of keys: a folder counts with its '/'.
StatusOr<std::vector<Entry>> ReadEntries(int folder) {
  Fd own(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const dir = own.valid() ? fdopendir(own.get()) : nullptr;
  if (dir == nullptr) return ErrnoStatus("cannot list a folder", errno);
  (void)own.release();
  std::vector<Entry> entries;
  while (const dirent* entry = readdir(dir)) {
    if (!ValidateObjectKey(entry->d_name).ok()) continue;
    struct stat info;
    if (fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // just removed
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) continue;
    entries.push_back({entry->d_name, S_ISDIR(info.st_mode)});
    if (entries.size() > kMaxEntries) break;
  }
  closedir(dir);
  if (entries.size() > kMaxEntries) return absl::ResourceExhaustedError("a folder is too large");
  StableSort(entries, [](const Entry& a, const Entry& b) {
    return a.name + (a.folder ? "/" : "") < b.name + (b.folder ? "/" : "");
  });
  return entries;
}

// Walks the keys in ascending order until a page is full.
class Lister {
 public:
  Lister(std::string prefix, std::string after)
      : prefix_(std::move(prefix)), after_(std::move(after)) {}

  Status Walk(int folder, const std::string& way) {
    ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(folder));
    for (const Entry& entry : entries) {
      const std::string key = way + entry.name + (entry.folder ? "/" : "");
      if (page_.objects.size() == kPageKeys) {
        page_.next = page_.objects.back().key;
        return absl::OkStatus();
      }
      if (entry.folder) {
        RETURN_IF_ERROR(Enter(folder, entry.name, key));
      } else if (absl::StartsWith(key, prefix_) && key > after_) {
        Add(folder, entry.name, key);
      }
    }
    return absl::OkStatus();
  }
  ObjectPage page() && { return std::move(page_); }

 private:
  // Only where keys below it can be meant.
  Status Enter(int folder, const std::string& name, const std::string& way) {
    const bool wanted = absl::StartsWith(prefix_, way) || absl::StartsWith(way, prefix_);
    const bool done = way < after_ && !absl::StartsWith(after_, way);
    const auto depth = std::count(way.begin(), way.end(), '/');
    if (!wanted || done || depth >= kMaxObjectKeyNames) return absl::OkStatus();
    const auto below = EnterFolder(folder, name, /*make=*/false);
    if (!below.ok()) return absl::OkStatus();  // removed, or replaced by a link, since
    return Walk(below->get(), way);
  }
  void Add(int folder, const std::string& name, const std::string& key) {
    struct stat info;
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    page_.objects.push_back({key, info.st_size});
  }

  const std::string prefix_;
  const std::string after_;
  ObjectPage page_;
};

}  // namespace

Status DirectoryStore::Validate(const v1::ArtifactStore& entry) {
  if (!absl::StartsWith(entry.root(), "/") || entry.root() == "/") {
    return InvalidField("root",
                        "must be the absolute path of a folder, not \"" + entry.root() + "\"");
  }
  if (!entry.endpoint().empty() || !entry.bucket().empty() || !entry.region().empty() ||
      entry.has_credentials() || !entry.ca_file().empty() ||
      entry.addressing() != v1::ADDRESS_STYLE_UNSPECIFIED) {
    return InvalidField("root",
                        "a directory has a root and no endpoint, bucket, region, "
                        "addressing, credentials and caFile: remove them");
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<ArtifactStore>> DirectoryStore::Open(const v1::ArtifactStore& entry) {
  RETURN_IF_ERROR(Validate(entry));
  auto store = std::make_unique<DirectoryStore>(entry.root());
  const Status there = store->OpenRoot().status();
  if (!there.ok()) return InvalidField("root", Message(there));
  return store;
}

// That the root is gone (not mounted, say) must not look as if no object were there.
StatusOr<Fd> DirectoryStore::OpenRoot() const {
  Fd fd(open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) return fd;
  const Status status = ErrnoStatus("cannot open the store's folder " + root_, errno);
  return absl::IsPermissionDenied(status) ? status : absl::UnavailableError(Message(status));
}

StatusOr<Fd> DirectoryStore::OpenFile(const std::string& key) const {
  RETURN_IF_ERROR(ValidateObjectKey(key));
  RETURN_IF_ERROR(OpenRoot().status());
  auto fd = OpenBeneath(root_, root_ + "/" + key);
  if (absl::IsNotFound(fd.status())) return absl::NotFoundError("there is no object " + key);
  return fd;
}

// A folder that has just been made may be removed as an empty one, by Remove of what lay beside it.
Status DirectoryStore::Put(const std::string& key, const PutSource& source, std::stop_token stop) {
  Status status;
  for (int tries = 0; tries < kMaxFolderTries; ++tries) {
    status = PutOnce(key, source, stop);
    if (!absl::IsNotFound(status)) return status;
  }
  return absl::UnavailableError(Message(status));
}

Status DirectoryStore::PutOnce(const std::string& key, const PutSource& source,
                               const std::stop_token& stop) const {
  RETURN_IF_ERROR(ValidateObjectKey(key));
  ASSIGN_OR_RETURN(Fd root, OpenRoot());
  ASSIGN_OR_RETURN(const Fd folder, EnterFolderOf(std::move(root), key, /*make=*/true));
  // By the descriptor: what its path leads to may be another folder by now.
  const std::string path = absl::StrCat("/proc/self/fd/", folder.get());
  const auto shown = [&](const Status& status) {
    return Status(status.code(),
                  absl::StrReplaceAll(Message(status), {{path + "/", key + ": "}, {path, key}}));
  };
  auto file = NewFile::Create(path + "/" + LastName(key), /*replace=*/true);
  // Which ext4 tells as EPERM.
  if (!file.ok() && IsRemoved(folder.get())) return absl::NotFoundError("its folder has gone");
  if (!file.ok()) return shown(file.status());
  Sha256 hash;
  const auto copy = [&](std::string_view piece) {
    hash.Add(piece);
    return WriteBytes(file->fd(), piece);
  };
  const Status copied = Prefix(key, ReadRange(source.fd, {0, source.bytes}, copy, stop));
  if (absl::IsDataLoss(copied)) return absl::InvalidArgumentError(Message(copied));
  RETURN_IF_ERROR(copied);
  if (hash.Hex() != source.sha256) {
    return absl::InvalidArgumentError("what is to be put as " + key + " has changed");
  }
  return shown(file->Publish());
}

Status DirectoryStore::Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
                           std::stop_token stop) {
  ASSIGN_OR_RETURN(const Fd fd, OpenFile(key));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot look at " + key, errno);
  const int64_t size = info.st_size;
  if (range.first < 0 || range.first > size || (range.first == size && size > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(key, " has no byte ", range.first));
  }
  const int64_t left = size - range.first;
  const int64_t bytes = range.bytes < 0 ? left : std::min(range.bytes, left);
  return Prefix(key, ReadRange(fd.get(), {range.first, bytes}, sink, stop));
}

StatusOr<ObjectInfo> DirectoryStore::Head(const std::string& key, std::stop_token) {
  ASSIGN_OR_RETURN(const Fd fd, OpenFile(key));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot look at " + key, errno);
  return ObjectInfo{key, info.st_size};
}

StatusOr<ObjectPage> DirectoryStore::List(const std::string& prefix, const std::string& after,
                                          std::stop_token) {
  ASSIGN_OR_RETURN(const Fd root, OpenRoot());
  Lister lister(prefix, after);
  RETURN_IF_ERROR(lister.Walk(root.get(), ""));
  return std::move(lister).page();
}

// The folders that it leaves empty go too; one that is filled meanwhile stays.
Status DirectoryStore::Remove(const std::string& key, std::stop_token) {
  RETURN_IF_ERROR(ValidateObjectKey(key));
  std::string rest = key;
  for (bool first = true;; first = false) {
    ASSIGN_OR_RETURN(Fd root, OpenRoot());
    const auto folder = EnterFolderOf(std::move(root), rest, /*make=*/false);
    if (absl::IsNotFound(folder.status())) return absl::OkStatus();
    RETURN_IF_ERROR(folder.status());
    const int removed = unlinkat(folder->get(), LastName(rest).c_str(), first ? 0 : AT_REMOVEDIR);
    if (removed != 0 && !first) return absl::OkStatus();
    if (removed != 0 && errno != ENOENT) return ErrnoStatus("cannot remove " + key, errno);
    const size_t cut = rest.rfind('/');
    if (cut == std::string::npos) return absl::OkStatus();
    rest.resize(cut);
  }
}

StatusOr<PresignedUrl> DirectoryStore::Presign(const PresignedRequest&, absl::Duration) {
  return absl::UnimplementedError("a directory has no URLs");
}

}  // namespace shirabe::artifacts
