#include "trial/file_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "trial/sha256.h"

namespace shirabe::trial {
namespace {

// Large enough that system calls cost nothing beside the hash, small enough for the caches.
constexpr size_t kChunk = 256 << 10;

}  // namespace

Status WriteAll(int fd, std::string_view bytes, const std::string& shown) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write " + shown, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

StatusOr<FileContents> PassOver(const FilePass& pass) {
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

}  // namespace shirabe::trial
