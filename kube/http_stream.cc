#include "kube/http_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/any_stream.h"

namespace shirabe::kube {
namespace {

namespace http = beast::http;
using tcp = asio::ip::tcp;
using Error = boost::system::error_code;
using Parser = http::response_parser<http::buffer_body>;

constexpr size_t kReadChunkBytes = 64 << 10;
constexpr uint32_t kHeaderBytes = 64 << 10;

std::string HeadOf(const HttpRequest& request, const Endpoint& endpoint) {
  std::string head = absl::StrCat(request.method, " ", endpoint.prefix, request.target,
                                  " HTTP/1.1\r\nHost: ", endpoint.Address(),
                                  "\r\nUser-Agent: shirabe/" SHIRABE_VERSION
                                  "\r\nAccept: application/json, */*;q=0.1\r\n");
  if (!request.authorization.empty()) {
    absl::StrAppend(&head, "Authorization: ", request.authorization, "\r\n");
  }
  if (!request.content_type.empty()) {
    absl::StrAppend(&head, "Content-Type: ", request.content_type, "\r\n");
  }
  for (const auto& header : request.headers) {
    absl::StrAppend(&head, header.first, ": ", header.second, "\r\n");
  }
  if (!request.body.empty() || request.method == "POST") {
    absl::StrAppend(&head, "Content-Length: ", request.body.size(), "\r\n");
  }
  return head + "\r\n";
}

// Only the form in seconds: the other, a date, would need the server's clock.
std::optional<absl::Duration> RetryAfter(const Parser& parser) {
  const auto field = parser.get()[http::field::retry_after];
  int seconds = 0;
  if (!absl::SimpleAtoi(std::string(field), &seconds) || seconds < 0) return std::nullopt;
  return absl::Seconds(seconds);
}

bool IsCertificateProblem(const Error& error) {
  return error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(error.value()) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

// A log that is followed may be silent for hours; the keep-alive finds out whether the other side
// is still there. That a system refuses an option is no reason not to speak.
void SetOptions(int socket) {
  const auto set = [socket](int level, int option, int value) {
    (void)setsockopt(socket, level, option, &value, sizeof value);
  };
  // Asio leaves it open to what we start; see user.exec, and trials on this machine.
  (void)fcntl(socket, F_SETFD, FD_CLOEXEC);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

class BeastStream : public HttpStream {
 public:
  BeastStream(const Endpoint& endpoint, asio::ssl::context* tls)
      : endpoint_(endpoint), stream_(AnyStream::Socket(io_), tls), resolver_(io_) {}

  Status Connect(absl::Duration patience, std::stop_token stop);
  Exchange Do(const HttpRequest& request, const Timeouts& waits, const BodyCallback* sink,
              std::stop_token stop) override;
  bool reusable() override;

 private:
  // Starts one asynchronous operation and waits for its end.
  template <class Start>
  Error Run(const std::stop_token& stop, Start start);
  Error Resolve(const std::stop_token& stop, tcp::resolver::results_type& found);
  Error Handshake(const std::stop_token& stop);
  Error Write(const std::string& text, const std::stop_token& stop);
  // Told as it comes, or else kept.
  struct Body {
    const BodyCallback* told = nullptr;
    std::string* kept = nullptr;
  };
  Error ReadBody(Parser& parser, const Timeouts& waits, const Body& body,
                 const std::stop_token& stop);
  void Expire(absl::Duration after);
  // What an operation's error means, in words.
  Status Problem(const Error& error, const std::string& what, const std::stop_token& stop) const;

  const Endpoint endpoint_;
  asio::io_context io_{1};
  AnyStream stream_;
  asio::ip::basic_resolver<tcp, AnyStream::executor_type> resolver_;
  beast::flat_buffer buffer_;
  std::string out_;
  bool open_ = false;  // and in order: another exchange can follow
};

template <class Start>
Error BeastStream::Run(const std::stop_token& stop, Start start) {
  Error result = asio::error::operation_aborted;
  // Posted, because the stream belongs to the thread that runs io_: this one, below. Posted too
  // early, it waits for that; posted too late, it finds nothing to end.
  const std::stop_callback cancel(stop, [this] {
    asio::post(io_, [this] {
      resolver_.cancel();
      stream_.lowest().close();
    });
  });
  start([&result](Error error, auto&&...) { result = error; });
  io_.restart();
  io_.run();
  return result;
}

void BeastStream::Expire(absl::Duration after) {
  if (after == absl::InfiniteDuration()) return stream_.lowest().expires_never();
  stream_.lowest().expires_after(absl::ToChronoMilliseconds(after));
}

Status BeastStream::Problem(const Error& error, const std::string& what,
                            const std::stop_token& stop) const {
  if (stop.stop_requested()) return absl::CancelledError("the caller has stopped it");
  const std::string where = absl::StrCat(endpoint_.Address(), ": ", what);
  if (IsCertificateProblem(error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        where,
        ": its certificate is not one that the cluster's certificate-authority vouches for "
        "under the name ",
        endpoint_.name, " (", error.message(),
        "): correct certificate-authority or tls-server-name in the kubeconfig"));
  }
  if (error == beast::error::timeout) {
    return absl::DeadlineExceededError(absl::StrCat(where, ": no answer in time"));
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message ||
      error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    return absl::UnavailableError(absl::StrCat(where, ": the server hung up"));
  }
  if (error == http::error::body_limit || error == asio::error::message_size) {
    return absl::ResourceExhaustedError(absl::StrCat(where, ": the answer is too large"));
  }
  return absl::UnavailableError(absl::StrCat(where, ": ", error.message()));
}

Error BeastStream::Resolve(const std::stop_token& stop, tcp::resolver::results_type& found) {
  return Run(stop, [&](auto done) {
    resolver_.async_resolve(endpoint_.host, endpoint_.port,
                            [done, &found](Error error, tcp::resolver::results_type results) {
                              found = std::move(results);
                              done(error);
                            });
  });
}

Error BeastStream::Handshake(const std::stop_token& stop) {
  AnyStream::Tls& tls = *stream_.tls();
  Error address;
  asio::ip::make_address(endpoint_.name, address);
  // The name indication is for names only (RFC 6066 §3).
  if (address) SSL_set_tlsext_host_name(tls.native_handle(), endpoint_.name.c_str());
  if ((SSL_get_verify_mode(tls.native_handle()) & SSL_VERIFY_PEER) != 0) {
    tls.set_verify_callback(asio::ssl::host_name_verification(endpoint_.name));
  }
  return Run(stop, [&](auto done) { tls.async_handshake(asio::ssl::stream_base::client, done); });
}

Status BeastStream::Connect(absl::Duration patience, std::stop_token stop) {
  tcp::resolver::results_type found;
  if (const Error error = Resolve(stop, found)) return Problem(error, "finding its address", stop);
  Expire(patience);
  Error error = Run(stop, [&](auto done) { stream_.lowest().async_connect(found, done); });
  if (error) return Problem(error, "connecting", stop);
  SetOptions(stream_.lowest().socket().native_handle());
  if (stream_.tls() != nullptr) {
    if (error = Handshake(stop); error) return Problem(error, "TLS handshake", stop);
  }
  open_ = true;
  return absl::OkStatus();
}

Error BeastStream::Write(const std::string& text, const std::stop_token& stop) {
  return Run(stop, [&](auto done) { asio::async_write(stream_, asio::buffer(text), done); });
}

Error BeastStream::ReadBody(Parser& parser, const Timeouts& waits, const Body& body,
                            const std::stop_token& stop) {
  std::array<char, kReadChunkBytes> piece;
  while (!parser.is_done()) {
    auto& into = parser.get().body();
    into.data = piece.data();
    into.size = piece.size();
    if (body.told != nullptr) Expire(waits.silence);
    Error error =
        Run(stop, [&](auto done) { http::async_read_some(stream_, buffer_, parser, done); });
    if (error == http::error::need_buffer) error = {};
    if (error) return error;
    const std::string_view text(piece.data(), piece.size() - into.size);
    if (body.told != nullptr) {
      if (!text.empty() && !(*body.told)(text)) return {};
    } else if (body.kept->size() + text.size() > waits.body_bytes) {
      return asio::error::message_size;
    } else {
      *body.kept += text;
    }
  }
  return {};
}

Exchange BeastStream::Do(const HttpRequest& request, const Timeouts& waits,
                         const BodyCallback* sink, std::stop_token stop) {
  Exchange exchange;
  const std::string what = request.method + " " + request.target;
  const auto fail = [&](const Error& error) {
    exchange.status = Problem(error, what, stop);
    return exchange;
  };
  open_ = false;
  Expire(waits.answer);
  out_ = HeadOf(request, endpoint_) + request.body;
  exchange.stage = ExchangeStage::kSent;
  if (const Error error = Write(out_, stop)) return fail(error);
  Parser parser;
  parser.header_limit(kHeaderBytes);
  parser.body_limit(boost::none);
  const Error head =
      Run(stop, [&](auto done) { http::async_read_header(stream_, buffer_, parser, done); });
  if (parser.got_some()) exchange.stage = ExchangeStage::kAnswering;
  if (head) return fail(head);
  exchange.answer.status = parser.get().result_int();
  exchange.answer.retry_after = RetryAfter(parser);
  const Body body{exchange.answer.status == 200 ? sink : nullptr, &exchange.answer.body};
  if (const Error error = ReadBody(parser, waits, body, stop)) {
    return fail(error);
  }
  exchange.stage = ExchangeStage::kAnswered;
  // A stop that came too late for this exchange may still close the connection.
  open_ = parser.is_done() && parser.keep_alive() && !stop.stop_requested();
  return exchange;
}

bool BeastStream::reusable() {
  if (!open_ || buffer_.size() > 0) return false;
  // What can be read now is the server's goodbye, or nothing that we asked for.
  char byte = 0;
  const ssize_t n =
      recv(stream_.lowest().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

StatusOr<std::unique_ptr<HttpStream>> HttpStream::Open(const Endpoint& endpoint,
                                                       asio::ssl::context* tls,
                                                       absl::Duration patience,
                                                       std::stop_token stop) {
  auto connection = std::make_unique<BeastStream>(endpoint, tls);
  RETURN_IF_ERROR(connection->Connect(patience, std::move(stop)));
  return connection;
}

namespace {

namespace ssl = boost::asio::ssl;

// The text itself is never repeated: a key is a secret, and so may be what stands in its place.
Status Refusal(const std::string& field, const Error& error) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is not what its name says, in PEM: ", error.message()));
}

Error TrustAuthorities(const Config& config, ssl::context& tls) {
  Error error;
  if (config.insecure) {
    tls.set_verify_mode(ssl::verify_none, error);
    return error;
  }
  tls.set_verify_mode(ssl::verify_peer, error);
  if (config.ca.empty()) {
    tls.set_default_verify_paths(error);
  } else {
    tls.add_certificate_authority(boost::asio::buffer(config.ca), error);
  }
  return error;
}

}  // namespace

StatusOr<std::unique_ptr<ssl::context>> MakeTls(const Config& config,
                                                const std::string& certificate,
                                                const std::string& key) {
  auto tls = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls->native_handle(), TLS1_2_VERSION);
  if (const Error error = TrustAuthorities(config, *tls)) {
    return Refusal("cluster.certificate-authority", error);
  }
  if (certificate.empty() && key.empty()) return tls;
  Error error;
  tls->use_certificate_chain(boost::asio::buffer(certificate), error);
  if (error) return Refusal("user.client-certificate", error);
  // Without it an encrypted key makes OpenSSL ask on the terminal.
  tls->set_password_callback([](size_t, ssl::context::password_purpose) { return ""; }, error);
  tls->use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
  // Also where it is the key of another certificate.
  if (error) return Refusal("user.client-key", error);
  return tls;
}

}  // namespace shirabe::kube
