#include "cmd/verbs/files/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "artifacts/retries.h"
#include "base/file_io.h"
#include "base/sha256.h"
#include "client/trial_files.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/checkpoint/checkpoint_manifest.h"

namespace shirabe::cmd {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr int kFileTries = 3;  // of one that changes, or comes damaged

// What a file has here already.
struct Part {
  Fd fd;
  int64_t bytes = 0;
  Sha256 hash;
};

class Downloader {
 public:
  Downloader(client::Client& client, const v1::FilesRequest& request, std::string folder)
      : client_(client), folder_(std::move(folder)) {
    *next_.mutable_files() = request;
  }

  Status Run() {
    ASSIGN_OR_RETURN(const std::vector<v1::FileInfo> files, List());
    for (const v1::FileInfo& file : files) RETURN_IF_ERROR(Prefix(file.path(), Fetch(file)));
    return RemoveOthers(files);
  }

 private:
  // What the server says is checked: its paths lead nowhere else.
  StatusOr<std::vector<v1::FileInfo>> List() {
    std::vector<v1::FileInfo> files;
    RETURN_IF_ERROR(Persist([&]() -> Status {
      ASSIGN_OR_RETURN(files, client_.List<v1::FileInfo>("ListFiles", next_.files()));
      return absl::OkStatus();
    }));
    for (size_t i = 0; i < files.size(); ++i) {
      RETURN_IF_ERROR(Prefix("the server lists", trial::ValidatePath(files[i].path())));
      const bool ascends = i == 0 || files[i - 1].path() < files[i].path();
      if (ascends && files[i].bytes() >= 0) continue;
      return absl::DataLossError("the server lists " + files[i].path() + " twice, or in disorder");
    }
    return files;
  }

  Status Fetch(const v1::FileInfo& file) {
    Status status;
    for (int tries = 0; tries < kFileTries; ++tries) {
      status = FetchOnce(file, /*from_start=*/tries > 0);
      if (!absl::IsAborted(status) && !absl::IsDataLoss(status)) break;
    }
    return status;
  }

  Status FetchOnce(const v1::FileInfo& file, bool from_start) {
    ASSIGN_OR_RETURN(Part part, OpenPart(file, from_start));
    next_.set_path(file.path());
    next_.set_version(file.sha256());
    int64_t size = file.bytes();
    while (part.bytes < size) {
      ASSIGN_OR_RETURN(const v1::FileChunk piece, Piece(part.bytes));
      if (piece.data().empty()) return absl::DataLossError("it ends too early");
      RETURN_IF_ERROR(WriteAll(part.fd.get(), piece.data(), file.path()));
      part.hash.Add(piece.data());
      part.bytes += std::ssize(piece.data());
      next_.set_version(piece.version());
      size = piece.size();
    }
    if (!file.sha256().empty() && (part.bytes != file.bytes() || part.hash.Hex() != file.sha256()))
      return absl::DataLossError("what has come is not what was saved: its SHA-256 is another");
    return trial::SyncFd(part.fd.get(), file.path());
  }

  StatusOr<v1::FileChunk> Piece(int64_t offset) {
    next_.set_offset(offset);
    next_.set_max_bytes(client::kMaxFilePiece);
    v1::FileChunk piece;
    RETURN_IF_ERROR(Persist([&]() -> Status {
      ASSIGN_OR_RETURN(piece, client_.Get<v1::FileChunk>("ReadFile", next_));
      return absl::OkStatus();
    }));
    return piece;
  }

  // Opens a file, with what is there of it if that can be compared in the end.
  StatusOr<Part> OpenPart(const v1::FileInfo& file, bool from_start) const {
    const std::string path = absl::StrCat(folder_, "/", file.path());
    RETURN_IF_ERROR(MakeDirs(path.substr(0, path.rfind('/'))));
    Part part;
    part.fd = Fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!part.fd.valid()) return ErrnoStatus("cannot create " + path, errno);
    struct stat info;
    if (fstat(part.fd.get(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
    if (from_start || file.sha256().empty() || info.st_size > file.bytes()) {
      if (ftruncate(part.fd.get(), 0) != 0) return ErrnoStatus("cannot empty " + path, errno);
      return part;
    }
    std::string buffer(kReadBytes, '\0');
    for (;;) {
      const ssize_t got = read(part.fd.get(), buffer.data(), buffer.size());
      if (got < 0 && errno != EINTR) return ErrnoStatus("cannot read " + path, errno);
      if (got == 0) return part;
      if (got < 0) continue;
      part.hash.Add({buffer.data(), static_cast<size_t>(got)});
      part.bytes += got;
    }
  }

  // What an earlier call has fetched of something else.
  Status RemoveOthers(const std::vector<v1::FileInfo>& files) const {
    ASSIGN_OR_RETURN(const auto tree, trial::FileTree::Open(AT_FDCWD, folder_, folder_));
    ASSIGN_OR_RETURN(const auto found, tree.Files(trial::kMaxFiles));
    for (const std::string& path : found) {
      const auto listed = std::lower_bound(
          files.begin(), files.end(), path,
          [](const v1::FileInfo& file, const std::string& wanted) { return file.path() < wanted; });
      if (listed != files.end() && listed->path() == path) continue;
      const std::string whole = absl::StrCat(folder_, "/", path);
      if (unlink(whole.c_str()) != 0) return ErrnoStatus("cannot remove " + whole, errno);
    }
    return absl::OkStatus();
  }

  // A server that starts again, or has too much to do, is waited for.
  static Status Persist(const std::function<Status()>& call) {
    return artifacts::WithRetries({}, std::stop_token(), [&]() -> Status {
      const Status status = call();
      const bool later = absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
      return later ? absl::UnavailableError(Message(status)) : status;
    });
  }

  client::Client& client_;
  const std::string folder_;
  v1::ReadFileRequest next_;
};

}  // namespace

Status Download(client::Client& client, const v1::FilesRequest& request, const std::string& to) {
  const std::string partial = to + ".partial";
  if (mkdir(partial.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus("cannot make " + partial, errno);
  }
  RETURN_IF_ERROR(trial::FileTree::Open(AT_FDCWD, partial, partial).status());
  const Status status = Downloader(client, request, partial).Run();
  if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) rmdir(partial.c_str());
  if (!status.ok()) {
    const bool left = access(partial.c_str(), F_OK) == 0;
    return left ? Status(status.code(), absl::StrCat(Message(status), "; what has come is in ",
                                                     partial, ": the same command goes on with it"))
                : status;
  }
  if (rename(partial.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot rename " + partial + " to " + to, errno);
}

}  // namespace shirabe::cmd
