#include "base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/open_beneath.h"

namespace shirabe {

StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Create(const std::string& prefix) {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error).string();
  if (error) path = "/tmp";
  path += "/" + prefix + "-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus("cannot create " + path, errno);
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path));  // private
}

TemporaryFolder::~TemporaryFolder() {
  const Status removed = RemoveAll(path_);
  if (removed.ok()) return;
  Log(LogLevel::kWarning, "failed to remove a temporary folder", {{"error", Message(removed)}});
}

}  // namespace shirabe
