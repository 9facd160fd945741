#include "artifacts/s3_request.h"

#include <openssl/evp.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "artifacts/artifact_store.h"

namespace shirabe::artifacts {
namespace {

constexpr int kMaxKeysOfPage = 1000;
constexpr int kMaxPart = 10'000;  // of S3

std::string ValueOf(const NamedValues& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == values.end() ? "" : found->second;
}

bool Has(const NamedValues& values, std::string_view name) {
  return std::any_of(values.begin(), values.end(),
                     [&](const auto& entry) { return entry.first == name; });
}

// The one digest that S3, Google's storage and their likes all check. It finds what was damaged on
// the way; that it is no proof against forgers does not matter where the bearer chooses the bytes.
// "" where this machine's OpenSSL offers no MD5.
std::string Md5(const std::string& body) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned bytes = 0;
  if (EVP_Digest(body.data(), body.size(), digest.data(), &bytes, EVP_md5(), nullptr) != 1) {
    return "";
  }
  return absl::Base64Escape({reinterpret_cast<const char*>(digest.data()), bytes});
}

Status CheckBody(const PresignedRequest& presigned) {
  static const RE2 md5("[A-Za-z0-9+/]{22}==");
  if (presigned.bytes < 0) return absl::InvalidArgumentError("nothing has fewer than no bytes");
  if (presigned.md5.empty() || RE2::FullMatch(presigned.md5, md5)) return absl::OkStatus();
  return absl::InvalidArgumentError("an MD5 is 16 bytes in base64");
}

Status CheckUpload(const PresignedRequest& presigned) {
  static const RE2 upload("[!-~]{1,1000}");
  if (RE2::FullMatch(presigned.upload, upload)) return absl::OkStatus();
  return absl::InvalidArgumentError("parts are of an upload that has a name");
}

NamedValues HeadersOfBody(const PresignedRequest& presigned) {
  NamedValues headers = {{"content-length", absl::StrCat(presigned.bytes)}};
  if (!presigned.md5.empty()) headers.emplace_back("content-md5", presigned.md5);
  return headers;
}

}  // namespace

S3Request ListRequest(const std::string& prefix, const std::string& after) {
  S3Request request{
      .method = "GET",
      .query = {
          {"list-type", "2"}, {"max-keys", absl::StrCat(kMaxKeysOfPage)}, {"prefix", prefix}}};
  if (!after.empty()) request.query.emplace_back("start-after", after);
  return request;
}

StatusOr<S3Request> RequestOf(const PresignedRequest& presigned) {
  if (presigned.action == v1::LIST_OBJECTS) return ListRequest(presigned.key, presigned.after);
  RETURN_IF_ERROR(ValidateObjectKey(presigned.key));
  RETURN_IF_ERROR(CheckBody(presigned));
  S3Request request{.key = presigned.key};
  switch (presigned.action) {
    case v1::READ_OBJECT: request.method = "GET"; return request;
    case v1::REMOVE_OBJECT: request.method = "DELETE"; return request;
    case v1::PUT_OBJECT:
      request.method = "PUT";
      request.headers = HeadersOfBody(presigned);
      return request;
    case v1::BEGIN_PARTS:
      request.method = "POST";
      request.query = {{"uploads", ""}};
      return request;
    default: break;
  }
  RETURN_IF_ERROR(CheckUpload(presigned));
  request.query = {{"uploadId", presigned.upload}};
  switch (presigned.action) {
    case v1::END_PARTS: request.method = "POST"; return request;
    case v1::DROP_PARTS: request.method = "DELETE"; return request;
    case v1::PUT_PART:
      if (presigned.part < 1 || presigned.part > kMaxPart) {
        return absl::InvalidArgumentError(absl::StrCat("parts are 1 to ", kMaxPart));
      }
      request.method = "PUT";
      request.query.emplace_back("partNumber", absl::StrCat(presigned.part));
      request.headers = HeadersOfBody(presigned);
      return request;
    default: return absl::InvalidArgumentError("no such request of a store");
  }
}

StatusOr<PresignedRequest> PermissionFor(const S3Request& request) {
  static const std::map<std::string, v1::StoreAction> kinds = {
      {"GET", v1::READ_OBJECT},          {"PUT", v1::PUT_OBJECT},
      {"DELETE", v1::REMOVE_OBJECT},     {"GET list", v1::LIST_OBJECTS},
      {"POST uploads", v1::BEGIN_PARTS}, {"PUT part", v1::PUT_PART},
      {"POST upload", v1::END_PARTS},    {"DELETE upload", v1::DROP_PARTS}};
  const char* kind = "";
  if (Has(request.query, "uploadId")) kind = " upload";
  if (Has(request.query, "partNumber")) kind = " part";
  if (Has(request.query, "uploads")) kind = " uploads";
  if (Has(request.query, "list-type")) kind = " list";
  const auto found = kinds.find(request.method + kind);
  if (found == kinds.end()) return absl::InvalidArgumentError("no such request of a store");
  PresignedRequest presigned{.action = found->second,
                             .key = request.key,
                             .after = ValueOf(request.query, "start-after"),
                             .upload = ValueOf(request.query, "uploadId")};
  if (presigned.action == v1::LIST_OBJECTS) presigned.key = ValueOf(request.query, "prefix");
  if (presigned.action == v1::PUT_PART &&
      !absl::SimpleAtoi(ValueOf(request.query, "partNumber"), &presigned.part)) {
    return absl::InvalidArgumentError("a part has no number");
  }
  if (presigned.action == v1::PUT_OBJECT || presigned.action == v1::PUT_PART) {
    presigned.bytes = static_cast<int64_t>(request.body.size());
    presigned.md5 = Md5(request.body);
  }
  return presigned;
}

StatusOr<net::HttpCall> CallOf(const PresignedUrl& granted, S3Request request) {
  const size_t scheme = granted.url.find("://");
  const size_t path = scheme == std::string::npos ? scheme : granted.url.find('/', scheme + 3);
  if (path == std::string::npos) return absl::InternalError("what was granted is no URL");
  const std::string host = granted.url.substr(scheme + 3, path - scheme - 3);
  const bool has_port = host.rfind(':') != std::string::npos && host.back() != ']';
  const char* port = granted.url.starts_with("https://") ? ":443" : ":80";
  net::HttpCall call{.origin = granted.url.substr(0, path) + (has_port ? "" : port),
                     .tls = {.ca = granted.ca}};
  call.request = {.method = request.method,
                  .target = granted.url.substr(path),
                  .body = std::move(request.body),
                  .headers = {request.headers.begin(), request.headers.end()},
                  .secret_query = true};
  call.request.headers.emplace_back("host", host);
  for (const auto& [name, value] : granted.headers) {
    // The body has that length: it was asked for by it.
    if (name != "content-length") call.request.headers.emplace_back(name, value);
  }
  return call;
}

}  // namespace shirabe::artifacts
