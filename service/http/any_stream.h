// A connection with or without TLS, as one type: what reads and writes HTTP over it is compiled
// once. For the few files that include Boost.Beast: http_connection.cc and http_server.cc. Used by
// the thread that runs its io_context.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/system/error_code.hpp>

namespace shirabe::service {

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

  // For any completion token: what they return is the token's affair.
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, Transferred>(Reading{this}, token, buffers);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, Transferred>(Writing{this}, token, buffers);
  }
  // Of TLS only.
  template <class Token>
  auto async_handshake(Token&& token) {
    return asio::async_initiate<Token, Done>(Handshaking{this}, token);
  }
  template <class Token>
  auto async_shutdown(Token&& token) {
    return asio::async_initiate<Token, Done>(Ending{this}, token);
  }

 private:
  using Transferred = void(boost::system::error_code, std::size_t);
  using Done = void(boost::system::error_code);

  struct Reading {
    AnyStream* stream;
    template <class Handler, class Buffers>
    void operator()(Handler&& handler, const Buffers& buffers) const {
      if (stream->tls_ != nullptr) {
        stream->tls_->async_read_some(buffers, std::forward<Handler>(handler));
      } else {
        stream->plain_->async_read_some(buffers, std::forward<Handler>(handler));
      }
    }
  };
  struct Writing {
    AnyStream* stream;
    template <class Handler, class Buffers>
    void operator()(Handler&& handler, const Buffers& buffers) const {
      if (stream->tls_ != nullptr) {
        stream->tls_->async_write_some(buffers, std::forward<Handler>(handler));
      } else {
        stream->plain_->async_write_some(buffers, std::forward<Handler>(handler));
      }
    }
  };
  struct Handshaking {
    AnyStream* stream;
    template <class Handler>
    void operator()(Handler&& handler) const {
      stream->tls_->async_handshake(asio::ssl::stream_base::server, std::forward<Handler>(handler));
    }
  };
  struct Ending {
    AnyStream* stream;
    template <class Handler>
    void operator()(Handler&& handler) const {
      stream->tls_->async_shutdown(std::forward<Handler>(handler));
    }
  };

  std::optional<Plain> plain_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace shirabe::service
