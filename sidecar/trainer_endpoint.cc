#include "sidecar/trainer_endpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/text/number.h"
#include "metrics/trainer_status.h"

namespace shirabe::sidecar {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kRequestTimeout(10);
constexpr int64_t kMaxTrainerFile = 1 << 16;  // bytes

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// All of one call is of one step. Non-finite values stand bare, as Python writes them.
std::string LineOf(const std::vector<metrics::TrainerObservation>& points,
                   const std::optional<absl::Time>& time) {
  std::string line = "{";
  if (points.front().step) absl::StrAppend(&line, "\"step\": ", *points.front().step, ", ");
  if (time)
    absl::StrAppend(&line, "\"timestamp\": ",
                    FormatNumber(absl::ToDoubleSeconds(*time - absl::UnixEpoch())), ", ");
  absl::StrAppend(&line, "\"metrics\": {");
  const char* separator = "";
  for (const metrics::TrainerObservation& point : points) {
    absl::StrAppend(&line, separator, Quoted(point.metric), ": ", FormatNumber(point.value));
    separator = ", ";
  }
  return line + "}}\n";
}

// One write, so that no line of the program's comes between.
Status Append(const std::string& path, const std::string& line) {
  ASSIGN_OR_RETURN(const Fd fd, OpenBeneath("", path, O_WRONLY | O_APPEND | O_CREAT, 0666));
  if (fchmod(fd.get(), 0666) != 0) errno = 0;  // it is the program's, then
  const ssize_t written = write(fd.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  return ErrnoStatus("cannot write " + path, written < 0 ? errno : ENOSPC);
}

// What a call means, without how it came.
class Reader {
 public:
  Reader(const std::string& token, std::string file, std::function<void()> on_points)
      : authorization_("Bearer " + token),
        file_(std::move(file)),
        on_points_(std::move(on_points)) {}

  http::response<http::string_body> Answer(const http::request<http::string_body>& request) {
    if (request.method() != http::verb::post)
      return Respond(http::status::method_not_allowed, "POST");
    const auto given = request[http::field::authorization];
    if (!Matches({given.data(), given.size()})) {
      return Respond(http::status::unauthorized, "the bearer token is not this attempt's");
    }
    const Status taken = HandleStatus(request.body());
    if (taken.ok()) return Respond(http::status::ok, "");
    return Respond(absl::IsInvalidArgument(taken) ? http::status::bad_request
                                                  : http::status::service_unavailable,
                   Message(taken));
  }

 private:
  // In a time that says nothing about how much of it is right.
  bool Matches(const std::string& given) const {
    unsigned char differs = given.size() == authorization_.size() ? 0 : 1;
    for (size_t i = 0; i < given.size() && i < authorization_.size(); ++i) {
      differs = static_cast<unsigned char>(differs | (given[i] ^ authorization_[i]));
    }
    return differs == 0;
  }

  Status HandleStatus(const std::string& body) {
    ASSIGN_OR_RETURN(const metrics::TrainerStatus status, metrics::ParseTrainerStatus(body));
    metrics::TrainerState memory = memory_;
    const auto points = metrics::NewObservations(status, memory);
    if (!points.empty()) RETURN_IF_ERROR(Append(file_, LineOf(points, status.time)));
    memory_ = std::move(memory);  // what could not be written comes again
    if (!points.empty() && on_points_) on_points_();
    return absl::OkStatus();
  }

  static http::response<http::string_body> Respond(http::status code, const std::string& why) {
    http::response<http::string_body> response(code, 11);
    response.set(http::field::content_type, "application/json");
    response.body() = why.empty() ? "{}" : "{\"error\": " + Quoted(why) + "}";
    response.keep_alive(false);
    response.prepare_payload();
    return response;
  }

  const std::string authorization_;
  const std::string file_;
  const std::function<void()> on_points_;
  metrics::TrainerState memory_;
};

// One call. It lives as long as its operations.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(tcp::socket socket, Reader* reader) : stream_(std::move(socket)), reader_(reader) {
    parser_.body_limit(metrics::kMaxTrainerStatusBytes);
  }

  void Run() {
    stream_.expires_after(kRequestTimeout);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](error_code error, size_t) {
                       if (!error) self->Reply();
                     });
  }

 private:
  void Reply() {
    response_ = reader_->Answer(parser_.get());
    stream_.expires_after(kRequestTimeout);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code, size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> response_;
  Reader* const reader_;
};

class HttpTrainerEndpoint : public TrainerEndpoint {
 public:
  HttpTrainerEndpoint(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
  ~HttpTrainerEndpoint() override { context_.stop(); }

  Status Open(uint16_t port) {
    error_code error;
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on 127.0.0.1:", port, ": ", error.message()));
    }
    Accept();
    thread_ = std::jthread([this] { context_.run(); });
    return absl::OkStatus();
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      // Shared with its pending operations.
      if (!error) std::make_shared<Call>(std::move(socket), reader_.get())->Run();
      Accept();
    });
  }

  const std::unique_ptr<Reader> reader_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  std::jthread thread_;  // last: joined before the rest goes
};

}  // namespace

StatusOr<std::unique_ptr<TrainerEndpoint>> OpenTrainerEndpoint(const Pod& pod,
                                                               std::function<void()> on_points) {
  ASSIGN_OR_RETURN(const std::string url,
                   ReadBeneath("", pod.run(kTrainerUrlFile), kMaxTrainerFile));
  ASSIGN_OR_RETURN(const std::string token,
                   ReadBeneath("", pod.run(kTrainerTokenFile), kMaxTrainerFile));
  const std::string rest = url.substr(std::min(url.size(), url.rfind(':') + 1));
  int port = 0;
  if (!absl::SimpleAtoi(rest.substr(0, rest.find('/')), &port) || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(pod.run(kTrainerUrlFile) + " names no port");
  }
  auto door = std::make_unique<HttpTrainerEndpoint>(
      std::make_unique<Reader>(token, pod.paths.metrics_file, std::move(on_points)));
  RETURN_IF_ERROR(door->Open(static_cast<uint16_t>(port)));
  return door;
}

}  // namespace shirabe::sidecar
