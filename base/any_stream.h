// A connection with or without TLS, as one type: what reads and writes HTTP over it is compiled
// once. For the few files that include Boost.Beast: service/http/http_session.cc and
// http_server.cc, kube/http_stream.cc. Used by the thread that runs its io_context.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

namespace shirabe {

namespace asio = boost::asio;
namespace beast = boost::beast;

class AnyStream {
 public:
  using executor_type = asio::io_context::executor_type;
  using Socket = asio::basic_stream_socket<asio::ip::tcp, executor_type>;
  using Plain = beast::basic_stream<asio::ip::tcp, executor_type>;
  using Tls = beast::ssl_stream<Plain>;

  // The context, which outlives the stream, is null for one without TLS.
  AnyStream(Socket socket, asio::ssl::context* tls) {
    if (tls == nullptr) {
      plain_.emplace(std::move(socket));
    } else {
      tls_ = std::make_unique<Tls>(std::move(socket), *tls);
    }
  }

  executor_type get_executor() { return lowest().get_executor(); }
  Plain& lowest() { return tls_ == nullptr ? *plain_ : beast::get_lowest_layer(*tls_); }
  Tls* tls() { return tls_.get(); }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_ != nullptr) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      plain_->async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_ != nullptr) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      plain_->async_write_some(buffers, std::forward<Handler>(handler));
    }
  }

 private:
  std::optional<Plain> plain_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace shirabe
