#include "artifacts/s3_store.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "artifacts/retries.h"
#include "artifacts/s3_replies.h"
#include "base/file_io.h"
#include "base/sha256.h"

namespace shirabe::artifacts {
namespace {

constexpr int64_t kMaxParts = 10'000;  // of S3
// A large object is not begun from its start again because one of its pieces had bad luck.
constexpr int kTriesOfPiece = 3;
constexpr absl::Duration kMaxAbort = absl::Seconds(5);
constexpr absl::Duration kMaxLifetime = absl::Hours(24 * 7);

// ---- what an answer means ----------------------------------------------------------------------

absl::StatusCode CodeOfReply(int status, const std::string& code) {
  static const std::map<std::string, absl::StatusCode> codes = {
      {"NoSuchKey", absl::StatusCode::kNotFound},
      {"NoSuchUpload", absl::StatusCode::kUnavailable},
      {"BadDigest", absl::StatusCode::kDataLoss},
      {"XAmzContentSHA256Mismatch", absl::StatusCode::kDataLoss},
      {"IncompleteBody", absl::StatusCode::kUnavailable},
      {"RequestTimeout", absl::StatusCode::kUnavailable},
      {"QuotaExceeded", absl::StatusCode::kResourceExhausted},
      {"InsufficientStorage", absl::StatusCode::kResourceExhausted},
      {"XMinioStorageFull", absl::StatusCode::kResourceExhausted},
      {"EntityTooLarge", absl::StatusCode::kResourceExhausted}};
  if (const auto known = codes.find(code); known != codes.end()) return known->second;
  switch (status) {
    // No such bucket or user, or no server of S3 at all: that is not to be taken for no such
    // object.
    case 404:
    case 401:
    case 403: return absl::StatusCode::kPermissionDenied;
    case 412: return absl::StatusCode::kDataLoss;
    case 416: return absl::StatusCode::kOutOfRange;
    case 507: return absl::StatusCode::kResourceExhausted;
    case 408:
    case 409:
    case 429: return absl::StatusCode::kUnavailable;
    default: break;
  }
  // A redirect too: it is not followed, and the same request would get it again.
  return status >= 500 ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument;
}

std::string HintFor(int status, const std::string& code) {
  if (code == "NoSuchBucket") return ": the entry's bucket is not there";
  if (code == "RequestTimeTooSkewed") return ": the clock of this machine is wrong";
  if (code == "SignatureDoesNotMatch") return ": the entry's secret key or region is wrong";
  if (code == "InvalidAccessKeyId") return ": the entry's access key is wrong";
  if (status >= 300 && status < 400) return ": the bucket is elsewhere: correct the entry";
  return "";
}

Status StatusOfReply(const net::HttpResponse& answer, const std::string& what) {
  const std::string code = ReadErrorCode(answer.body);
  return Status(CodeOfReply(answer.status, code),
                absl::StrCat(what, ": the store answers ", answer.status, code.empty() ? "" : " ",
                             code, HintFor(answer.status, code)));
}

// The words of net/ name the server and what went wrong; only the code is not that of a store.
Status StatusOfExchange(const Status& status) {
  const bool gone = absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status) ||
                    absl::IsFailedPrecondition(status);
  return gone ? absl::UnavailableError(Message(status)) : status;
}

StatusOr<std::string> ReadPiece(const PutSource& source, int64_t first, int64_t bytes) {
  ASSIGN_OR_RETURN(std::string piece, ReadFileRange(source.fd, first, bytes, "what is to be put"));
  if (static_cast<int64_t>(piece.size()) < bytes) {
    return absl::InvalidArgumentError("what is to be put is shorter than it was");
  }
  return piece;
}

// An ETag as it is sent back, in a header and in XML.
bool IsEtag(const std::string& etag) {
  static const RE2 form("\"?[A-Za-z0-9+/=_:.-]{1,200}\"?");
  return RE2::FullMatch(etag, form);
}

bool IsEmptyObject(const net::HttpResponse& answer) {
  return answer.status == 200 && answer.body.empty() && answer.Header("content-length") == "0";
}

struct ContentRange {
  int64_t first = 0;
  int64_t last = 0;
  int64_t total = 0;
};
std::optional<ContentRange> ReadContentRange(const std::string& text) {
  static const RE2 form("bytes (\\d+)-(\\d+)/(\\d+)");
  ContentRange range;
  if (!RE2::FullMatch(text, form, &range.first, &range.last, &range.total)) return std::nullopt;
  return range;
}

}  // namespace

// ---- one request -------------------------------------------------------------------------------

StatusOr<std::unique_ptr<ArtifactStore>> S3Store::Create(S3Options options) {
  ASSIGN_OR_RETURN(auto http, net::HttpClient::Create());
  std::unique_ptr<S3Store> store(new S3Store(std::move(options), std::move(http)));  // private
  return store;
}

net::HttpCall S3Store::CallWithKeys(S3Request request) const {
  const SigningTime time = SigningTimeOf(options_.clock->Now());
  RequestToSign signed_request{
      .method = request.method,
      .path = options_.path + "/" + UriEncode(request.key, /*slashes=*/true),
      .query = std::move(request.query),
      .headers = std::move(request.headers),
      .payload_sha256 = HexSha256(request.body)};
  if (request.key.empty() && !options_.path.empty()) signed_request.path = options_.path;
  NamedValues& headers = signed_request.headers;
  headers.emplace_back("host", options_.host);
  headers.emplace_back("x-amz-content-sha256", signed_request.payload_sha256);
  headers.emplace_back("x-amz-date", time.timestamp);
  const std::string authorization = options_.signer.Authorization(signed_request, time);
  const std::string query = EncodeQuery(signed_request.query);
  net::HttpCall call{.origin = options_.origin, .tls = options_.tls};
  call.request = {.method = request.method,
                  .target = signed_request.path + (query.empty() ? "" : "?") + query,
                  .body = std::move(request.body),
                  .headers = {headers.begin(), headers.end()}};
  call.request.headers.emplace_back("Authorization", authorization);
  return call;
}

StatusOr<net::HttpCall> S3Store::CallWithUrl(S3Request request, std::string* key) const {
  ASSIGN_OR_RETURN(const PresignedRequest wanted, PermissionFor(request));
  ASSIGN_OR_RETURN(const PresignedUrl granted, options_.urls(wanted));
  if (key != nullptr) *key = granted.key;
  return CallOf(granted, std::move(request));
}

StatusOr<net::HttpResponse> S3Store::Send(S3Request request, const std::stop_token& stop,
                                          std::string* key) {
  const absl::Duration answer = std::min(options_.answer, request.answer);
  const size_t reply_bytes = request.reply_bytes;
  StatusOr<net::HttpCall> call =
      options_.urls ? CallWithUrl(std::move(request), key) : CallWithKeys(std::move(request));
  RETURN_IF_ERROR(call.status());
  call->limits.answer = answer;
  call->limits.body_bytes = reply_bytes;
  net::HttpExchange exchange = http_->Do(*call, nullptr, stop);
  RETURN_IF_ERROR(StatusOfExchange(exchange.status));
  const int status = exchange.answer.status;
  if (status == 200 || status == 204 || status == 206) return std::move(exchange.answer);
  const std::string& target = call->request.target;
  return StatusOfReply(exchange.answer,
                       call->request.method + " " + target.substr(0, target.find('?')));
}

StatusOr<net::HttpResponse> S3Store::SendPiece(const S3Request& request,
                                               const std::stop_token& stop) {
  StatusOr<net::HttpResponse> answer = absl::UnavailableError("");
  (void)WithRetries({.attempts = kTriesOfPiece}, stop, [&] {
    answer = Send(request, stop);
    return answer.status();
  });
  return answer;
}

// ---- putting -----------------------------------------------------------------------------------

Status S3Store::Put(const std::string& key, const PutSource& source, std::stop_token stop) {
  RETURN_IF_ERROR(ValidateObjectKey(key));
  if (source.bytes > options_.piece_bytes) return PutInParts(key, source, stop);
  ASSIGN_OR_RETURN(std::string body, ReadPiece(source, 0, source.bytes));
  if (HexSha256(body) != source.sha256) {
    return absl::InvalidArgumentError("what is to be put as " + key + " has changed");
  }
  return Send({.method = "PUT", .key = key, .body = std::move(body)}, stop).status();
}

Status S3Store::PutInParts(const std::string& key, const PutSource& source,
                           const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto begun,
                   Send({.method = "POST", .key = key, .query = {{"uploads", ""}}}, stop));
  ASSIGN_OR_RETURN(const std::string upload, ReadUploadId(begun.body));
  auto parts = PutParts(key, source, upload, stop);
  Status status = parts.status();
  if (status.ok()) {
    const auto ended = Send(
        {.method = "POST", .key = key, .query = {{"uploadId", upload}}, .body = *std::move(parts)},
        stop);
    status = ended.status();
    if (status.ok()) status = CheckCompleted(ended->body);
  }
  if (status.ok()) {
    const auto made = Head(key, stop);
    RETURN_IF_ERROR(made.status());
    if (made->bytes == source.bytes) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(key, " has ", made->bytes, " bytes in the store, not ", source.bytes));
  }
  // Its parts take room until the server is told that nothing will become of them; also when we
  // stop.
  (void)Send({.method = "DELETE", .key = key, .query = {{"uploadId", upload}}, .answer = kMaxAbort},
             std::stop_token());
  return status;
}

StatusOr<std::string> S3Store::PutParts(const std::string& key, const PutSource& source,
                                        const std::string& upload, const std::stop_token& stop) {
  const int64_t bytes = std::max(options_.piece_bytes, (source.bytes + kMaxParts - 1) / kMaxParts);
  std::string xml = "<CompleteMultipartUpload>";
  Sha256 hash;
  for (int64_t first = 0, number = 1; first < source.bytes; first += bytes, ++number) {
    ASSIGN_OR_RETURN(std::string body,
                     ReadPiece(source, first, std::min(bytes, source.bytes - first)));
    hash.Add(body);
    ASSIGN_OR_RETURN(
        const net::HttpResponse answer,
        SendPiece({.method = "PUT",
                   .key = key,
                   .query = {{"partNumber", absl::StrCat(number)}, {"uploadId", upload}},
                   .body = std::move(body)},
                  stop));
    const std::string etag = answer.Header("etag");
    if (!IsEtag(etag)) return absl::DataLossError("the store names no ETag for a part of " + key);
    absl::StrAppend(&xml, "<Part><PartNumber>", number, "</PartNumber><ETag>",
                    etag.starts_with('"') ? etag.substr(1, etag.size() - 2) : etag,
                    "</ETag></Part>");
  }
  if (hash.Hex() != source.sha256) {
    return absl::InvalidArgumentError("what is to be put as " + key + " has changed");
  }
  return xml + "</CompleteMultipartUpload>";
}

// ---- getting -----------------------------------------------------------------------------------

StatusOr<ObjectInfo> S3Store::Head(const std::string& key, std::stop_token stop) {
  RETURN_IF_ERROR(ValidateObjectKey(key));
  // A body that HEAD's header announces never comes, and libcurl would wait for it: of one byte the
  // header says as much.
  const auto piece = GetPiece(key, {.first = 0, .bytes = 1, .etag = ""}, stop);
  RETURN_IF_ERROR(piece.status());
  return ObjectInfo{key, piece->total};
}

StatusOr<S3Store::GotPiece> S3Store::GetPiece(const std::string& key, const Piece& piece,
                                              const std::stop_token& stop) {
  const int64_t last = piece.first + piece.bytes - 1;
  S3Request request{.method = "GET",
                    .key = key,
                    .headers = {{"range", absl::StrCat("bytes=", piece.first, "-", last)}},
                    .reply_bytes = static_cast<size_t>(std::max(piece.bytes, int64_t{1} << 20))};
  if (!piece.etag.empty()) request.headers.emplace_back("if-match", piece.etag);
  const auto answer = piece.etag.empty() ? Send(request, stop) : SendPiece(request, stop);
  if (absl::IsOutOfRange(answer.status()) && piece.first == 0) return GetEmpty(key, stop);
  if (absl::IsOutOfRange(answer.status())) {
    return absl::InvalidArgumentError(absl::StrCat(key, " has no byte ", piece.first));
  }
  RETURN_IF_ERROR(answer.status());
  if (IsEmptyObject(*answer) && piece.first == 0) return GotPiece();
  GotPiece got{.body = answer->body, .etag = answer->Header("etag"), .total = 0};
  const bool same = piece.etag.empty() ? IsEtag(got.etag) : got.etag == piece.etag;
  if (!same) return absl::DataLossError(key + " has been replaced, or has no ETag");
  const auto range = ReadContentRange(answer->Header("content-range"));
  const bool in_range = range && range->first == piece.first && range->last <= last &&
                        range->last < range->total && range->last >= range->first &&
                        range->last - range->first + 1 == static_cast<int64_t>(got.body.size());
  const bool whole = range && (range->last == last || range->last == range->total - 1);
  if (answer->status != 206 || !in_range || !whole) {
    return absl::DataLossError("the store sends other bytes of " + key + " than it was asked for");
  }
  got.total = range->total;
  return got;
}

// No range is within nothing.
StatusOr<S3Store::GotPiece> S3Store::GetEmpty(const std::string& key, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto answer, Send({.method = "GET", .key = key}, stop));
  if (IsEmptyObject(answer)) return GotPiece();
  return absl::DataLossError("the store sends other bytes of " + key + " than it was asked for");
}

Status S3Store::Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
                    std::stop_token stop) {
  RETURN_IF_ERROR(ValidateObjectKey(key));
  Piece next{.first = range.first, .bytes = 0, .etag = ""};
  int64_t left = range.bytes < 0 ? INT64_MAX : range.bytes;
  while (left > 0) {
    next.bytes = std::min(left, options_.piece_bytes);
    ASSIGN_OR_RETURN(GotPiece got, GetPiece(key, next, stop));
    RETURN_IF_ERROR(sink(got.body));
    next.first += static_cast<int64_t>(got.body.size());
    next.etag = std::move(got.etag);
    left = std::min(left - static_cast<int64_t>(got.body.size()), got.total - next.first);
  }
  return absl::OkStatus();
}

// ---- the rest ----------------------------------------------------------------------------------

StatusOr<ObjectPage> S3Store::List(const std::string& prefix, const std::string& after,
                                   std::stop_token stop) {
  S3Request request = ListRequest(prefix, after);
  request.reply_bytes = kMaxReplyBytes;
  std::string real = prefix;  // as the server has it
  ASSIGN_OR_RETURN(const net::HttpResponse answer, Send(std::move(request), stop, &real));
  ASSIGN_OR_RETURN(ListReply reply, ReadListReply(answer.body));
  ObjectPage page;
  std::string last = after;
  for (const ListedObject& object : reply.objects) {
    const bool below = absl::StartsWith(object.key, real);
    std::string key = below ? prefix + object.key.substr(real.size()) : "";
    if (!below || key <= last) {
      return absl::DataLossError("the store lists other keys than it was asked for");
    }
    last = key;
    if (!ValidateObjectKey(key).ok()) continue;  // it is not ours
    page.objects.push_back({std::move(key), object.bytes});
  }
  if (!reply.truncated) return page;
  if (reply.objects.empty()) return absl::DataLossError("the store's list of keys never ends");
  page.next = last;
  return page;
}

Status S3Store::Remove(const std::string& key, std::stop_token stop) {
  RETURN_IF_ERROR(ValidateObjectKey(key));
  const Status status = Send({.method = "DELETE", .key = key}, stop).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

StatusOr<PresignedUrl> S3Store::Presign(const PresignedRequest& request, absl::Duration lifetime) {
  if (lifetime < absl::Seconds(1) || lifetime > kMaxLifetime) {
    return absl::InvalidArgumentError("a URL is good for between a second and a week");
  }
  if (options_.urls) return absl::UnimplementedError("a store that has no keys can sign no URL");
  ASSIGN_OR_RETURN(S3Request wanted, RequestOf(request));
  RequestToSign to_sign{.method = wanted.method,
                        .path = options_.path + "/" + UriEncode(wanted.key, /*slashes=*/true),
                        .query = std::move(wanted.query),
                        .headers = wanted.headers,
                        .payload_sha256 = ""};
  if (wanted.key.empty() && !options_.path.empty()) to_sign.path = options_.path;
  to_sign.headers.emplace_back("host", options_.host);
  PresignedUrl made{
      .headers = std::move(wanted.headers), .key = request.key, .ca = options_.tls.ca};
  const std::string path = to_sign.path;
  const std::string query = options_.signer.PresignedQuery(
      std::move(to_sign), SigningTimeOf(options_.clock->Now()), lifetime);
  made.url = absl::StrCat(options_.origin.substr(0, options_.origin.find("://") + 3), options_.host,
                          path, "?", query);
  return made;
}

}  // namespace shirabe::artifacts
