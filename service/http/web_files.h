// The built files of the dashboard (web/), which the linker takes into the program: index.html and
// what it loads, whose names hold a hash of their content. Empty where the program was built
// without them; routes_page.cc then has a page of its own. Constant, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shirabe::service {

struct WebFile {
  std::string_view name;    // index.html, main-4QX2WQ7C.js
  std::string_view type;    // text/javascript; charset=utf-8
  std::string_view sha256;  // of `bytes`, in hex
  std::string_view bytes;
  std::string_view brotli;  // the same, compressed; empty where that is no shorter
};

// By web/embed.cmake, which writes the definition when the program is built.
const std::vector<WebFile>& WebFiles();
// Null if there is none of that name.
const WebFile* FindWebFile(std::string_view name);
// What `shirabe version` shows: the first digits of index.html's hash; "" without a dashboard.
std::string WebVersion();

}  // namespace shirabe::service
