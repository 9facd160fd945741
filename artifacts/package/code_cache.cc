#include "artifacts/package/code_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/sha256.h"

namespace shirabe::artifacts {
namespace {

// A file without a name, which goes with its descriptor; where there are none, with its name.
StatusOr<Fd> NamelessFile(const std::string& folder) {
  Fd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
    return ErrnoStatus("cannot make a file in " + folder, errno);
  }
  const std::string name = folder + "/package.partial";
  unlink(name.c_str());
  fd = Fd(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus("cannot make " + name, errno);
  unlink(name.c_str());
  return fd;
}

Status SyncFolder(const std::string& folder) {
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() && fsync(fd.get()) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot flush " + folder, errno);
}

}  // namespace

bool CodeCache::Has(const std::string& sha256) const {
  struct stat info;
  return lstat(PathOf(sha256).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

StatusOr<Fd> CodeCache::Lock(const std::string& sha256) const {
  const std::string name = PathOf(sha256) + ".lock";
  Fd lock(open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.valid()) return ErrnoStatus("cannot open " + name, errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return ErrnoStatus("cannot lock " + name, errno);
  return absl::UnavailableError("another process is fetching it");
}

Status CodeCache::Remove(const std::string& sha256) {
  ASSIGN_OR_RETURN(const Fd lock, Lock(sha256));
  const std::string staging = PathOf(sha256) + ".tmp";
  RETURN_IF_ERROR(RemoveAll(staging));
  if (rename(PathOf(sha256).c_str(), staging.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus("cannot rename " + PathOf(sha256), errno);
  }
  return RemoveAll(staging);
}

Status CodeCache::Fill(const std::string& sha256, const PackageSource& source,
                       const std::stop_token& stop) {
  RETURN_IF_ERROR(MakeDirs(folder_));
  ASSIGN_OR_RETURN(const Fd lock, Lock(sha256));
  if (Has(sha256)) return absl::OkStatus();
  const std::string staging = PathOf(sha256) + ".tmp";
  RETURN_IF_ERROR(RemoveAll(staging));  // of one that was killed
  const Status status = FillLocked(sha256, source, stop);
  if (!status.ok()) RemoveAll(staging).IgnoreError();  // what is left of it only takes room
  return status;
}

Status CodeCache::FillLocked(const std::string& sha256, const PackageSource& source,
                             const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const Fd archive, NamelessFile(folder_));
  Sha256 hash;
  int64_t bytes = 0;
  RETURN_IF_ERROR(source([&](std::string_view piece) -> Status {
    bytes += static_cast<int64_t>(piece.size());
    if (bytes > limits_.packed_bytes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "it is larger than the %d MiB that a package may have", limits_.packed_bytes >> 20));
    }
    hash.Add(piece);
    return WriteAll(archive.get(), piece, "the package");
  }));
  const std::string found = hash.Hex();
  if (found != sha256) {
    return absl::DataLossError("what is there has another digest, " + found);
  }
  const std::string staging = PathOf(sha256) + ".tmp";
  RETURN_IF_ERROR(UnpackPackage(archive.get(), staging, limits_, stop));
  if (rename(staging.c_str(), PathOf(sha256).c_str()) != 0) {
    return ErrnoStatus("cannot rename " + staging, errno);
  }
  return SyncFolder(folder_);
}

}  // namespace shirabe::artifacts
