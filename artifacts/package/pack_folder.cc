// From a folder to an archive: artifacts/package/code_package.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "artifacts/package/code_package.h"
#include "artifacts/package/gzip_stream.h"
#include "artifacts/package/tar_reader.h"
#include "base/file_io.h"
#include "base/printable.h"
#include "base/sha256.h"

namespace shirabe::artifacts {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kMaxPlainPath = 100;  // a header's own field
constexpr int64_t kMaxIgnoreBytes = 1 << 20;
constexpr size_t kReadBytes = 256 << 10;

struct Found {
  TarEntry::Kind kind = TarEntry::Kind::kFile;
  std::string target;
  int64_t bytes = 0;
  bool executable = false;
};
using Tree = std::map<std::string, Found>;  // by path: a folder comes before what is in it

// ---- what there is ------------------------------------------------------------------------------

class FolderWalk {
 public:
  FolderWalk(std::string root, std::vector<IgnorePattern> patterns, const PackageLimits& limits)
      : root_(std::move(root)), patterns_(std::move(patterns)), limits_(limits) {}

  Status Folder(const std::string& below) {
    std::error_code error;
    std::filesystem::directory_iterator entries(absl::StrCat(root_, "/", below), error);
    if (error) return ErrnoStatus("cannot list " + Shown(below), error.value());
    for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      RETURN_IF_ERROR(Entry(below.empty() ? name : absl::StrCat(below, "/", name)));
      if (error) break;
    }
    return error ? ErrnoStatus("cannot list " + Shown(below), error.value()) : absl::OkStatus();
  }

  Status Entry(const std::string& path) {
    struct stat info;
    const std::string whole = absl::StrCat(root_, "/", path);
    if (lstat(whole.c_str(), &info) != 0)
      return ErrnoStatus("cannot look at " + Shown(path), errno);
    const bool folder = S_ISDIR(info.st_mode);
    if (IsIgnored(patterns_, path, folder)) return absl::OkStatus();
    RETURN_IF_ERROR(PackedPath(path).status());
    Found found;
    if (folder) {
      found.kind = TarEntry::Kind::kFolder;
    } else if (S_ISLNK(info.st_mode)) {
      found.kind = TarEntry::Kind::kLink;
      ASSIGN_OR_RETURN(found.target, Target(path, whole));
    } else if (S_ISREG(info.st_mode)) {
      found.bytes = info.st_size;
      found.executable = (info.st_mode & S_IXUSR) != 0;
      bytes_ += found.bytes;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(Shown(path), " is no file, folder or link: name it in ", kIgnoreFile));
    }
    tree_[path] = std::move(found);
    RETURN_IF_ERROR(CheckLimits());
    return folder ? Folder(path) : absl::OkStatus();
  }

  Tree Release() { return std::move(tree_); }
  int64_t bytes() const { return bytes_; }

 private:
  std::string Shown(const std::string& below) const {
    return below.empty() ? root_ : absl::StrCat(root_, "/", Printable(below));
  }

  StatusOr<std::string> Target(const std::string& path, const std::string& whole) const {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(whole, error).string();
    if (error) return ErrnoStatus("cannot read link " + Shown(path), error.value());
    if (LinkStaysWithin(path, target)) return target;
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(path), " is a link to ", Printable(target),
                     ", which leads out of the folder: put what is there in its place, or name it "
                     "in ",
                     kIgnoreFile));
  }

  Status CheckLimits() const {
    if (static_cast<int64_t>(tree_.size()) > limits_.entries) {
      return absl::ResourceExhaustedError(
          absl::StrCat(root_, " has more than ", limits_.entries, " files and folders: name what ",
                       "the program does not need in ", kIgnoreFile));
    }
    if (bytes_ <= limits_.unpacked_bytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s has more than %d MiB: name what is no code in %s, and give data to "
                        "trials by a volume",
                        root_, limits_.unpacked_bytes >> 20, kIgnoreFile));
  }

  const std::string root_;
  const std::vector<IgnorePattern> patterns_;
  const PackageLimits& limits_;
  Tree tree_;
  int64_t bytes_ = 0;
};

// ---- the archive --------------------------------------------------------------------------------

// A header with nothing in it that differs between two machines.
std::string Header(const std::string& name, char type, int64_t bytes, bool executable) {
  std::string header(kBlockBytes, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, name.substr(0, kMaxPlainPath));
  put(100, type == '5' || executable ? "0000755" : "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, absl::StrFormat("%011o", bytes));
  put(136, "00000000000");
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(329, "0000000");
  put(337, "0000000");
  return header;
}

std::string Sealed(std::string header) {
  int64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  const std::string digits = absl::StrFormat("%06o", sum) + std::string("\0 ", 2);
  std::copy(digits.begin(), digits.end(), header.begin() + 148);
  return header;
}

// "LENGTH KEY=VALUE\n"; the length counts its own digits.
std::string Record(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (length != rest + absl::StrCat(length).size()) length = rest + absl::StrCat(length).size();
  return absl::StrCat(length, " ", key, "=", value, "\n");
}

std::string Padding(int64_t bytes) {
  return std::string((kBlockBytes - static_cast<size_t>(bytes) % kBlockBytes) % kBlockBytes, '\0');
}

// All headers of an entry.
std::string Headers(const std::string& path, const Found& found) {
  std::string records;
  const bool link = found.kind == TarEntry::Kind::kLink;
  if (path.size() > kMaxPlainPath) records += Record("path", path);
  if (link && found.target.size() > kMaxPlainPath) records += Record("linkpath", found.target);
  std::string text;
  if (!records.empty()) {
    const auto bytes = static_cast<int64_t>(records.size());
    text = Sealed(Header("pax", 'x', bytes, false)) + records + Padding(bytes);
  }
  const char type = link ? '2' : found.kind == TarEntry::Kind::kFolder ? '5' : '0';
  std::string header = Header(path, type, found.bytes, found.executable);
  if (link) {
    const std::string shown = found.target.substr(0, kMaxPlainPath);
    std::copy(shown.begin(), shown.end(), header.begin() + 157);
  }
  return text + Sealed(std::move(header));
}

Status AddFile(const std::string& whole, const Found& found, Gzip& gzip) {
  const Fd fd(open(whole.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open " + Printable(whole), errno);
  std::string buffer(kReadBytes, '\0');
  int64_t done = 0;
  for (;;) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read " + Printable(whole), errno);
    done += n;
    if (n == 0 || done > found.bytes) break;
    RETURN_IF_ERROR(gzip.Add(std::string_view(buffer.data(), static_cast<size_t>(n))));
  }
  if (done == found.bytes) return gzip.Add(Padding(done));
  return absl::InvalidArgumentError(Printable(whole) +
                                    " has changed while it was packed: try again");
}

StatusOr<std::vector<IgnorePattern>> PatternsOf(const std::string& folder) {
  const auto text = ReadFile(absl::StrCat(folder, "/", kIgnoreFile), kMaxIgnoreBytes);
  if (absl::IsNotFound(text.status())) return std::vector<IgnorePattern>();
  RETURN_IF_ERROR(text.status());
  return ReadIgnoreFile(*text);
}

}  // namespace

StatusOr<Packed> PackFolder(const FolderToPack& what, int fd, const PackageLimits& limits) {
  const std::string& folder = what.path;
  ASSIGN_OR_RETURN(auto patterns, PatternsOf(folder));
  FolderWalk walk(folder, std::move(patterns), limits);
  RETURN_IF_ERROR(what.only.empty() ? walk.Folder("") : walk.Entry(what.only));
  Packed packed;
  packed.unpacked_bytes = walk.bytes();
  Sha256 hash;
  Gzip gzip([&](std::string_view bytes) -> Status {
    hash.Add(bytes);
    packed.bytes += static_cast<int64_t>(bytes.size());
    if (packed.bytes <= limits.packed_bytes) return WriteAll(fd, bytes, "the package");
    return absl::ResourceExhaustedError(
        absl::StrFormat("the package of %s is larger than %d MiB: name what is no code in %s",
                        folder, limits.packed_bytes >> 20, kIgnoreFile));
  });
  for (const auto& [path, found] : walk.Release()) {
    RETURN_IF_ERROR(gzip.Add(Headers(path, found)));
    if (found.kind != TarEntry::Kind::kFile) continue;
    ++packed.files;
    RETURN_IF_ERROR(AddFile(absl::StrCat(folder, "/", path), found, gzip));
  }
  if (packed.files == 0) {
    return absl::InvalidArgumentError(folder +
                                      " has no file to pack: name the folder of a program");
  }
  RETURN_IF_ERROR(gzip.Add(std::string(2 * kBlockBytes, '\0')));
  RETURN_IF_ERROR(gzip.Finish());
  packed.sha256 = hash.Hex();
  return packed;
}

}  // namespace shirabe::artifacts
