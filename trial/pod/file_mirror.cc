#include "trial/pod/file_mirror.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "trial/log_file.h"

namespace shirabe::trial {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFixed[] = {"log", "metrics.jsonl", "hypertune.jsonl", "scrapes.jsonl"};
constexpr std::string_view kFiles = "files/";
constexpr char kIncoming[] = "incoming";    // what is about to replace a copy
constexpr char kReplaced[] = ".replaced-";  // what was: its end may not have been read yet
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxLevels = 32;
// "Send no more of it."
constexpr int64_t kSendNoMore = std::numeric_limits<int64_t>::max();

bool IsFixed(std::string_view name) {
  return std::find(std::begin(kFixed), std::end(kFixed), name) != std::end(kFixed);
}

// Below files/: no part that means something else than a name, nor one of our own.
bool IsBelowFiles(const std::string& name) {
  if (name.compare(0, kFiles.size(), kFiles) != 0 || name.size() > kMaxNameBytes) return false;
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() > kMaxLevels || name.find('\0') != std::string::npos) return false;
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == ".." || part.size() > 255 ||
           part.compare(0, std::size(kReplaced) - 1, kReplaced) == 0;
  });
}

Status CheckPiece(const v1::FilePiece& piece) {
  if (!IsFixed(piece.name()) && !IsBelowFiles(piece.name())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "files.name \"", Printable(piece.name().substr(0, 200)),
        "\" must be log, metrics.jsonl, hypertune.jsonl, scrapes.jsonl or files/PATH"));
  }
  const auto bytes = static_cast<int64_t>(piece.data().size());
  if (piece.offset() >= 0 && piece.offset() <= kSendNoMore - bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("files.offset ", piece.offset(), " of ", piece.name(), " must not be negative"));
}

// A folder and a name in it, reached without following any link.
struct Place {
  Fd folder;
  std::string name;
};

StatusOr<Fd> OpenFolder(int at, const std::string& name, const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(openat(at, name.c_str(), kFlags));
  if (!fd.valid() && errno == ENOENT && mkdirat(at, name.c_str(), 0755) == 0) {
    fd = Fd(openat(at, name.c_str(), kFlags));
  }
  if (!fd.valid()) return ErrnoStatus("cannot open folder " + path, errno);
  return fd;
}

StatusOr<Fd> OpenAttempt(const std::string& dir) {
  Fd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) {
    RETURN_IF_ERROR(MakeDirs(dir));
    fd = Fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!fd.valid()) return ErrnoStatus("cannot open folder " + dir, errno);
  return fd;
}

StatusOr<Place> PlaceOfCopy(const std::string& dir, const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(name, '/');
  Place place;
  ASSIGN_OR_RETURN(place.folder, OpenAttempt(dir));
  place.name = parts.back();
  parts.pop_back();
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(place.folder, OpenFolder(place.folder.get(), part, dir + "/" + name));
  }
  return place;
}

Status WriteAt(int fd, std::string_view data, int64_t offset, const std::string& path) {
  while (!data.empty()) {
    const ssize_t n = pwrite(fd, data.data(), data.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write " + path, errno);
    data.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return absl::OkStatus();
}

// One copy, open.
class Copy {
 public:
  static StatusOr<Copy> Open(const std::string& dir, const std::string& name) {
    Copy copy;
    copy.dir_ = dir;
    copy.path_ = dir + "/" + name;
    ASSIGN_OR_RETURN(copy.place_, PlaceOfCopy(dir, name));
    copy.fd_ = Fd(openat(copy.place_.folder.get(), copy.place_.name.c_str(),
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
    struct stat info;
    if (!copy.fd_.valid() || fstat(copy.fd_.get(), &info) != 0) {
      return ErrnoStatus("cannot open " + copy.path_, errno);
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(copy.path_ + " is not a file: it cannot be a copy of one");
    }
    copy.size_ = info.st_size;
    return copy;
  }

  int64_t size() const { return size_; }

  // The piece begins within the copy, or at its end.
  Status Apply(const v1::FilePiece& piece) {
    const std::string_view data = piece.data();
    const auto known =
        static_cast<size_t>(std::min(size_ - piece.offset(), static_cast<int64_t>(data.size())));
    ASSIGN_OR_RETURN(const bool same, Holds(data.substr(0, known), piece.offset()));
    if (piece.offset() == 0 && (!same || piece.size() < size_)) return Replace(data);
    if (!same && ftruncate(fd_.get(), piece.offset()) != 0) {
      return ErrnoStatus("cannot truncate " + path_, errno);
    }
    const size_t from = same ? known : 0;
    return WriteAt(fd_.get(), data.substr(from), piece.offset() + static_cast<int64_t>(from),
                   path_);
  }

  Status Append(std::string_view data) { return WriteAt(fd_.get(), data, size_, path_); }

 private:
  // What was left out of the copy by now was the same.
  StatusOr<bool> Holds(std::string_view data, int64_t offset) const {
    while (!data.empty()) {
      const auto most = static_cast<int64_t>(data.size());
      const int64_t left_out = std::min(most, EndOfHole(fd_.get(), offset) - offset);
      data.remove_prefix(static_cast<size_t>(left_out));
      offset += left_out;
      const off_t hole = lseek(fd_.get(), offset, SEEK_HOLE);
      const int64_t bytes = hole > offset ? std::min<int64_t>(hole - offset, data.size())
                                          : static_cast<int64_t>(data.size());
      ASSIGN_OR_RETURN(const bool same, Has(data.substr(0, static_cast<size_t>(bytes)), offset));
      if (!same) return false;
      data.remove_prefix(static_cast<size_t>(bytes));
      offset += bytes;
    }
    return true;
  }

  StatusOr<bool> Has(std::string_view data, int64_t offset) const {
    const auto bytes = static_cast<int64_t>(data.size());
    ASSIGN_OR_RETURN(const std::string there, ReadFileRange(fd_.get(), offset, bytes, path_));
    return there == data;
  }

  // A reader of a part of the old one finds it again in the same folder, as after a rotation.
  Status Replace(std::string_view data) {
    ASSIGN_OR_RETURN(const Fd attempt, OpenAttempt(dir_));
    const Fd fresh(openat(attempt.get(), kIncoming,
                          O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!fresh.valid()) return ErrnoStatus("cannot create " + dir_ + "/" + kIncoming, errno);
    RETURN_IF_ERROR(WriteAt(fresh.get(), data, 0, path_));
    const std::string old = kReplaced + HexSha256(place_.name).substr(0, 12);
    const int folder = place_.folder.get();
    if (dir_ + "/" + place_.name != path_)
      renameat(folder, place_.name.c_str(), folder, old.c_str());
    if (renameat(attempt.get(), kIncoming, folder, place_.name.c_str()) == 0) {
      return absl::OkStatus();
    }
    return ErrnoStatus("cannot replace " + path_, errno);
  }

  Place place_;
  Fd fd_;
  std::string dir_, path_;
  int64_t size_ = 0;
};

using Sizes = std::map<std::string, int64_t>;

// What there is, by name.
Sizes ListCopies(const std::string& dir) {
  Sizes sizes;
  struct stat info;
  for (const std::string_view name : kFixed) {
    const std::string path = dir + "/" + std::string(name);
    if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      sizes[std::string(name)] = info.st_size;
    }
  }
  std::error_code error;
  fs::recursive_directory_iterator at(dir + "/files", error);
  for (; !error && at != fs::end(at); at.increment(error)) {
    const std::string path = at->path().string();
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const std::string name = path.substr(dir.size() + 1);
    if (IsBelowFiles(name)) sizes[name] = info.st_size;
  }
  return sizes;
}

// The log, the contract's other files, and what the program names share a limit each: a flood of
// one kind takes nothing from the others.
int GroupOf(const std::string& name) { return name == "log" ? 0 : IsFixed(name) ? 1 : 2; }

int64_t UsedBy(const Sizes& sizes, int group) {
  int64_t used = 0;
  for (const auto& [name, size] : sizes) used += GroupOf(name) == group ? size : 0;
  return used;
}

int CountOf(const Sizes& sizes, int group) {
  return static_cast<int>(std::count_if(sizes.begin(), sizes.end(), [group](const auto& entry) {
    return GroupOf(entry.first) == group;
  }));
}

Status Sync(const std::string& path, int flags) {
  const Fd fd(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid() && fsync(fd.get()) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot sync " + path, errno);
}

Status SyncAll(const std::string& dir, const Sizes& sizes) {
  std::set<std::string> folders = {dir};
  for (const auto& [name, size] : sizes) {
    RETURN_IF_ERROR(Sync(dir + "/" + name, O_RDONLY));
    for (fs::path at = fs::path(name).parent_path(); !at.empty(); at = at.parent_path()) {
      folders.insert(dir + "/" + at.string());
    }
  }
  for (const std::string& folder : folders) RETURN_IF_ERROR(Sync(folder, O_RDONLY | O_DIRECTORY));
  return absl::OkStatus();
}

}  // namespace

Mutex& FileMirror::LockOf(const AttemptKey& key) {
  return locks_[std::hash<std::string>()(AttemptName(key)) % locks_.size()];
}

// A log that is full is so after a restart as well: it ends with a line of ours.
bool FileMirror::IsFull(const AttemptKey& key, const std::string& name, int64_t size) {
  if (name == "log" && !options_.trims && size >= options_.max_bytes) return true;
  const MutexLock lock(mutex_);
  const auto found = full_.find(key);
  return found != full_.end() && found->second.contains(name);
}

// The first time that this copy takes no more, the reason is reported.
void FileMirror::Close(const AttemptKey& key, const std::string& name, const std::string& why,
                       ApplyResult& taken) {
  const MutexLock lock(mutex_);
  if (!full_[key].insert(name).second || !taken.error.empty()) return;
  taken.error = absl::StrCat(name, " ", why);
}

Status FileMirror::ApplyPiece(const AttemptKey& key, const v1::FilePiece& piece,
                              ApplyResult& taken) {
  const std::string dir = options_.layout->Paths(key).dir;
  const std::string& name = piece.name();
  const Sizes sizes = ListCopies(dir);
  const bool is_new = !sizes.contains(name);
  const int64_t size = is_new ? 0 : sizes.at(name);
  if (piece.offset() > size || IsFull(key, name, size)) return absl::OkStatus();
  const int group = GroupOf(name);
  if (is_new && group == 2 && CountOf(sizes, group) >= options_.max_files) {
    Close(key, name, absl::StrCat("is not kept: there are ", options_.max_files, " others"), taken);
    return absl::OkStatus();
  }
  const int64_t fresh = piece.offset() + static_cast<int64_t>(piece.data().size()) - size;
  const bool trimmed = group == 0 && options_.trims;
  const int64_t after = fresh + (trimmed ? DiskBytes(dir + "/log") : UsedBy(sizes, group));
  if (after <= options_.max_bytes) {
    ASSIGN_OR_RETURN(Copy copy, Copy::Open(dir, name));
    return copy.Apply(piece);
  }
  if (trimmed) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the log of ", AttemptName(key), " has ", options_.max_bytes >> 20,
                     " MiB that are still to be read: more of it is taken later"));
  }
  const std::string why = absl::StrCat("is kept no further: the copies of ",
                                       group == 0 ? "an attempt's log" : "an attempt's files",
                                       " may have ", options_.max_bytes >> 20, " MiB");
  Close(key, name, why, taken);
  if (group != 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(Copy copy, Copy::Open(dir, name));
  const std::string_view rest = std::string_view(piece.data())
                                    .substr(static_cast<size_t>(size - piece.offset()),
                                            static_cast<size_t>(options_.max_bytes - size));
  return copy.Append(absl::StrCat(std::string(rest), "\nshirabe: the log ", why, "\n"));
}

StatusOr<FileMirror::ApplyResult> FileMirror::Apply(const AttemptKey& key,
                                                    const v1::SyncRequest& request, bool durable) {
  for (const v1::FilePiece& piece : request.files()) RETURN_IF_ERROR(CheckPiece(piece));
  const std::string dir = options_.layout->Paths(key).dir;
  ApplyResult taken;
  const MutexLock lock(LockOf(key));
  for (const v1::FilePiece& piece : request.files()) {
    RETURN_IF_ERROR(ApplyPiece(key, piece, taken));
  }
  Sizes sizes = ListCopies(dir);
  if (durable && !sizes.empty()) RETURN_IF_ERROR(SyncAll(dir, sizes));
  for (const v1::FilePiece& piece : request.files()) sizes.emplace(piece.name(), 0);
  for (const auto& [name, size] : sizes) {
    v1::FileHave have;
    have.set_name(name);
    have.set_size(IsFull(key, name, size) ? kSendNoMore : size);
    taken.have.push_back(std::move(have));
  }
  return taken;
}

Status FileMirror::AppendLog(const AttemptKey& key, const std::string& bytes) {
  v1::FilePiece piece;
  piece.set_name("log");
  piece.set_data(bytes);
  ApplyResult taken;
  const MutexLock lock(LockOf(key));
  const Sizes sizes = ListCopies(options_.layout->Paths(key).dir);
  const auto log = sizes.find("log");
  piece.set_offset(log == sizes.end() ? 0 : log->second);
  piece.set_size(piece.offset() + static_cast<int64_t>(bytes.size()));
  return ApplyPiece(key, piece, taken);
}

void FileMirror::Forget(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  full_.erase(key);
}

}  // namespace shirabe::trial
