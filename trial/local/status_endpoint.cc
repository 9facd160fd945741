#include "trial/local/status_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/mutex.h"
#include "base/text/json_text.h"

namespace shirabe::trial {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kStatusCallTimeout(10);
constexpr std::chrono::milliseconds kAcceptPause(100);  // without descriptors
constexpr size_t kReadSize = 16 << 10;

using Request = http::request<http::string_body>;

std::string Respond(http::status code, const std::string& why) {
  const std::string body = why.empty() ? "{}" : "{\"error\": " + JsonQuoted(why) + "}";
  return absl::StrCat("HTTP/1.1 ", static_cast<int>(code), " ",
                      std::string(http::obsolete_reason(code)),
                      "\r\nContent-Type: application/json\r\nConnection: close\r\n",
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

// In a time that says nothing about how much of it is right.
bool SameSecret(std::string_view given, std::string_view secret) {
  unsigned char differs = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size() && i < secret.size(); ++i) {
    differs = static_cast<unsigned char>(differs | (given[i] ^ secret[i]));
  }
  return differs == 0;
}

// Who may report what.
class StatusReporters {
 public:
  void Add(const std::string& path, const std::string& token, StatusEndpoint::Handler handler) {
    // Shared with the calls that are being handled when it is removed.
    auto reporter = std::make_shared<const Reporter>("Bearer " + token, std::move(handler));
    const MutexLock lock(mutex_);
    reporters_[path] = std::move(reporter);
  }
  void Remove(const std::string& path) {
    const MutexLock lock(mutex_);
    reporters_.erase(path);
  }

  std::string Answer(const Request& request) {
    const auto given = request[http::field::authorization];
    const auto reporter = Find(std::string(request.target()));
    if (reporter == nullptr || !SameSecret({given.data(), given.size()}, reporter->authorization)) {
      return Respond(http::status::unauthorized, "the bearer token is not this attempt's");
    }
    if (request.method() != http::verb::post) {
      return Respond(http::status::method_not_allowed, "POST a status");
    }
    const Status handled = reporter->handler(request.body());
    if (handled.ok()) return Respond(http::status::ok, "");
    return Respond(absl::IsInvalidArgument(handled) ? http::status::bad_request
                                                    : http::status::service_unavailable,
                   Message(handled));
  }

 private:
  struct Reporter {
    Reporter(std::string secret, StatusEndpoint::Handler what)
        : authorization(std::move(secret)), handler(std::move(what)) {}
    const std::string authorization;
    const StatusEndpoint::Handler handler;
  };

  std::shared_ptr<const Reporter> Find(const std::string& path) {  // shared: see Add
    const MutexLock lock(mutex_);
    const auto found = reporters_.find(path);
    return found == reporters_.end() ? nullptr : found->second;
  }

  Mutex mutex_;
  using SharedReporter = std::shared_ptr<const Reporter>;  // shared with running calls
  std::map<std::string, SharedReporter> reporters_ ABSL_GUARDED_BY(mutex_);
};

// One request and its answer. It lives as long as its operations. Beast parses the request, but its
// operations on messages would be a seventh of what this folder and service/http take to compile.
class StatusCall : public std::enable_shared_from_this<StatusCall> {  // shared with them
 public:
  StatusCall(tcp::socket socket, StatusReporters* reporters, size_t max_body)
      : stream_(std::move(socket)), reporters_(reporters) {
    parser_.body_limit(max_body);
    parser_.eager(true);  // the body too, as it comes
  }

  void Run() {
    stream_.expires_after(kStatusCallTimeout);
    Read();
  }
  void Drop() { stream_.close(); }

 private:
  void Read() {
    stream_.async_read_some(buffer_.prepare(kReadSize),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                              if (!error) self->Take(bytes);
                            });
  }

  void Take(size_t bytes) {
    buffer_.commit(bytes);
    error_code wrong;
    buffer_.consume(parser_.put(buffer_.data(), wrong));
    if (wrong == http::error::body_limit) {
      Reply(Respond(http::status::payload_too_large, "it is too large"));
    } else if (wrong && wrong != http::error::need_more) {
      return;  // no HTTP: the connection ends
    } else if (parser_.is_done()) {
      Reply(reporters_->Answer(parser_.get()));
    } else {
      Read();
    }
  }

  void Reply(std::string response) {
    response_ = std::move(response);
    stream_.expires_after(kStatusCallTimeout);
    asio::async_write(stream_, asio::buffer(response_),
                      [self = shared_from_this()](error_code, size_t) {
                        error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  std::string response_;
  StatusReporters* const reporters_;
};

// No program that we start inherits it: it would keep the port after our end.
StatusOr<Fd> ListenOnLoopback(uint16_t port) {
  const std::string what = absl::StrCat("cannot listen on 127.0.0.1:", port);
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::UnavailableError(Message(ErrnoStatus(what, errno)));
  const int on = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return absl::UnavailableError(Message(ErrnoStatus(what, errno)));
  }
  return fd;
}

StatusOr<uint16_t> PortOf(const Fd& fd) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    return ntohs(address.sin_port);
  }
  return absl::UnavailableError(Message(ErrnoStatus("cannot learn a port", errno)));
}

class HttpStatusEndpoint : public StatusEndpoint {
 public:
  explicit HttpStatusEndpoint(size_t max_body) : max_body_(max_body) {}
  ~HttpStatusEndpoint() override { context_.stop(); }

  StatusOr<uint16_t> Listen(uint16_t port) override {
    const MutexLock lock(mutex_);
    if (port != 0 && std::count(ports_.begin(), ports_.end(), port) > 0) return port;
    if (ports_.size() >= kMaxStatusPorts) {
      return absl::UnavailableError(absl::StrCat("cannot listen on 127.0.0.1:", port,
                                                 " also: ", kMaxStatusPorts, " ports are in use"));
    }
    ASSIGN_OR_RETURN(Fd fd, ListenOnLoopback(port));
    ASSIGN_OR_RETURN(const uint16_t actual, PortOf(fd));
    ports_.push_back(actual);
    // Shared with its pending operations.
    auto listener = std::make_shared<Listener>(context_, fd.release());
    asio::post(context_, [this, listener] { Await(listener); });
    if (!thread_.joinable()) {
      thread_ = std::jthread([this] {
        const auto work = asio::make_work_guard(context_);
        context_.run();
      });
    }
    return actual;
  }

  void Add(const std::string& path, const std::string& token, Handler handler) override {
    reporters_.Add(path, token, std::move(handler));
  }
  void Remove(const std::string& path) override { reporters_.Remove(path); }

 private:
  struct Listener {
    Listener(asio::io_context& context, int fd)
        : acceptor(context, tcp::v4(), fd), pause(context) {}
    tcp::acceptor acceptor;
    asio::steady_timer pause;
  };
  using SharedListener = std::shared_ptr<Listener>;  // with its pending operations

  void Await(const SharedListener& listener) {
    listener->acceptor.async_wait(tcp::acceptor::wait_read, [this, listener](error_code error) {
      if (error == asio::error::operation_aborted) return;
      Accept(listener);
    });
  }

  void Accept(const SharedListener& listener) {
    const int fd =
        accept4(listener->acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      Begin(tcp::socket(context_, tcp::v4(), fd));
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      listener->pause.expires_after(kAcceptPause);
      listener->pause.async_wait([this, listener](error_code) { Await(listener); });
      return;
    }
    Await(listener);
  }

  void Begin(tcp::socket socket) {
    std::erase_if(calls_, [](const auto& call) { return call.expired(); });
    if (calls_.size() >= kMaxStatusCalls) {
      if (const auto oldest = calls_.front().lock()) oldest->Drop();
      calls_.pop_front();
    }
    // Shared with its pending operations.
    const auto call = std::make_shared<StatusCall>(std::move(socket), &reporters_, max_body_);
    calls_.push_back(call);
    call->Run();
  }

  const size_t max_body_;
  StatusReporters reporters_;
  Mutex mutex_;
  std::vector<uint16_t> ports_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::weak_ptr<StatusCall>> calls_;  // of the thread
  asio::io_context context_{1};
  std::jthread thread_ ABSL_GUARDED_BY(mutex_);  // last: joined before the rest goes
};

}  // namespace

std::unique_ptr<StatusEndpoint> StatusEndpoint::Create(size_t max_body) {
  return std::make_unique<HttpStatusEndpoint>(max_body);
}

}  // namespace shirabe::trial
