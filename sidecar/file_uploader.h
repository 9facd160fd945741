// What the program writes, on its way to the server: follows the files of an attempt and cuts the
// pieces that the server lacks. The server's word of how much it has is the only memory: after a
// restart of the sidecar, or of the server, sending goes on exactly there. Used by one thread.
//
// A file that was renamed away is sent to its end before the one that took its place; one that was
// truncated, or written again in place, is sent from its beginning, and replaces its copy.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/status.h"
#include "metrics/collector.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "sidecar/pod_config.h"

namespace shirabe::sidecar {

class FileUploader {
 public:
  explicit FileUploader(const Pod* pod);

  // Looks at the files as they are now. True if there is something to send.
  bool Scan();

  // Adds the pieces that come next, at most `bytes` of data; true if those are all that the last
  // Scan has seen. The same pieces until Acknowledge.
  bool FillRequest(int64_t bytes, v1::SyncRequest& request);

  // The server's answer to a request that FillRequest has filled.
  void Acknowledge(const v1::SyncReply& reply, const v1::SyncRequest& request);

  // What FillRequest has filled counts as taken: it was printed, in the final sync.
  void MarkSent(const v1::SyncRequest& request);

  // Why something is not sent, in words; "" if all is.
  const std::string& last_error() const { return last_error_; }

 private:
  struct File {
    std::string path;
    bool rewritten = false;  // with each report, as the library hypertune does
    Fd fd;
    uint64_t inode = 0;
    int64_t size = 0;     // as last seen
    int64_t have = 0;     // the server's
    std::string edge;     // the bytes before `have`, where we have sent them
    std::string version;  // of one that is rewritten: as last seen,
    std::string sent;     // and as last sent whole
    std::string pending;  // and in the request under way
    bool again = false;   // from its beginning
    bool moved = false;   // another file stands under its name
  };

  void Watch(const std::string& name, const std::string& path, bool rewritten);
  void WatchCollected();
  void ScanFile(const std::string& name, File& file);
  bool Open(File& file);
  bool IsSecret(const struct stat& info) const;
  bool WasRewritten(const File& file) const;
  static bool HasPending(const File& file);
  int64_t Cut(const std::string& name, File& file, int64_t bytes, v1::SyncRequest& request);

  const Pod* const pod_;
  std::unique_ptr<metrics::Collector> collector_;  // null = it reads none of the program's paths
  metrics::AttemptFiles collected_;                // where they lie
  std::map<std::string, File> files_;
  bool truncated_ = false;  // since the last Scan
  std::string path_error_;  // why the collector reads nothing
  std::string last_error_;
};

}  // namespace shirabe::sidecar
