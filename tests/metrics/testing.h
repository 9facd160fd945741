// Shared by the tests of metrics: readings as short text, and files in a folder of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/line_parser.h"

namespace shirabe::metrics {

// "loss=0.25 loss@3=1": metric, step where it has one, value; then " !" if the line is bad.
std::string Show(const LineParser& parser, const std::vector<std::string>& metrics,
                 std::string_view line);

// A folder that goes away with it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Truncates, then writes; keeps the inode of a file that is there.
void Write(const std::string& path, std::string_view contents);
void Append(const std::string& path, std::string_view contents);

}  // namespace shirabe::metrics
