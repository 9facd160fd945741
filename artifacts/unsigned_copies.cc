#include "artifacts/unsigned_copies.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "artifacts/s3_replies.h"
#include "artifacts/s3_request.h"
#include "net/http_client.h"

namespace shirabe::artifacts {
namespace {

constexpr char kProbe[] = "shirabe-probe";
constexpr absl::Duration kPatience = absl::Seconds(4);

// Puts an empty object there, from `source` if it is not "".
StatusOr<net::HttpResponse> PutByUrl(const PresignedUrl& url, const std::string& source) {
  S3Request request{.method = "PUT"};
  if (!source.empty()) request.headers.emplace_back("x-amz-copy-source", source);
  ASSIGN_OR_RETURN(net::HttpCall call, CallOf(url, std::move(request)));
  call.limits.answer = kPatience;
  ASSIGN_OR_RETURN(const auto http, net::HttpClient::Create());
  net::HttpExchange exchange = http->Do(call, nullptr, {});
  if (!exchange.status.ok()) return absl::UnavailableError(Message(exchange.status));
  if (exchange.answer.status < 500) return std::move(exchange.answer);
  return absl::UnavailableError(absl::StrCat("the store answers ", exchange.answer.status, " ",
                                             ReadErrorCode(exchange.answer.body)));
}

}  // namespace

StatusOr<bool> HeedsUnsignedCopies(ArtifactStore& store, const std::string& bucket) {
  ASSIGN_OR_RETURN(const PresignedUrl url,
                   store.Presign({.action = v1::PUT_OBJECT, .key = kProbe}, absl::Minutes(1)));
  ASSIGN_OR_RETURN(const net::HttpResponse plain, PutByUrl(url, ""));
  if (plain.status != 200) {
    return absl::PermissionDeniedError(absl::StrCat("the store answers ", plain.status, " ",
                                                    ReadErrorCode(plain.body),
                                                    " to a URL to put with"));
  }
  const auto copied = PutByUrl(url, absl::StrCat("/", bucket, "/", url.key, "-absent"));
  RETURN_IF_ERROR(store.Remove(kProbe, {}));
  RETURN_IF_ERROR(copied.status());
  return copied->status == 404;  // it has looked for it
}

}  // namespace shirabe::artifacts
