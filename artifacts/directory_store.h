// A directory of an administrator: an object is a file, and the names of its key are folders. For
// one machine, and for a file system that several share.
//
// Every folder and file is opened by name from the descriptor of the one above and never through a
// symbolic link, so that nothing outside the root is read or written, whatever others have put
// there. A file appears whole, on the disk, or not at all (base/file_io.h, NewFile).
#pragma once

#include <memory>
#include <string>

#include "artifacts/artifact_store.h"
#include "base/file_io.h"

namespace shirabe::artifacts {

class DirectoryStore : public ArtifactStore {
 public:
  static Status Validate(const v1::ArtifactStore& entry);
  static StatusOr<std::unique_ptr<ArtifactStore>> Open(const v1::ArtifactStore& entry);
  explicit DirectoryStore(std::string root) : root_(std::move(root)) {}

  Status Put(const std::string& key, const PutSource& source, std::stop_token stop) override;
  Status Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
             std::stop_token stop) override;
  StatusOr<ObjectInfo> Head(const std::string& key, std::stop_token stop) override;
  StatusOr<ObjectPage> List(const std::string& prefix, const std::string& after,
                            std::stop_token stop) override;
  Status Remove(const std::string& key, std::stop_token stop) override;
  StatusOr<PresignedUrl> Presign(const PresignedRequest& request, absl::Duration lifetime) override;

 private:
  StatusOr<Fd> OpenRoot() const;
  StatusOr<Fd> OpenFile(const std::string& key) const;
  Status PutOnce(const std::string& key, const PutSource& source,
                 const std::stop_token& stop) const;

  const std::string root_;
};

}  // namespace shirabe::artifacts
