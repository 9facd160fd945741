#include "metrics/follow.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/beneath.h"

namespace shirabe::metrics {
namespace {

constexpr uint64_t kEdgeBytes = 64;  // at each end of what was read, kept to recognise the file

}  // namespace

StatusOr<std::optional<OpenFile>> OpenToFollow(const std::string& root, const std::string& path) {
  if (path.empty()) return std::nullopt;  // trials that are run by whoever asks have no files
  auto fd = OpenBeneath(root, path);
  if (absl::IsNotFound(fd.status())) return std::nullopt;
  RETURN_IF_ERROR(Prefix("cannot read metrics", fd.status()));
  struct stat info;
  if (fstat(fd->get(), &info) != 0) return ErrnoStatus("cannot examine " + path, errno);
  OpenFile file;
  file.fd = *std::move(fd);
  file.inode = info.st_ino;
  file.size = static_cast<uint64_t>(info.st_size);
  return std::optional<OpenFile>(std::move(file));
}

StatusOr<std::string> ReadAt(const OpenFile& file, uint64_t offset, uint64_t bytes,
                             const std::string& path) {
  std::string data(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n =
        pread(file.fd.get(), data.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read " + path, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  data.resize(done);
  return data;
}

StatusOr<std::string> Edges(const OpenFile& file, const v1::FileCursor& cursor) {
  const uint64_t bytes = std::min(kEdgeBytes, cursor.offset());
  ASSIGN_OR_RETURN(std::string head, ReadAt(file, 0, bytes, cursor.path()));
  ASSIGN_OR_RETURN(const std::string last,
                   ReadAt(file, cursor.offset() - bytes, bytes, cursor.path()));
  return head + last;
}

StatusOr<bool> IsContinued(const OpenFile& file, const v1::FileCursor& cursor, bool copies) {
  // A cursor that has seen no file yet (inode 0) is continued by none, of copies as well.
  const bool same = file.inode == cursor.inode() || (copies && cursor.inode() != 0);
  if (!same || file.size < cursor.offset()) return false;
  if (cursor.head().empty()) return true;
  ASSIGN_OR_RETURN(const std::string edges, Edges(file, cursor));
  return edges == cursor.head();
}

StatusOr<bool> IsRefilled(const OpenFile& copy, const v1::FileCursor& cursor) {
  if (copy.size >= cursor.offset()) return false;
  const uint64_t bytes = std::min<uint64_t>(copy.size, cursor.head().size() / 2);
  ASSIGN_OR_RETURN(const std::string begin, ReadAt(copy, 0, bytes, cursor.path()));
  return begin == cursor.head().substr(0, bytes);
}

}  // namespace shirabe::metrics
