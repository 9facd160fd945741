#include "metrics/file_tail.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/open_beneath.h"

namespace shirabe::metrics {
namespace {

constexpr uint64_t kEdgeBytes = 64;  // at each end of what was read, kept to recognise the file

}  // namespace

StatusOr<std::optional<TailedFile>> OpenForTail(const std::string& root, const std::string& path) {
  if (path.empty()) return std::nullopt;  // trials that callers run have no files
  auto fd = OpenBeneath(root, path);
  if (absl::IsNotFound(fd.status())) return std::nullopt;
  RETURN_IF_ERROR(Prefix("cannot read metrics", fd.status()));
  struct stat info;
  if (fstat(fd->get(), &info) != 0) return ErrnoStatus("cannot examine " + path, errno);
  TailedFile file;
  file.fd = *std::move(fd);
  file.inode = info.st_ino;
  file.size = static_cast<uint64_t>(info.st_size);
  return std::optional<TailedFile>(std::move(file));
}

StatusOr<std::string> ReadAt(const TailedFile& file, uint64_t offset, uint64_t bytes,
                             const std::string& path) {
  return ReadFileRange(file.fd.get(), static_cast<int64_t>(offset), static_cast<int64_t>(bytes),
                       path);
}

StatusOr<std::string> Edges(const TailedFile& file, const v1::FileCursor& cursor) {
  const uint64_t bytes = std::min(kEdgeBytes, cursor.offset());
  ASSIGN_OR_RETURN(std::string head, ReadAt(file, 0, bytes, cursor.path()));
  ASSIGN_OR_RETURN(const std::string last,
                   ReadAt(file, cursor.offset() - bytes, bytes, cursor.path()));
  return head + last;
}

StatusOr<bool> IsContinued(const TailedFile& file, const v1::FileCursor& cursor, bool copies) {
  // A cursor that has seen no file yet (inode 0) is continued by none, of copies as well.
  const bool same = file.inode == cursor.inode() || (copies && cursor.inode() != 0);
  if (!same || file.size < cursor.offset()) return false;
  if (cursor.head().empty()) return true;
  ASSIGN_OR_RETURN(const std::string edges, Edges(file, cursor));
  return edges == cursor.head();
}

StatusOr<bool> IsBeingResent(const TailedFile& copy, const v1::FileCursor& cursor) {
  if (copy.size >= cursor.offset()) return false;
  const uint64_t bytes = std::min<uint64_t>(copy.size, cursor.head().size() / 2);
  ASSIGN_OR_RETURN(const std::string begin, ReadAt(copy, 0, bytes, cursor.path()));
  return begin == cursor.head().substr(0, bytes);
}

namespace {

constexpr int kMaxRotated = 10'000;  // of a folder that are looked at; a program may make millions

// The file of the cursor under another name in its folder, where rotation has put it.
StatusOr<std::optional<TailedFile>> FindRenamed(const TailRequest& request) {
  const v1::FileCursor& cursor = request.cursor;
  const std::filesystem::path folder = std::filesystem::path(cursor.path()).parent_path();
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.empty() ? "." : folder.c_str()),
                                                closedir);
  if (dir == nullptr) return std::nullopt;
  for (int entries = 0; entries < kMaxRotated; ++entries) {
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) break;
    if (entry->d_type == DT_DIR || (!request.copies && entry->d_ino != cursor.inode())) continue;
    auto file = OpenForTail(request.root, (folder / entry->d_name).string());
    if (!file.ok() || !*file) continue;
    ASSIGN_OR_RETURN(const bool continued, IsContinued(**file, cursor, request.copies));
    if (continued) return std::move(*file);
  }
  return std::nullopt;
}

// One call of ReadLines.
class Reader {
 public:
  Reader(const TailRequest& request, absl::FunctionRef<bool(std::string_view)> on_line)
      : request_(request), on_line_(on_line) {
    result_.cursor = request.cursor;
  }

  StatusOr<TailResult> Run() {
    v1::FileCursor& cursor = result_.cursor;
    ASSIGN_OR_RETURN(std::optional<TailedFile> file, OpenForTail(request_.root, cursor.path()));
    if (file && request_.copies && !request_.ended && !request_.rewritten) {
      ASSIGN_OR_RETURN(const bool refilled, IsBeingResent(*file, cursor));
      if (refilled) return std::move(result_);
    }
    ASSIGN_OR_RETURN(const bool moved, HasMoved(file));
    if (moved) {
      ASSIGN_OR_RETURN(const std::optional<TailedFile> renamed, FindRenamed(request_));
      if (renamed) RETURN_IF_ERROR(ReadOn(*renamed, file.has_value() || request_.ended));
    }
    if (!file || result_.more) return std::move(result_);
    ASSIGN_OR_RETURN(const bool continued, IsContinued(*file, cursor, request_.copies));
    if (!continued) StartAgain(*file);
    RETURN_IF_ERROR(ReadOn(*file, request_.ended));
    return std::move(result_);
  }

 private:
  // Whether what was read may lie under another name by now. A copy that is not what was read is
  // another file only if something was: all that begins is alike.
  StatusOr<bool> HasMoved(const std::optional<TailedFile>& file) const {
    const v1::FileCursor& cursor = result_.cursor;
    if (cursor.inode() == 0) return false;
    if (!request_.copies) return !file || cursor.inode() != file->inode;
    if (!file || cursor.head().empty()) return !cursor.head().empty();
    ASSIGN_OR_RETURN(const bool continued, IsContinued(*file, cursor, /*copies=*/true));
    return !continued;
  }

  void StartAgain(const TailedFile& file) {
    const std::string path = result_.cursor.path();
    result_.cursor = {};
    result_.cursor.set_path(path);
    result_.cursor.set_inode(file.inode);
  }

  // Takes lines up to the end of the file or a limit. With `ended`, a last one without end too.
  Status ReadOn(const TailedFile& file, bool ended) {
    v1::FileCursor& cursor = result_.cursor;
    if (file.size == cursor.offset()) return absl::OkStatus();
    if (!request_.rewritten && SkipHole(file)) {
      result_.more = cursor.offset() < file.size;
      ASSIGN_OR_RETURN(*cursor.mutable_head(), Edges(file, cursor));
      return absl::OkStatus();
    }
    const uint64_t left = static_cast<uint64_t>(request_.max_bytes - result_.bytes);
    const uint64_t begin = cursor.offset();
    const uint64_t available = file.size - begin;
    ASSIGN_OR_RETURN(const std::string data,
                     ReadAt(file, begin, std::min(left, available), cursor.path()));
    if (request_.rewritten && !ended) {
      ASSIGN_OR_RETURN(const bool settled, IsSettled(file, begin, data));
      if (!settled) return absl::OkStatus();
    }
    cursor.set_offset(begin + HandleLines(data, ended && available <= left));
    result_.bytes += static_cast<int64_t>(cursor.offset() - begin);
    result_.more = stopped_ || available > left;
    if (cursor.offset() == begin) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::string edges, Edges(file, cursor));
    if (request_.rewritten && !EndsAlike(edges, data.substr(0, cursor.offset() - begin))) {
      edges = "rewritten while it was read";  // which no file's edges are: read it again
    }
    cursor.set_head(std::move(edges));
    return absl::OkStatus();
  }

  // What was never written is no line, and reading a terabyte of it would take hours: it counts as
  // one that is too long. False if there is no such hole at the cursor.
  bool SkipHole(const TailedFile& file) {
    v1::FileCursor& cursor = result_.cursor;
    const off_t data = lseek(file.fd.get(), static_cast<off_t>(cursor.offset()), SEEK_DATA);
    uint64_t end = cursor.offset();
    if (data >= 0) end = std::min(static_cast<uint64_t>(data), file.size);
    if (data < 0 && errno == ENXIO) end = file.size;
    if (end <= cursor.offset() + static_cast<uint64_t>(kMaxLineBytes)) return false;
    if (!cursor.skipping()) ++result_.long_lines;
    cursor.set_skipping(true);
    cursor.set_offset(end);
    return true;
  }

  static bool EndsAlike(std::string_view a, std::string_view b) {
    const size_t bytes = std::min({a.size() / 2, b.size(), size_t{32}});
    return a.substr(a.size() - bytes) == b.substr(b.size() - bytes);
  }

  // Whether `data` is what the file holds, from a line's beginning on: not half of what its writer
  // has just replaced and half of what it put there.
  StatusOr<bool> IsSettled(const TailedFile& file, uint64_t begin, const std::string& data) {
    ASSIGN_OR_RETURN(const std::string again,
                     ReadAt(file, begin, data.size(), result_.cursor.path()));
    if (again != data) return false;
    return IsContinued(file, result_.cursor, request_.copies);
  }

  // How many bytes of `data` are done with.
  size_t HandleLines(std::string_view data, bool last_counts) {
    size_t at = 0;
    while (at < data.size() && !stopped_) {
      const size_t length = LineEnd(data, at) - at;
      const bool whole = at + length < data.size();
      if (!whole && !last_counts && !TooLong(length)) return at;
      HandleLine(data.substr(at, length));
      at += length + whole;
      result_.cursor.set_skipping(!whole && !last_counts);
    }
    return at;
  }

  void HandleLine(std::string_view line) {
    if (result_.cursor.skipping()) return;  // the rest of a line that was counted before
    if (TooLong(line.size())) {
      ++result_.long_lines;
    } else {
      stopped_ = !on_line_(line);
    }
  }

  bool TooLong(size_t length) const {
    return result_.cursor.skipping() || length > static_cast<size_t>(kMaxLineBytes);
  }

  // The newline is searched for once, however many carriage returns come before it.
  size_t LineEnd(std::string_view data, size_t at) {
    if (at == 0 || at > newline_) newline_ = std::min(data.find('\n', at), data.size());
    if (!request_.return_ends_line) return newline_;
    return std::min(data.substr(0, newline_).find('\r', at), newline_);
  }

  const TailRequest& request_;
  const absl::FunctionRef<bool(std::string_view)> on_line_;
  TailResult result_;
  size_t newline_ = 0;  // the next one in the data at hand
  bool stopped_ = false;
};

}  // namespace

StatusOr<TailResult> ReadLines(const TailRequest& request,
                               absl::FunctionRef<bool(std::string_view)> on_line) {
  return Reader(request, on_line).Run();
}

v1::FileCursor EndOfFile(const std::string& path, const std::string& root) {
  v1::FileCursor cursor;
  cursor.set_path(path);
  const auto file = OpenForTail(root, path);
  if (!file.ok() || !*file) return cursor;
  cursor.set_inode((*file)->inode);
  cursor.set_offset((*file)->size);
  auto edges = Edges(**file, cursor);
  if (edges.ok()) cursor.set_head(*std::move(edges));
  return cursor;
}

int64_t CountLines(const std::string& path, int64_t max_bytes) {
  const auto file = OpenForTail("", path);
  if (!file.ok() || !*file) return -1;
  int64_t lines = 0;
  bool open_line = false;
  for (int64_t at = 0; at < max_bytes;) {
    const auto data = ReadAt(**file, static_cast<uint64_t>(at), 1 << 18, path);
    if (!data.ok() || data->empty()) break;
    lines += std::count(data->begin(), data->end(), '\n');
    open_line = data->back() != '\n';
    at += static_cast<int64_t>(data->size());
  }
  return lines + open_line;
}

}  // namespace shirabe::metrics
