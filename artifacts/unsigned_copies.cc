#include "artifacts/unsigned_copies.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "artifacts/s3_replies.h"
#include "artifacts/s3_request.h"
#include "net/http_client.h"

namespace shirabe::artifacts {
namespace {

constexpr char kProbeSource[] = "shirabe-probe";
constexpr char kProbeTarget[] = "shirabe-probe-copy";
constexpr absl::Duration kPatience = absl::Seconds(4);

class Prober {
 public:
  static StatusOr<Prober> Create(ArtifactStore& store) {
    ASSIGN_OR_RETURN(auto http, net::HttpClient::Create());
    return Prober(store, std::move(http));
  }

  // kUnavailable for an answer that says nothing of the request: busy, or broken.
  StatusOr<net::HttpResponse> Send(const PresignedRequest& presigned, S3Request request,
                                   std::string* key = nullptr) {
    ASSIGN_OR_RETURN(const PresignedUrl url, store_.Presign(presigned, absl::Minutes(1)));
    if (key != nullptr) *key = url.key;
    ASSIGN_OR_RETURN(net::HttpCall call, CallOf(url, std::move(request)));
    call.limits.answer = kPatience;
    net::HttpExchange exchange = http_->Do(call, nullptr, {});
    if (!exchange.status.ok()) return absl::UnavailableError(Message(exchange.status));
    const int status = exchange.answer.status;
    if (status < 500 && status != 408 && status != 429) return std::move(exchange.answer);
    return absl::UnavailableError(Words(exchange.answer));
  }
  void Remove(const char* key) {
    (void)Send({.action = v1::REMOVE_OBJECT, .key = key}, {.method = "DELETE"});
  }
  static std::string Words(const net::HttpResponse& answer) {
    return absl::StrCat("the store answers ", answer.status, " ", ReadErrorCode(answer.body));
  }

 private:
  Prober(ArtifactStore& store, std::unique_ptr<net::HttpClient> http)
      : store_(store), http_(std::move(http)) {}

  ArtifactStore& store_;
  std::unique_ptr<net::HttpClient> http_;
};

Status Put(Prober& prober, const char* key, const std::string& bytes, std::string* real) {
  const PresignedRequest presigned{
      .action = v1::PUT_OBJECT, .key = key, .bytes = static_cast<int64_t>(bytes.size())};
  ASSIGN_OR_RETURN(const net::HttpResponse answer,
                   prober.Send(presigned, {.method = "PUT", .body = bytes}, real));
  if (answer.status == 200) return absl::OkStatus();
  return absl::PermissionDeniedError(Prober::Words(answer) + " to a URL to put with");
}

// Whether the first object has arrived in place of the other, which is empty.
StatusOr<bool> Copy(Prober& prober, const std::string& from) {
  S3Request copy{.method = "PUT"};
  copy.headers.emplace_back("x-amz-copy-source", from);
  RETURN_IF_ERROR(
      prober.Send({.action = v1::PUT_OBJECT, .key = kProbeTarget}, std::move(copy)).status());
  ASSIGN_OR_RETURN(
      const net::HttpResponse found,
      prober.Send({.action = v1::READ_OBJECT, .key = kProbeTarget}, {.method = "GET"}));
  if (found.status == 200) return !found.body.empty();
  return absl::UnavailableError(Prober::Words(found));
}

}  // namespace

StatusOr<bool> TakesUnsignedCopies(ArtifactStore& store, const std::string& bucket) {
  ASSIGN_OR_RETURN(Prober prober, Prober::Create(store));
  std::string source;
  RETURN_IF_ERROR(Put(prober, kProbeSource, "probe", &source));
  RETURN_IF_ERROR(Put(prober, kProbeTarget, "", nullptr));
  auto arrived = Copy(prober, absl::StrCat("/", bucket, "/", source));
  prober.Remove(kProbeTarget);
  prober.Remove(kProbeSource);
  return arrived;
}

}  // namespace shirabe::artifacts
