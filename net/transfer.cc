#include "net/transfer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"

namespace shirabe::net {
namespace {

constexpr size_t kMaxHeaderBytes = 64 << 10;
constexpr long kReadBytes = 64 << 10;
// API servers close what is idle for 90 seconds or more; ours are closed before.
constexpr long kMaxIdleSeconds = 60;
constexpr int kHttpOk = 200;
constexpr char kTooLarge[] = "the answer is too large (body limit exceeded)";

std::string_view AuthorityOf(std::string_view origin) {
  const size_t colon = origin.find("://");
  return colon == std::string_view::npos ? origin : origin.substr(colon + 3);
}

// Of HOST:PORT or [IPv6]:PORT, with the colon.
std::string PortOf(const std::string& authority) {
  const size_t colon = authority.rfind(':');
  return colon == std::string::npos ? "" : authority.substr(colon);
}

// A log that is followed may be silent for hours; the keep-alive finds out whether the other side
// is still there, and what it does not acknowledge ends the connection as soon. That a system
// refuses an option is no reason not to speak.
void SetSocketOptions(int socket) {
  const auto set = [socket](int level, int option, int value) {
    (void)setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 40'000);
}

bool IsOfHeader(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c >= ' ' || c == '\t') && c != 0x7f; });
}

bool IsTarget(std::string_view text) {
  return text.starts_with('/') && std::all_of(text.begin(), text.end(),
                                              [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

curl_blob BlobOf(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

}  // namespace

// ---- sockets -----------------------------------------------------------------------------------

curl_socket_t Sockets::Open(const curl_sockaddr& address) {
  const int made = socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  if (made < 0) return CURL_SOCKET_BAD;
  SetSocketOptions(made);
  open_.insert(made);
  return made;
}

int Sockets::Close(curl_socket_t socket) {
  open_.erase(socket);
  return close(socket);
}

void Sockets::ShutDown(int local_port) const {
  for (const curl_socket_t socket : open_) {
    sockaddr_in6 bound{};  // the port lies at the same place in a sockaddr_in
    socklen_t length = sizeof bound;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) continue;
    if (ntohs(bound.sin6_port) == local_port) (void)shutdown(socket, SHUT_RDWR);
  }
}

// ---- the request -------------------------------------------------------------------------------

Transfer::Transfer(const CurlLibrary& curl, const HttpCall& call, const BodyCallback* sink,
                   bool own)
    : curl_(curl),
      call_(call),
      sink_(sink),
      own_(own),
      easy_(curl.curl_easy_init()),
      authority_(AuthorityOf(call.origin)) {
  CHECK(easy_ != nullptr);
}

Transfer::~Transfer() {
  curl_.curl_easy_cleanup(easy_);
  curl_.curl_slist_free_all(headers_);
  curl_.curl_slist_free_all(connect_to_);
}

template <class Value>
void Transfer::Set(CURLoption option, Value value) {
  const CURLcode code = curl_.curl_easy_setopt(easy_, option, value);
  if (set_ == CURLE_OK) set_ = code;
}

Status Transfer::Prepare() {
  Set(CURLOPT_PRIVATE, this);
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_QUICK_EXIT, 1L);  // a lookup of a name that hangs holds up nothing
  Set(CURLOPT_ERRORBUFFER, words_.data());
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_PROXY, "");
  Set(CURLOPT_FOLLOWLOCATION, 0L);
  Set(CURLOPT_BUFFERSIZE, kReadBytes);
  Set(CURLOPT_MAXAGE_CONN, kMaxIdleSeconds);
  Set<long>(CURLOPT_HTTP_VERSION, own_ ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS);
  Set(CURLOPT_PIPEWAIT, 1L);  // for a connection that others share, rather than open one more
  if (sink_ == nullptr) {
    Set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(call_.limits.body_bytes));
  }
  SetTls();
  SetCallbacks();
  RETURN_IF_ERROR(SetRequest());
  deadline_ = RealClock()->Monotonic() + call_.limits.connect;
  if (set_ == CURLE_OK) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(authority_, ": ", curl_.curl_easy_strerror(set_)));
}

void Transfer::Use(Sockets* sockets) {
  sockets_ = sockets;
  Set(CURLOPT_CLOSESOCKETDATA, sockets);
  Set(
      CURLOPT_CLOSESOCKETFUNCTION,
      +[](void* self, curl_socket_t socket) { return static_cast<Sockets*>(self)->Close(socket); });
}

Status Transfer::SetRequest() {
  const HttpRequest& request = call_.request;
  if (!IsTarget(request.target)) {
    return absl::InvalidArgumentError(authority_ + ": the path of a request is not one");
  }
  Set(CURLOPT_URL, (call_.origin + "/").c_str());
  Set(CURLOPT_REQUEST_TARGET, request.target.c_str());
  const std::string& name = call_.tls.server_name;
  if (!name.empty() && call_.origin.starts_with("https://")) {
    // TLS speaks with the host of the URL; the connection goes elsewhere.
    const bool v6 = absl::StrContains(name, ':');
    const std::string host = v6 ? absl::StrCat("[", name, "]") : name;
    Set(CURLOPT_URL, absl::StrCat("https://", host, PortOf(authority_), "/").c_str());
    connect_to_ = curl_.curl_slist_append(nullptr, absl::StrCat("::", authority_).c_str());
    Set(CURLOPT_CONNECT_TO, connect_to_);
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    Set(CURLOPT_POSTFIELDS, request.body.data());
    Set<curl_off_t>(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (request.method != "GET") Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  return SetHeaders();
}

Status Transfer::SetHeaders() {
  HttpHeaders all = {{"Host", authority_}, {"User-Agent", "shirabe/" SHIRABE_VERSION}};
  // Without a value libcurl leaves out what it would add by itself.
  all.emplace_back("Content-Type", call_.request.content_type);
  all.emplace_back("Expect", "");
  const size_t may_be_empty = all.size();
  all.insert(all.end(), call_.request.headers.begin(), call_.request.headers.end());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [name, value] = all[i];
    if (!IsOfHeader(name) || !IsOfHeader(value) || name.empty() ||
        name.find_first_of(": \t") != std::string::npos) {
      return absl::InvalidArgumentError(authority_ + ": a header of a request is not one");
    }
    const bool replaced = std::any_of(
        all.begin() + static_cast<ptrdiff_t>(i) + 1, all.end(),
        [&name = name](const auto& other) { return absl::EqualsIgnoreCase(name, other.first); });
    if (replaced) continue;
    // "NAME;" is a header without a value.
    const bool bare = value.empty() && i >= may_be_empty;
    const std::string line = bare ? name + ";" : absl::StrCat(name, ": ", value);
    headers_ = curl_.curl_slist_append(headers_, line.c_str());
  }
  Set(CURLOPT_HTTPHEADER, headers_);
  return absl::OkStatus();
}

void Transfer::SetTls() {
  const TlsOptions& tls = call_.tls;
  Set<long>(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  Set(CURLOPT_SSL_VERIFYPEER, tls.insecure ? 0L : 1L);
  Set(CURLOPT_SSL_VERIFYHOST, tls.insecure ? 0L : 2L);
  if (!tls.ca.empty()) {
    curl_blob ca = BlobOf(tls.ca);
    Set(CURLOPT_CAINFO_BLOB, &ca);
    Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // these alone, not the system's too
  }
  if (tls.certificate.empty() && tls.key.empty()) return;
  curl_blob certificate = BlobOf(tls.certificate);
  curl_blob key = BlobOf(tls.key);
  Set(CURLOPT_SSLCERT_BLOB, &certificate);
  Set(CURLOPT_SSLKEY_BLOB, &key);
  Set(CURLOPT_KEYPASSWD, "");  // else an encrypted key makes OpenSSL ask on the terminal
}

void Transfer::SetCallbacks() {
  Set(CURLOPT_OPENSOCKETDATA, this);
  Set(
      CURLOPT_OPENSOCKETFUNCTION, +[](void* self, curlsocktype, curl_sockaddr* address) {
        return static_cast<Transfer*>(self)->OnSocket(*address);
      });
  Set(CURLOPT_PREREQDATA, this);
  Set(
      CURLOPT_PREREQFUNCTION, +[](void* self, char*, char*, int, int local_port) {
        return static_cast<Transfer*>(self)->OnConnected(local_port);
      });
  Set(CURLOPT_HEADERDATA, this);
  Set(
      CURLOPT_HEADERFUNCTION, +[](char* data, size_t, size_t bytes, void* self) {
        return static_cast<Transfer*>(self)->OnHeader({data, bytes});
      });
  Set(CURLOPT_WRITEDATA, this);
  Set(
      CURLOPT_WRITEFUNCTION, +[](char* data, size_t, size_t bytes, void* self) {
        return static_cast<Transfer*>(self)->OnBody({data, bytes});
      });
}

// ---- what happens ------------------------------------------------------------------------------

curl_socket_t Transfer::OnSocket(const curl_sockaddr& address) {
  if (call_.may_connect && !call_.may_connect(address.addr)) {
    Fail(absl::StatusCode::kPermissionDenied, "it is at an address that may not be asked");
    return CURL_SOCKET_BAD;
  }
  return sockets_->Open(address);
}

int Transfer::OnConnected(int local_port) {
  // libcurl would send a request again, whatever it is, where a connection that was kept has
  // broken.
  if (exchange_.stage != ExchangeStage::kNotSent) {
    Fail(absl::StatusCode::kUnavailable, "the server hung up");
    return CURL_PREREQFUNC_ABORT;
  }
  failed_ = false;  // another of its addresses was refused
  exchange_.status = call_.before_send ? call_.before_send() : absl::OkStatus();
  failed_ = !exchange_.status.ok();
  if (failed_) return CURL_PREREQFUNC_ABORT;
  exchange_.stage = ExchangeStage::kSent;
  local_port_ = local_port;
  deadline_ = RealClock()->Monotonic() + call_.limits.answer;
  return CURL_PREREQFUNC_OK;
}

size_t Transfer::OnHeader(std::string_view line) {
  exchange_.stage = ExchangeStage::kAnswering;
  header_bytes_ += line.size();
  if (header_bytes_ > kMaxHeaderBytes) {
    Fail(absl::StatusCode::kResourceExhausted, "the answer's header is too large");
    return 0;
  }
  HttpResponse& answer = exchange_.answer;
  const absl::string_view text =
      absl::StripAsciiWhitespace(absl::string_view(line.data(), line.size()));
  const size_t colon = text.find(':');
  if (absl::StartsWith(text, "HTTP/")) {
    // Of an interim answer (100 Continue), or of the answer itself.
    answer = {};
    const size_t space = text.find(' ');
    if (space == absl::string_view::npos) return line.size();
    (void)absl::SimpleAtoi(text.substr(space + 1, 3), &answer.status);
    answer.reason =
        std::string(absl::StripAsciiWhitespace(text.substr(std::min(space + 4, text.size()))));
  } else if (colon != absl::string_view::npos) {
    answer.headers.emplace_back(absl::AsciiStrToLower(text.substr(0, colon)),
                                absl::StripAsciiWhitespace(text.substr(colon + 1)));
  } else if (text.empty() && sink_ != nullptr && answer.status == kHttpOk) {
    deadline_ = RealClock()->Monotonic() + call_.limits.silence;
  }
  return line.size();
}

size_t Transfer::OnBody(std::string_view piece) {
  HttpResponse& answer = exchange_.answer;
  if (sink_ != nullptr && answer.status == kHttpOk) {
    ended_ = !(*sink_)(piece);
    deadline_ = RealClock()->Monotonic() + call_.limits.silence;
    return ended_ ? 0 : piece.size();
  }
  if (answer.body.size() + piece.size() > call_.limits.body_bytes) {
    Fail(absl::StatusCode::kResourceExhausted, kTooLarge);
    return 0;
  }
  answer.body += piece;
  return piece.size();
}

// ---- how it ends -------------------------------------------------------------------------------

void Transfer::Fail(absl::StatusCode code, const std::string& words) {
  if (failed_) return;
  failed_ = true;
  const bool connecting = exchange_.stage == ExchangeStage::kNotSent;
  const HttpRequest& request = call_.request;
  const std::string target =
      request.target.substr(0, request.secret_query ? request.target.find('?') : std::string::npos);
  const std::string what = connecting ? "connecting" : absl::StrCat(request.method, " ", target);
  exchange_.status = Status(code, absl::StrCat(authority_, ": ", what, ": ", words));
}

void Transfer::Expire() {
  if (exchange_.stage != ExchangeStage::kNotSent) sockets_->ShutDown(local_port_);
  Fail(absl::StatusCode::kDeadlineExceeded, "no answer in time");
}

void Transfer::Cancel() {
  failed_ = true;
  exchange_.status = absl::CancelledError("the caller has stopped it");
}

void Transfer::Finish(CURLcode code) {
  if (failed_) return;
  if (code != CURLE_OK && !ended_) return SetStatusOf(code);
  exchange_.stage = ExchangeStage::kAnswered;
}

void Transfer::SetStatusOf(CURLcode code) {
  std::string words = words_[0] != 0 ? words_.data() : curl_.curl_easy_strerror(code);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Fail(absl::StatusCode::kDeadlineExceeded, "no answer in time");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return Fail(absl::StatusCode::kFailedPrecondition,
                  absl::StrCat("its certificate is not one that the authority vouches for under ",
                               "this name (", words, ")"));
    case CURLE_FILESIZE_EXCEEDED: return Fail(absl::StatusCode::kResourceExhausted, kTooLarge);
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_URL_MALFORMAT: return Fail(absl::StatusCode::kInvalidArgument, words);
    case CURLE_COULDNT_CONNECT: {
      long error = 0;
      (void)curl_.curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &error);
      if (error != 0) absl::StrAppend(&words, " (", strerror(static_cast<int>(error)), ")");
      return Fail(absl::StatusCode::kUnavailable, words);
    }
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return Fail(absl::StatusCode::kUnavailable, absl::StrCat("the server hung up (", words, ")"));
    default: return Fail(absl::StatusCode::kUnavailable, words);
  }
}

}  // namespace shirabe::net
