#include "trial/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/text/number.h"

namespace shirabe::trial {
namespace {

// File systems free whole blocks; the largest that are in use.
constexpr int64_t kBlock = 64 << 10;

int64_t DownToBlock(int64_t offset) { return offset - offset % kBlock; }

bool Punch(int fd, int64_t begin, int64_t end) {
  return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin) == 0;
}

}  // namespace

int64_t EndOfHole(int fd, int64_t offset) {
  // In this order: what is written meanwhile is no hole.
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size <= offset) return offset;
  const off_t data = lseek(fd, offset, SEEK_DATA);
  if (data >= 0) return data;
  return errno == ENXIO ? static_cast<int64_t>(info.st_size) : offset;
}

Status TrimLog(const std::string& path, int64_t read, const LogLimits& limits,
               const std::string& root) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || info.st_size <= limits.head + limits.tail + limits.step) {
    return absl::OkStatus();  // nearly all logs
  }
  ASSIGN_OR_RETURN(const Fd fd, OpenBeneath(root, path, O_RDWR));
  const int64_t begin = DownToBlock(limits.head + kBlock - 1);
  const int64_t end = DownToBlock(std::min<int64_t>(read - kBlock, info.st_size - limits.tail));
  const int64_t from = std::max(begin, DownToBlock(EndOfHole(fd.get(), begin)));
  if (end < from + std::max(limits.step, kBlock)) return absl::OkStatus();
  if (Punch(fd.get(), from, end)) return absl::OkStatus();
  if (errno != EOPNOTSUPP && errno != ENOSYS) return ErrnoStatus("cannot shorten " + path, errno);
  return absl::UnimplementedError(
      absl::StrCat("the file system of ", path, " cannot free a part of a file"));
}

bool CanTrim(const std::string& folder) {
  const std::string path = folder + "/.shortens";
  const Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool can = fd.valid() && Punch(fd.get(), 0, kBlock);
  unlink(path.c_str());
  return can;
}

int64_t DiskBytes(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_blocks) * 512 : 0;
}

StatusOr<LogPiece> ReadLog(const std::string& path, int64_t offset, int64_t max_bytes,
                           const std::string& root) {
  ASSIGN_OR_RETURN(const Fd fd, OpenBeneath(root, path));
  LogPiece piece;
  const int64_t data = EndOfHole(fd.get(), offset);
  if (data > offset) {
    piece.text = absl::StrCat("\nshirabe: ", FormatBytes(data - offset),
                              " of the output are left out here\n");
    piece.next = data;
    return piece;
  }
  const off_t hole = lseek(fd.get(), offset, SEEK_HOLE);
  const int64_t there = hole > offset ? hole - offset : max_bytes;
  const int64_t bytes = std::min(max_bytes, there);
  piece.text.resize(static_cast<size_t>(bytes));
  const ssize_t got = pread(fd.get(), piece.text.data(), piece.text.size(), offset);
  if (got < 0) return ErrnoStatus("cannot read " + path, errno);
  piece.text.resize(static_cast<size_t>(got));
  piece.next = offset + got;
  struct stat info;
  piece.at_end =
      got == 0 || (got < max_bytes && fstat(fd.get(), &info) == 0 && info.st_size <= piece.next);
  return piece;
}

}  // namespace shirabe::trial
