#include "artifacts/sigv4.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "base/sorting.h"

namespace shirabe::artifacts {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

// Sorted by name, as both the canonical form and the list of them want it.
NamedValues Sorted(NamedValues values) {
  StableSort(values);
  return values;
}

std::string NamesOfHeaders(const NamedValues& headers) {
  std::string names;
  for (const auto& [name, value] : Sorted(headers)) {
    absl::StrAppend(&names, names.empty() ? "" : ";", name);
  }
  return names;
}

std::string CanonicalRequest(const RequestToSign& request) {
  std::string text =
      absl::StrCat(request.method, "\n", request.path, "\n", EncodeQuery(request.query), "\n");
  for (const auto& [name, value] : Sorted(request.headers)) {
    absl::StrAppend(&text, name, ":", absl::StripAsciiWhitespace(value), "\n");
  }
  absl::StrAppend(&text, "\n", NamesOfHeaders(request.headers), "\n", request.payload_sha256);
  return text;
}

}  // namespace

SigningTime SigningTimeOf(absl::Time now) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  return {absl::FormatTime("%Y%m%d", now, utc), absl::FormatTime("%Y%m%dT%H%M%SZ", now, utc)};
}

std::string UriEncode(std::string_view text, bool slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ||
                       c == '_' || c == '~' || (slashes && c == '/');
    if (plain) {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string EncodeQuery(NamedValues query) {
  for (auto& [name, value] : query) {
    name = UriEncode(name, /*slashes=*/false);
    value = UriEncode(value, /*slashes=*/false);
  }
  std::string text;
  for (const auto& [name, value] : Sorted(std::move(query))) {
    absl::StrAppend(&text, text.empty() ? "" : "&", name, "=", value);
  }
  return text;
}

std::string Signer::Scope(const SigningTime& time) const {
  return absl::StrCat(time.date, "/", region, "/", service, "/aws4_request");
}

std::string Signer::Signature(const RequestToSign& request, const SigningTime& time) const {
  const std::string text = absl::StrCat(kAlgorithm, "\n", time.timestamp, "\n", Scope(time), "\n",
                                        HexSha256(CanonicalRequest(request)));
  std::string key = HmacSha256("AWS4" + credentials.secret_key, time.date);
  for (const std::string& part : {region, service, std::string("aws4_request")}) {
    key = HmacSha256(key, part);
  }
  return HexHmacSha256(key, text);
}

std::string Signer::Authorization(const RequestToSign& request, const SigningTime& time) const {
  return absl::StrCat(kAlgorithm, " Credential=", credentials.access_key, "/", Scope(time),
                      ",SignedHeaders=", NamesOfHeaders(request.headers),
                      ",Signature=", Signature(request, time));
}

std::string Signer::PresignedQuery(RequestToSign request, const SigningTime& time,
                                   absl::Duration lifetime) const {
  request.payload_sha256 = "UNSIGNED-PAYLOAD";
  request.query.insert(
      request.query.end(),
      {{"X-Amz-Algorithm", kAlgorithm},
       {"X-Amz-Credential", absl::StrCat(credentials.access_key, "/", Scope(time))},
       {"X-Amz-Date", time.timestamp},
       {"X-Amz-Expires", absl::StrCat(absl::ToInt64Seconds(lifetime))},
       {"X-Amz-SignedHeaders", NamesOfHeaders(request.headers)}});
  return absl::StrCat(EncodeQuery(request.query), "&X-Amz-Signature=", Signature(request, time));
}

}  // namespace shirabe::artifacts
