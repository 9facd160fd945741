#include "net/url.h"

#include <algorithm>
#include <memory>

#include "net/curl_library.h"

namespace shirabe::net {
namespace {

class UrlParts {
 public:
  explicit UrlParts(const CurlLibrary& curl) : curl_(curl), url_(curl.curl_url()) {
    CHECK(url_ != nullptr);
  }
  ~UrlParts() { curl_.curl_url_cleanup(url_); }
  UrlParts(const UrlParts&) = delete;
  UrlParts& operator=(const UrlParts&) = delete;

  CURLUcode Parse(const std::string& text) {
    return curl_.curl_url_set(url_, CURLUPART_URL, text.c_str(), 0);
  }
  // "" if there is none.
  std::string Get(CURLUPart part) const {
    char* value = nullptr;
    if (curl_.curl_url_get(url_, part, &value, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
    std::string text = value;
    curl_.curl_free(value);
    return text;
  }
  bool Has(CURLUPart part) const { return !Get(part).empty(); }

 private:
  const CurlLibrary& curl_;
  CURLU* const url_;
};

// libcurl lets an empty port pass, and slashes before the host, as browsers do.
bool IsLenient(const std::string& text) {
  const size_t begin = text.find("://") + 3;
  const size_t end = std::min(text.find('/', begin), text.size());
  return end == begin || text[end - 1] == ':';
}

}  // namespace

StatusOr<Url> ParseUrl(const std::string& text) {
  ASSIGN_OR_RETURN(const CurlLibrary* curl, LoadCurlLibrary());
  const bool plain =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!plain) return absl::InvalidArgumentError("has a character that no address has");
  Url url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) {
    return absl::InvalidArgumentError("is not an address of HTTP");
  }
  UrlParts parts(*curl);
  const CURLUcode error = parts.Parse(text);
  if (error != CURLUE_OK) return absl::InvalidArgumentError(curl->curl_url_strerror(error));
  if (parts.Has(CURLUPART_USER) || parts.Has(CURLUPART_PASSWORD)) {
    return absl::InvalidArgumentError("holds a user name or a password");
  }
  if (parts.Has(CURLUPART_QUERY) || parts.Has(CURLUPART_FRAGMENT)) {
    return absl::InvalidArgumentError("has a query or a fragment");
  }
  if (IsLenient(text)) return absl::InvalidArgumentError("is not HOST or HOST:PORT");
  url.host = parts.Get(CURLUPART_HOST);
  if (url.host.starts_with('[')) url.host = url.host.substr(1, url.host.size() - 2);
  url.port = parts.Get(CURLUPART_PORT);
  url.path = parts.Get(CURLUPART_PATH);
  return url;
}

}  // namespace shirabe::net
