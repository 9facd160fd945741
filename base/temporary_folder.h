// A folder of this process, among the machine's temporary files. Its owner's thread.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/open_beneath.h"
#include "base/status.h"

namespace shirabe {

// Goes with its owner, and all that lies in it. What cannot be removed is logged and stays.
class TemporaryFolder {
 public:
  // In $TMPDIR, or in /tmp: PREFIX-XXXXXX. The errors of files.
  static StatusOr<std::unique_ptr<TemporaryFolder>> Create(const std::string& prefix) {
    std::error_code error;
    std::string path = std::filesystem::temp_directory_path(error).string();
    if (error) path = "/tmp";
    path += "/" + prefix + "-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return ErrnoStatus("cannot create " + path, errno);
    return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path));  // private
  }
  ~TemporaryFolder() {
    const Status removed = RemoveAll(path_);
    if (removed.ok()) return;
    Log(LogLevel::kWarning, "failed to remove a temporary folder", {{"error", Message(removed)}});
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace shirabe
