// A request of S3 before it is signed, and the few kinds of them there are: those that artifacts/
// makes are those that can be given away as URLs (PresignedRequest). Pure functions.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "artifacts/artifact_store.h"
#include "artifacts/sigv4.h"
#include "base/status.h"
#include "net/http_client.h"

namespace shirabe::artifacts {

struct S3Request {
  std::string method;
  std::string key = {};  // "" = of the bucket
  NamedValues query = {};
  NamedValues headers = {};
  std::string body = {};
  size_t reply_bytes = 1 << 20;
  absl::Duration answer = absl::InfiniteDuration();  // less than the store's own limit
};

// A thousand keys at most.
S3Request ListRequest(const std::string& prefix, const std::string& after);

// What is signed of it: without a body, with the headers that say which body it must be.
// kInvalidArgument for what is none: no key, a part without a number.
StatusOr<S3Request> RequestOf(const PresignedRequest& presigned);
// Back: what the bearer of a URL must be allowed, to make this request. Keys are as in `request`.
StatusOr<PresignedRequest> PermissionFor(const S3Request& request);
// The request as its bearer makes it, with its method, body and further headers.
StatusOr<net::HttpCall> CallOf(const PresignedUrl& granted, S3Request request);

}  // namespace shirabe::artifacts
