// AWS Signature Version 4, as S3 wants it: what of a request is signed, and how ("Authenticating
// Requests" in the API reference of Amazon S3). Pure functions of their arguments; the secret goes
// into the HMAC and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace shirabe::artifacts {

struct Credentials {
  std::string access_key;
  std::string secret_key;
};

using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct RequestToSign {
  std::string method;
  std::string path;     // encoded, from '/'
  NamedValues query;    // not encoded
  NamedValues headers;  // names in lower case, `host` among them; all of them are signed
  std::string payload_sha256;
};

struct SigningTime {
  std::string date;       // 20130524
  std::string timestamp;  // 20130524T000000Z
};
SigningTime SigningTimeOf(absl::Time now);

struct Signer {
  Credentials credentials;
  std::string region;
  std::string service = "s3";

  // The value of the header Authorization. x-amz-date is among the request's headers.
  std::string Authorization(const RequestToSign& request, const SigningTime& time) const;
  // The request's query with what makes it one that its bearer may send until then; its header is
  // `host` alone.
  std::string PresignedQuery(RequestToSign request, const SigningTime& time,
                             absl::Duration lifetime) const;

 private:
  std::string Scope(const SigningTime& time) const;
  std::string Signature(const RequestToSign& request, const SigningTime& time) const;
};

// Everything but letters, digits and "-._~" as %XX; with `slashes` they stay.
std::string UriEncode(std::string_view text, bool slashes);
// name=value&…, encoded, in ascending order.
std::string EncodeQuery(NamedValues query);

}  // namespace shirabe::artifacts
