#include "sidecar/file_uploader.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/open_beneath.h"
#include "metrics/describe_source.h"
#include "proto/shirabe/v1/collector_traits.h"

namespace shirabe::sidecar {
namespace {

constexpr int64_t kEdgeBytes = 64;
constexpr size_t kMaxNameBytes = 1000;  // the server takes no longer ones

// Where the collector's file or folder lies here: the paths that a specification may name by their
// variables are the pod's.
std::string CollectedPath(const Pod& pod) {
  const std::string path =
      absl::StrReplaceAll(pod.config.collector().source().file_system_path().path(),
                          {{"$(SHIRABE_OUTPUT_DIR)", pod.paths.output_dir},
                           {"$(SHIRABE_CHECKPOINT_DIR)", pod.paths.checkpoint_dir},
                           {"$(SHIRABE_METRICS_FILE)", pod.paths.metrics_file}});
  if (path.empty()) return "";
  return (std::filesystem::path(pod.config.working_dir()) / path).lexically_normal().string();
}

// Changes whenever the file is written.
std::string VersionOf(const struct stat& info) {
  return absl::StrCat(info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec, " ",
                      info.st_mtim.tv_nsec);
}

}  // namespace

FileUploader::FileUploader(const Pod* pod) : pod_(pod) {
  if (!v1::ReadsPath(v1::TraitsOf(pod_->config.collector()))) return;
  collected_.path = CollectedPath(*pod_);
  if (collected_.path.empty() || collected_.path == pod_->paths.metrics_file) return;
  auto collector = metrics::CreateCollector(pod_->config.collector());
  if (collected_.path.front() != '/') {
    path_error_ = absl::StrCat("the collector's path \"", collected_.path,
                               "\" is relative and the container has no workingDir: give either");
  } else if (!collector.ok()) {
    path_error_ = Message(collector.status());
  } else {
    collector_ = *std::move(collector);
  }
}

void FileUploader::Watch(const std::string& name, const std::string& path, bool rewritten) {
  File& file = files_[name];
  file.path = path;
  file.rewritten = rewritten;
}

// What the collector reads besides the contract's own files.
void FileUploader::WatchCollected() {
  if (collector_ == nullptr) return;
  for (const std::string& path : collector_->Files(collected_)) {
    if (path.size() <= kMaxNameBytes) Watch("files" + path, path, /*rewritten=*/false);
  }
}

// A program may lead the path of its collector's file to the volume of the sidecar's token, and
// what is sent is shown to users who may look at the trial. That volume is a file system of its
// own.
bool FileUploader::IsSecret(const struct stat& info) const {
  struct stat token, run;
  const std::string& path = pod_->config.token_path();
  if (path.empty() || stat(path.c_str(), &token) != 0) return false;
  if (stat(pod_->paths.dir.c_str(), &run) != 0 || run.st_dev == token.st_dev) return false;
  return info.st_dev == token.st_dev;
}

bool FileUploader::Open(File& file) {
  // Of the program's own paths the folder is the author's word; of ours nothing is the program's.
  const bool ours = absl::StartsWith(file.path, pod_->root + "/");
  auto fd = OpenBeneath(ours ? pod_->root : "", file.path);
  struct stat info;
  if (!fd.ok() || fstat(fd->get(), &info) != 0 || IsSecret(info)) return false;
  file.fd = *std::move(fd);
  file.inode = info.st_ino;
  file.moved = false;
  return true;
}

// Whether the bytes that were sent last are not there any more.
bool FileUploader::WasRewritten(const File& file) const {
  if (file.size < file.have) return true;
  const auto bytes = static_cast<int64_t>(file.edge.size());
  const auto there = ReadFileRange(file.fd.get(), file.have - bytes, bytes, file.path);
  return there.ok() && *there != file.edge;
}

void FileUploader::ScanFile(const std::string& name, File& file) {
  struct stat there, open_one;
  if (!file.fd.valid() && !Open(file)) {
    if (lstat(file.path.c_str(), &there) == 0) {
      last_error_ = absl::StrCat(name, ": ", file.path, " cannot be read");
    }
    return;
  }
  const bool next = file.moved && file.have >= file.size;
  if (next && Open(file)) file.again = true;
  const bool shut = next && file.moved;
  if (shut) last_error_ = absl::StrCat(name, ": ", file.path, " cannot be read");
  if (fstat(file.fd.get(), &open_one) != 0) return;
  file.moved = !shut && lstat(file.path.c_str(), &there) == 0 && there.st_ino != file.inode;
  file.size = open_one.st_size;
  if (!file.rewritten) {
    if (file.have != std::numeric_limits<int64_t>::max() && WasRewritten(file)) file.again = true;
    return;
  }
  if (file.moved && Open(file)) fstat(file.fd.get(), &open_one);
  file.size = open_one.st_size;
  file.version = VersionOf(open_one);
  if (file.version != file.sent) file.again = true;
}

bool FileUploader::HasPending(const File& file) {
  return file.fd.valid() && (file.again || file.moved || file.have < file.size);
}

bool FileUploader::Scan() {
  last_error_ = path_error_;
  truncated_ = false;
  Watch("log", pod_->paths.log, false);
  Watch("metrics.jsonl", pod_->paths.metrics_file, false);
  Watch("hypertune.jsonl", pod_->paths.hypertune_file, true);
  Watch("scrapes.jsonl", pod_->paths.scrapes_file, false);
  WatchCollected();
  for (auto& [name, file] : files_) ScanFile(name, file);
  return std::any_of(files_.begin(), files_.end(),
                     [](const auto& entry) { return HasPending(entry.second); });
}

// Returns how much data the piece has. Of a file that has become shorter since it was looked at, or
// that cannot be read now, no more is sent before it has been looked at again.
int64_t FileUploader::Cut(const std::string& name, File& file, int64_t bytes,
                          v1::SyncRequest& request) {
  const int64_t offset = file.again ? 0 : file.have;
  const int64_t wanted = std::min(bytes, file.size - offset);
  auto read = ReadFileRange(file.fd.get(), offset, wanted, file.path);
  if (!read.ok()) last_error_ = absl::StrCat(name, ": ", Message(read.status()));
  std::string data = std::move(read).value_or("");
  if (static_cast<int64_t>(data.size()) < wanted) {
    truncated_ = true;
    file.size = offset + static_cast<int64_t>(data.size());
    if (data.empty()) {
      file.again = false;
      return 0;
    }
  }
  v1::FilePiece& piece = *request.add_files();
  piece.set_name(name);
  piece.set_offset(offset);
  piece.set_size(file.size);
  file.pending = file.version;
  const auto size = static_cast<int64_t>(data.size());
  piece.set_data(std::move(data));
  return size;
}

bool FileUploader::FillRequest(int64_t bytes, v1::SyncRequest& request) {
  bool all = true;
  // The names' order puts the log before the metrics: those are small, and go first.
  for (const bool log : {false, true}) {
    for (auto& [name, file] : files_) {
      if ((name == "log") != log || !HasPending(file)) continue;
      if (!file.again && file.have >= file.size) {  // only to be looked at again
        all = false;
        continue;
      }
      if (bytes > 0) bytes -= Cut(name, file, bytes, request);
      const v1::FilePiece* last =
          request.files_size() > 0 ? &request.files(request.files_size() - 1) : nullptr;
      const bool whole = last != nullptr && last->name() == name && !file.moved &&
                         last->offset() + static_cast<int64_t>(last->data().size()) >= file.size;
      all = all && whole;
    }
  }
  return all && !truncated_;
}

void FileUploader::Acknowledge(const v1::SyncReply& reply, const v1::SyncRequest& request) {
  std::map<std::string, int64_t> have;
  for (const v1::FileHave& one : reply.files()) have[one.name()] = one.size();
  for (const v1::FilePiece& piece : request.files()) {
    File& file = files_[piece.name()];
    if (piece.offset() > 0) continue;
    file.again = false;
    file.sent = file.pending;
  }
  for (auto& [name, file] : files_) {
    const int64_t now = have.count(name) > 0 ? have[name] : 0;
    if (now != file.have) file.edge.clear();
    file.have = now;
  }
  for (const v1::FilePiece& piece : request.files()) {
    File& file = files_[piece.name()];
    const auto size = static_cast<int64_t>(piece.data().size());
    if (piece.offset() + size != file.have) continue;
    file.edge = piece.data().substr(static_cast<size_t>(size - std::min(size, kEdgeBytes)));
  }
}

void FileUploader::MarkSent(const v1::SyncRequest& request) {
  v1::SyncReply reply;
  for (const auto& [name, file] : files_) {
    v1::FileHave& have = *reply.add_files();
    have.set_name(name);
    have.set_size(file.have);
    for (const v1::FilePiece& piece : request.files()) {
      if (piece.name() != name) continue;
      have.set_size(piece.offset() + static_cast<int64_t>(piece.data().size()));
    }
  }
  Acknowledge(reply, request);
}

}  // namespace shirabe::sidecar
