#include "tests/kube/fake_api_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"

namespace shirabe::kube {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using Error = boost::system::error_code;
using HttpRequestIn = http::request<http::string_body>;

std::string Unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

FakeRequest Read(const HttpRequestIn& in) {
  FakeRequest request;
  request.method = std::string(in.method_string());
  const std::string target(in.target());
  request.target = target;
  const size_t mark = target.find('?');
  request.path = Unescape(target.substr(0, mark));
  if (mark != std::string::npos) {
    const std::vector<std::string> pairs = absl::StrSplit(target.substr(mark + 1), '&');
    for (const std::string& pair : pairs) {
      const size_t equals = pair.find('=');
      request.query[pair.substr(0, equals)] = Unescape(pair.substr(equals + 1));
    }
  }
  for (const auto& field : in) {
    request.headers[absl::AsciiStrToLower(std::string(field.name_string()))] =
        std::string(field.value());
  }
  request.body = in.body();
  return request;
}

}  // namespace

struct FakeApiServer::Impl {
  struct Connection {
    tcp::socket socket;
    std::thread thread = {};
  };

  explicit Impl(Handler what) : handler(std::move(what)) {}

  void Accept();
  void Serve(tcp::socket& socket);
  template <class Stream>
  void Converse(Stream& stream, tcp::socket& socket);

  Handler handler;
  asio::io_context io;
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::unique_ptr<asio::ssl::context> tls;
  int port = acceptor.local_endpoint().port();
  std::atomic<bool> stopping = false;
  mutable std::mutex mutex;
  std::condition_variable stopped;
  std::list<Connection> connections;
  std::vector<std::string> requests;
  std::thread thread;
};

namespace {

template <class Wire>
class LiveExchange : public FakeExchange {
 public:
  LiveExchange(FakeRequest request, Wire& stream, tcp::socket& socket, FakeApiServer::Impl& server)
      : request_(std::move(request)), stream_(stream), socket_(socket), server_(server) {}

  const FakeRequest& request() const override { return request_; }

  void Reply(int status, const std::string& body, const Headers& headers) override {
    std::string text = absl::StrCat("HTTP/1.1 ", status, " Fake\r\nContent-Length: ", body.size(),
                                    "\r\nContent-Type: application/json\r\n");
    for (const auto& [name, value] : headers) absl::StrAppend(&text, name, ": ", value, "\r\n");
    Raw(text + "\r\n" + body);
  }
  bool Send(const std::string& text) {
    Error error;
    asio::write(stream_, asio::buffer(text), error);
    return !error;
  }
  bool Stream(const std::string& piece) override {
    if (!streaming_) Raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    streaming_ = true;
    return Send(absl::StrCat(absl::Hex(piece.size()), "\r\n", piece, "\r\n"));
  }
  void EndStream() override { Raw("0\r\n\r\n"); }
  void Raw(const std::string& bytes) override { (void)Send(bytes); }
  void Reset() override {
    const std::lock_guard lock(server_.mutex);
    Error ignored;
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
  }
  bool KeepSilent(absl::Duration patience) override {
    const absl::Duration deadline = RealClock()->Monotonic() + patience;
    while (!server_.stopping && RealClock()->Monotonic() < deadline) {
      pollfd polled{socket_.native_handle(), POLLRDHUP, 0};
      if (poll(&polled, 1, 5) > 0) return false;
    }
    return !server_.stopping;
  }

 private:
  const FakeRequest request_;
  Wire& stream_;
  tcp::socket& socket_;
  FakeApiServer::Impl& server_;
  bool streaming_ = false;
};

}  // namespace

template <class Stream>
void FakeApiServer::Impl::Converse(Stream& stream, tcp::socket& socket) {
  boost::beast::flat_buffer buffer;
  while (!stopping && socket.is_open()) {
    HttpRequestIn in;
    Error error;
    http::read(stream, buffer, in, error);
    if (error) return;
    LiveExchange<Stream> exchange(Read(in), stream, socket, *this);
    {
      const std::lock_guard lock(mutex);
      requests.push_back(exchange.request().method + " " + std::string(in.target()));
    }
    handler(exchange);
  }
}

void FakeApiServer::Impl::Serve(tcp::socket& socket) {
  if (tls == nullptr) {
    Converse(socket, socket);
  } else {
    asio::ssl::stream<tcp::socket&> stream(socket, *tls);
    Error error;
    stream.handshake(asio::ssl::stream_base::server, error);
    if (!error) Converse(stream, socket);
  }
  // The descriptor stays until the end, where the destructor may still shut it down.
  const std::lock_guard lock(mutex);
  if (socket.is_open()) (void)shutdown(socket.native_handle(), SHUT_RDWR);
}

void FakeApiServer::Impl::Accept() {
  for (;;) {
    Error error;
    tcp::socket socket(io);
    acceptor.accept(socket, error);
    const std::lock_guard lock(mutex);
    if (stopping) return;
    if (error) continue;
    connections.push_back({std::move(socket)});
    Connection& connection = connections.back();
    connection.thread = std::thread([this, &connection] { Serve(connection.socket); });
  }
}

FakeApiServer::FakeApiServer(Handler handler, const Tls& tls)
    : impl_(std::make_unique<Impl>(std::move(handler))) {
  if (!tls.certificate.empty()) {
    impl_->tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    impl_->tls->use_certificate_chain(asio::buffer(tls.certificate));
    impl_->tls->use_private_key(asio::buffer(tls.key), asio::ssl::context::pem);
    if (!tls.client_ca.empty()) {
      impl_->tls->add_certificate_authority(asio::buffer(tls.client_ca));
      impl_->tls->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
    }
  }
  impl_->thread = std::thread([this] { impl_->Accept(); });
}

FakeApiServer::~FakeApiServer() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    for (auto& connection : impl_->connections) {
      if (connection.socket.is_open()) {
        (void)shutdown(connection.socket.native_handle(), SHUT_RDWR);
      }
    }
  }
  // Wakes the thread that accepts.
  asio::io_context io;
  tcp::socket last(io);
  Error ignored;
  last.connect(tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<uint16_t>(port())),
               ignored);
  impl_->thread.join();
  for (auto& connection : impl_->connections) connection.thread.join();
}

int FakeApiServer::port() const { return impl_->port; }

Config FakeApiServer::config() const {
  const char* scheme = impl_->tls == nullptr ? "http" : "https";
  return {.server = absl::StrCat(scheme, "://127.0.0.1:", port())};
}

int FakeApiServer::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return static_cast<int>(impl_->connections.size());
}

std::vector<std::string> FakeApiServer::requests() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->requests;
}

int FakeApiServer::Count(const std::string& prefix) const {
  const std::vector<std::string> all = requests();
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const std::string& one) { return one.starts_with(prefix); }));
}

std::string StatusText(int code, const std::string& reason, const std::string& message) {
  return Dump({{"kind", "Status"},
               {"apiVersion", "v1"},
               {"status", "Failure"},
               {"reason", reason},
               {"message", message},
               {"code", code}});
}

}  // namespace shirabe::kube
