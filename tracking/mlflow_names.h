// Keys of metrics and parameters as MLflow's file store has them: each is the path of a file, so
// that a name must be one that MLflow accepts, must not leave its folder, and must not be a folder
// of another. Names that are fit stay as they are; of others each byte that is not is written as
// ":" and two hexadecimal digits. Different names have different keys. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace shirabe::tracking {

class MlflowKeys {
 public:
  explicit MlflowKeys(const std::vector<std::string>& names);

  // Of any name. Of those that were not given, a "/" becomes no folder.
  std::string KeyOf(const std::string& name) const;

 private:
  std::set<std::string> folders_;  // names with a "/" that stay as they are
};

}  // namespace shirabe::tracking
