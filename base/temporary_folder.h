// A folder of this process, among the machine's temporary files. Its owner's thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"

namespace shirabe {

// Goes with its owner, and all that lies in it. What cannot be removed is logged and stays.
class TemporaryFolder {
 public:
  // In $TMPDIR, or in /tmp: PREFIX-XXXXXX. The errors of files.
  static StatusOr<std::unique_ptr<TemporaryFolder>> Create(const std::string& prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace shirabe
