// The server's copies of what programs in pods write. A sidecar sends pieces of files (pod.proto);
// they are put where a local attempt has the files themselves (trial/file_layout.h), so that
// readers of those need not know the difference. What a program names by an absolute path of its
// own, as /out/events, is sent as files/out/events and kept under RootOf(attempt).
//
// Nothing is remembered: how much there is of a file is its size on disk, so that a restart of the
// server costs nothing, and a sidecar always goes on from what it is told. A copy only grows, by
// bytes that join what is there, until a piece at offset 0 brings another beginning: then the file
// was written again, and its copy is replaced as a whole.
//
// The sender has the token of one attempt and no more trust than that: names are checked, no
// symbolic link is followed, and neither size nor number of the copies grows beyond the limits.
// Used by the executor `kubernetes`; thread-safe, attempts do not wait for each other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/file_layout.h"

namespace shirabe::trial {

struct FileMirrorOptions {
  const FileLayout* layout = nullptr;  // of the server's own $SHIRABE_HOME; outlives the mirror
  int64_t max_bytes = 256 << 20;       // of an attempt's log, and again of its other copies
  // The log is shortened by its reader (trial/log_file.h): then max_bytes is what may be there
  // unread, and more is taken later; else a log that is longer ends there.
  bool trims = false;
  int max_files = 256;  // below RootOf, of an attempt
};

class FileMirror {
 public:
  explicit FileMirror(FileMirrorOptions options) : options_(options) {}

  struct ApplyResult {
    std::vector<v1::FileHave> have;  // for SyncReply.files
    std::string error;  // for people, the first time that something is not kept; else ""
  };
  // Takes the pieces that join what is there and says how much there is of each file then; of one
  // that is full, the greatest number that there is: no more of it need be sent. With
  // `durable`, all copies have reached the disk when it returns: for the request that is complete.
  // kInvalidArgument, and nothing was taken: a name that is none of ours. Other errors are the
  // disk's, or kResourceExhausted where what is there has to be read first: try again. `key` is
  // whose token it was, never what the request says.
  StatusOr<ApplyResult> Apply(const AttemptKey& key, const v1::SyncRequest& request, bool durable);

  // Puts `bytes` at the end of the attempt's log: of a pod without a sidecar, whose log is read
  // through the API.
  Status AppendLog(const AttemptKey& key, const std::string& bytes);

  // Below it lies what the program names by absolute paths; for AttemptPaths.root.
  static std::string RootOf(const AttemptPaths& paths) { return paths.dir + "/files"; }

  // Drops what is remembered to report an error only once. The copies stay.
  void Forget(const AttemptKey& key);

 private:
  Status ApplyPiece(const AttemptKey& key, const v1::FilePiece& piece, ApplyResult& taken);
  Mutex& LockOf(const AttemptKey& key);
  bool IsFull(const AttemptKey& key, const std::string& name, int64_t size);
  void Close(const AttemptKey& key, const std::string& name, const std::string& why,
             ApplyResult& taken);

  const FileMirrorOptions options_;
  std::array<Mutex, 16> locks_;  // an attempt's copies are guarded by one of them
  Mutex mutex_;
  std::map<AttemptKey, std::set<std::string>> full_ ABSL_GUARDED_BY(mutex_);  // copies: closed
};

}  // namespace shirabe::trial
