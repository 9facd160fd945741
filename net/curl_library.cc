#include "net/curl_library.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/dynamic_library.h"
#include "base/mutex.h"

namespace shirabe::net {
namespace {

constexpr char kCurlFile[] = "libcurl.so.4";
// 7.88 sends everything without a SIGPIPE, TLS as well.
constexpr unsigned kMinCurlVersion = 0x075800;

Status MissingCurl(const std::string& why) {
  return absl::UnimplementedError(
      absl::StrCat("requests over HTTP need libcurl 7.88 or later, ", "which cannot be loaded (",
                   why, "): install it (on Debian: apt-get install ", "libcurl4)"));
}

}  // namespace

StatusOr<CurlLibrary> LoadCurlLibraryFrom(const char* file) {
  const auto library = OpenLibrary(file);
  if (!library.ok()) return MissingCurl(Message(library.status()));
  CurlLibrary curl;
  Status found;
#define SHIRABE_CURL_FIND(name) \
  if (found.ok()) found = FindFunction(*library, #name, &curl.name);
  SHIRABE_CURL_FUNCTIONS(SHIRABE_CURL_FIND)
#undef SHIRABE_CURL_FIND
  if (!found.ok()) return MissingCurl(Message(found));
  const curl_version_info_data* version = curl.curl_version_info(CURLVERSION_NOW);
  if (version->version_num < kMinCurlVersion) {
    return MissingCurl(absl::StrCat("this is ", version->version));
  }
  const CURLcode error = curl.curl_global_init(CURL_GLOBAL_DEFAULT);
  if (error != CURLE_OK) return MissingCurl(curl.curl_easy_strerror(error));
  return curl;
}

StatusOr<const CurlLibrary*> LoadCurlLibrary() {
  static Mutex mutex;
  static std::optional<CurlLibrary> loaded ABSL_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (!loaded) {
    ASSIGN_OR_RETURN(loaded, LoadCurlLibraryFrom(kCurlFile));
  }
  return &*loaded;
}

}  // namespace shirabe::net
