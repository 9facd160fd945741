// From an archive to a folder: artifacts/package/code_package.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "artifacts/package/code_package.h"
#include "artifacts/package/gzip_stream.h"
#include "artifacts/package/tar_reader.h"
#include "base/file_io.h"
#include "base/printable.h"

namespace shirabe::artifacts {
namespace {

constexpr size_t kFeedBytes = 256 << 10;
constexpr int64_t kHeaderBytesOfEntry = 4096;  // more than headers of usual names take
constexpr int64_t kFlushedOneByOne = 64;
constexpr mode_t kFileMode = 0444;
constexpr mode_t kProgramMode = 0555;

Status Twice(const std::string& path) {
  return absl::InvalidArgumentError(Quoted(Printable(path)) + " is in the package twice");
}

// Makes what it is told of below one folder. Every folder is opened by name from the one above, and
// there are no links below it before Finish: so nothing is reached but what was made here.
class FolderMaker : public TarSink {
 public:
  FolderMaker(Fd root, const PackageLimits& limits) : root_(std::move(root)), limits_(limits) {}

  Status Begin(const TarEntry& entry) override {
    if (++entries_ > limits_.entries) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has more than ", limits_.entries, " files and folders"));
    }
    unpacked_ += entry.bytes;
    if (entry.bytes > limits_.unpacked_bytes || unpacked_ > limits_.unpacked_bytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("it has more than %d MiB of files", limits_.unpacked_bytes >> 20));
    }
    path_ = entry.path;
    switch (entry.kind) {
      case TarEntry::Kind::kFolder: return Folder(entry.path).status();
      case TarEntry::Kind::kLink:
        return links_.emplace(entry.path, entry.target).second ? absl::OkStatus()
                                                               : Twice(entry.path);
      case TarEntry::Kind::kFile: break;
    }
    mode_ = entry.executable ? kProgramMode : kFileMode;
    return Create(entry.path);
  }

  Status Bytes(std::string_view bytes) override {
    return WriteAll(file_.get(), bytes, Printable(path_));
  }

  Status End() override {
    if (!file_.valid()) return absl::OkStatus();
    const Fd done = std::exchange(file_, Fd());
    if (fchmod(done.get(), mode_) != 0) {
      return ErrnoStatus("cannot set the mode of " + Printable(path_), errno);
    }
    return few() ? Flush(done.get(), path_) : absl::OkStatus();
  }

  // The links, then the folders' modes, innermost first, then all of it on the disk.
  Status Finish() {
    for (const auto& [path, target] : links_) {
      ASSIGN_OR_RETURN(const Fd above, Folder(FolderOf(path)));
      if (symlinkat(target.c_str(), above.get(), NameOf(path).c_str()) == 0) continue;
      return errno == EEXIST ? Twice(path) : ErrnoStatus("cannot make link " + path, errno);
    }
    for (auto path = folders_.rbegin(); path != folders_.rend(); ++path) {
      ASSIGN_OR_RETURN(const Fd folder, Folder(*path));
      RETURN_IF_ERROR(Seal(folder.get(), *path));
    }
    RETURN_IF_ERROR(Seal(root_.get(), "the package"));
    if (few() || syncfs(root_.get()) == 0) return absl::OkStatus();
    return ErrnoStatus("cannot flush the package", errno);
  }

 private:
  // Flushed one by one; of more than these the file system is, once.
  bool few() const { return entries_ <= kFlushedOneByOne; }
  static Status Flush(int fd, const std::string& path) {
    return fsync(fd) == 0 ? absl::OkStatus()
                          : ErrnoStatus("cannot flush " + Printable(path), errno);
  }
  Status Seal(int folder, const std::string& path) const {
    if (fchmod(folder, kProgramMode) != 0) {
      return ErrnoStatus("cannot set the mode of " + Printable(path), errno);
    }
    return few() ? Flush(folder, path) : absl::OkStatus();
  }

  static std::string FolderOf(const std::string& path) {
    const size_t cut = path.rfind('/');
    return cut == std::string::npos ? "" : path.substr(0, cut);
  }
  static std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  // Open, made where it is missing; "" is the root.
  StatusOr<Fd> Folder(const std::string& path) {
    Fd at(fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
    if (!at.valid()) return ErrnoStatus("cannot open the package's folder", errno);
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      if (mkdirat(at.get(), name.c_str(), 0700) == 0) {
        folders_.insert(path.substr(0, end));
        if (static_cast<int64_t>(folders_.size()) > limits_.entries) {
          return absl::InvalidArgumentError(
              absl::StrCat("it has more than ", limits_.entries, " folders"));
        }
      } else if (errno != EEXIST) {
        return ErrnoStatus("cannot make folder " + Printable(path), errno);
      }
      Fd next(openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next.valid() && (errno == ENOTDIR || errno == ELOOP)) return Twice(path.substr(0, end));
      if (!next.valid()) return ErrnoStatus("cannot open folder " + Printable(path), errno);
      at = std::move(next);
      begin = end + 1;
    }
    return at;
  }

  Status Create(const std::string& path) {
    ASSIGN_OR_RETURN(const Fd above, Folder(FolderOf(path)));
    file_ = Fd(openat(above.get(), NameOf(path).c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file_.valid()) return absl::OkStatus();
    return errno == EEXIST ? Twice(path) : ErrnoStatus("cannot make " + Printable(path), errno);
  }

  const Fd root_;
  const PackageLimits& limits_;
  int64_t entries_ = 0;
  int64_t unpacked_ = 0;
  std::string path_;  // of the entry that is being made
  Fd file_;
  mode_t mode_ = 0;
  std::set<std::string> folders_;  // that were made
  std::map<std::string, std::string> links_;
};

// All of a file, from its start.
Status ReadThrough(int fd, const std::stop_token& stop, const BytesSink& sink) {
  std::string buffer(kFeedBytes, '\0');
  for (off_t at = 0;;) {
    if (stop.stop_requested()) return absl::CancelledError("interrupted");
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read the package", errno);
    if (n == 0) return absl::OkStatus();
    RETURN_IF_ERROR(sink(std::string_view(buffer.data(), static_cast<size_t>(n))));
    at += n;
  }
}

}  // namespace

Status UnpackPackage(int fd, const std::string& folder, const PackageLimits& limits,
                     const std::stop_token& stop) {
  if (mkdir(folder.c_str(), 0700) != 0) return ErrnoStatus("cannot make folder " + folder, errno);
  Fd root(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.valid()) return ErrnoStatus("cannot open folder " + folder, errno);
  FolderMaker maker(std::move(root), limits);
  TarReader tar(&maker);
  Gunzip gunzip;
  const int64_t most = limits.unpacked_bytes + limits.entries * kHeaderBytesOfEntry;
  int64_t made = 0;
  const auto read_tar = [&](std::string_view bytes) -> Status {
    made += static_cast<int64_t>(bytes.size());
    if (made > most) return absl::InvalidArgumentError("it is larger than a package may be");
    return tar.Add(bytes);
  };
  RETURN_IF_ERROR(
      ReadThrough(fd, stop, [&](std::string_view bytes) { return gunzip.Add(bytes, read_tar); }));
  RETURN_IF_ERROR(gunzip.Finish());
  RETURN_IF_ERROR(tar.Finish());
  return maker.Finish();
}

}  // namespace shirabe::artifacts
