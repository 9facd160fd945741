// From an administrator's entry to a bucket: what each field must be, and where credentials are
// found. An error names the field, and never what stands in a file or variable of credentials.
#include <re2/re2.h>
#include <sys/stat.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "artifacts/s3_store.h"
#include "base/file_io.h"
#include "base/printable.h"
#include "net/url.h"

namespace shirabe::artifacts {
namespace {

constexpr int64_t kMaxCredentialBytes = 4096;
constexpr int64_t kMaxAuthorityBytes = 1 << 20;
constexpr char kGoogle[] = "https://storage.googleapis.com";

bool IsGoogle(const v1::ArtifactStore& entry) { return entry.type() == "gcs"; }

std::string EndpointOf(const v1::ArtifactStore& entry) {
  return entry.endpoint().empty() && IsGoogle(entry) ? kGoogle : entry.endpoint();
}

StatusOr<net::Url> ReadEndpoint(const v1::ArtifactStore& entry) {
  const std::string text = EndpointOf(entry);
  if (text.empty()) return InvalidField("endpoint", "must be given: http(s)://HOST[:PORT]");
  auto url = net::ParseUrl(text);
  if (absl::IsInvalidArgument(url.status())) return InvalidField("endpoint", Message(url.status()));
  RETURN_IF_ERROR(url.status());
  if (url->path == "/") return url;
  return InvalidField("endpoint", "has a path: give http(s)://HOST[:PORT], and the bucket apart");
}

// A key and a secret are printable, and without blanks.
Status CheckCredentials(const Credentials& credentials, const std::string& field) {
  static const RE2 form("[!-~]{1,256}");
  if (!RE2::FullMatch(credentials.access_key, form) ||
      absl::StrContains(credentials.access_key, '/') ||
      !RE2::FullMatch(credentials.secret_key, form)) {
    return InvalidField(field, "does not hold an access key and a secret");
  }
  return absl::OkStatus();
}

StatusOr<Credentials> ReadCredentialFile(const std::string& path) {
  const std::string field = "credentials.file";
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & S_IROTH) != 0) {
    return InvalidField(field, path + " can be read by everyone on this machine: chmod o-r it");
  }
  const auto text = ReadFile(path, kMaxCredentialBytes);
  if (!text.ok()) return InvalidField(field, Message(text.status()));
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(*text), absl::ByAnyChar("\r\n"), absl::SkipEmpty());
  if (lines.size() != 2) {
    return InvalidField(field, path + " must have two lines: the access key, and the secret");
  }
  return Credentials{lines[0], lines[1]};
}

StatusOr<Credentials> ReadVariables(const std::string& name) {
  const std::string field = "credentials.environment";
  static const RE2 form("[A-Za-z_][A-Za-z0-9_]{0,99}");
  if (!RE2::FullMatch(name, form)) {
    return InvalidField(field, Quoted(Printable(name)) + " cannot begin a variable's name");
  }
  const char* key = std::getenv((name + "_ACCESS_KEY").c_str());
  const char* secret = std::getenv((name + "_SECRET_KEY").c_str());
  if (key != nullptr && secret != nullptr) return Credentials{key, secret};
  return InvalidField(
      field, absl::StrCat("this process has no ", name, "_ACCESS_KEY and ", name, "_SECRET_KEY"));
}

StatusOr<Credentials> ReadCredentials(const v1::StoreCredentials& where) {
  if (where.file().empty() == where.environment().empty()) {
    return InvalidField("credentials", "give one of file and environment");
  }
  const bool in_file = !where.file().empty();
  auto credentials =
      in_file ? ReadCredentialFile(where.file()) : ReadVariables(where.environment());
  RETURN_IF_ERROR(credentials.status());
  RETURN_IF_ERROR(
      CheckCredentials(*credentials, in_file ? "credentials.file" : "credentials.environment"));
  return credentials;
}

}  // namespace

Status S3Store::Validate(const v1::ArtifactStore& entry) {
  static const RE2 bucket("[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]");
  static const RE2 region("[a-z0-9-]{0,40}");
  if (!RE2::FullMatch(entry.bucket(), bucket) || absl::StrContains(entry.bucket(), "..")) {
    return InvalidField("bucket", Quoted(Printable(entry.bucket())) +
                                      " is not the name of a bucket: 3 to 63 of [a-z0-9._-]");
  }
  if (!RE2::FullMatch(entry.region(), region)) {
    return InvalidField("region", Quoted(Printable(entry.region())) + " is not like us-east-1");
  }
  if (!entry.root().empty()) return InvalidField("root", "is of a directory: remove it");
  return ReadEndpoint(entry).status();
}

StatusOr<std::unique_ptr<ArtifactStore>> S3Store::Open(const v1::ArtifactStore& entry) {
  RETURN_IF_ERROR(Validate(entry));
  ASSIGN_OR_RETURN(const net::Url url, ReadEndpoint(entry));
  S3Options options;
  ASSIGN_OR_RETURN(options.signer.credentials, ReadCredentials(entry.credentials()));
  const std::string otherwise = IsGoogle(entry) ? "auto" : "us-east-1";
  options.signer.region = entry.region().empty() ? otherwise : entry.region();
  if (!entry.ca_file().empty()) {
    const auto ca = ReadFile(entry.ca_file(), kMaxAuthorityBytes);
    if (!ca.ok()) return InvalidField("caFile", Message(ca.status()));
    options.tls.ca = *ca;
    const Status usable = net::CheckTls(options.tls);
    if (!usable.ok()) return InvalidField("caFile", Message(usable));
  }
  const bool in_host = entry.addressing() == v1::VIRTUAL;
  const std::string shown = absl::StrContains(url.host, ':') ? "[" + url.host + "]" : url.host;
  const std::string host = in_host ? absl::StrCat(entry.bucket(), ".", shown) : shown;
  const bool usual_port = url.port == (url.tls ? "443" : "80");
  options.origin = absl::StrCat(url.tls ? "https://" : "http://", host, ":", url.port);
  options.host = usual_port ? host : absl::StrCat(host, ":", url.port);
  options.path = in_host ? "" : "/" + entry.bucket();
  return Create(std::move(options));
}

}  // namespace shirabe::artifacts
