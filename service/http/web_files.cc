#include "service/http/web_files.h"

#include <algorithm>

namespace shirabe::service {

const WebFile* FindWebFile(std::string_view name) {
  const std::vector<WebFile>& files = WebFiles();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const WebFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string WebVersion() {
  constexpr size_t kDigits = 12;
  const WebFile* index = FindWebFile("index.html");
  return index == nullptr ? "" : std::string(index->sha256.substr(0, kDigits));
}

}  // namespace shirabe::service
