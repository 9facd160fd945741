// A plain socket that speaks HTTP as badly as a test wants: for what a well-behaved client hides.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file_io.h"

namespace shirabe::service {

struct WireReply {
  int status = 0;  // 0 = the connection ended
  std::string head;
  std::string body;
};

class Wire {
 public:
  explicit Wire(int port, int receive_buffer = 0)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }
  int fd() const { return socket_.get(); }
  // False if the other side does not take it.
  bool Send(const std::string& text) const {
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t n = send(fd(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }
  void FinishSending() const { shutdown(fd(), SHUT_WR); }

  // Until `text` has been read; false if the connection ends before, or it takes too long.
  bool ReadUntil(const std::string& text, absl::Duration patience = absl::Seconds(20)) {
    const absl::Duration deadline = RealClock()->Monotonic() + patience;
    while (!absl::StrContains(data_, text)) {
      if (!ReadMore(deadline)) return false;
    }
    return true;
  }
  // Whether the other side closes the connection.
  bool ReadToEnd(absl::Duration patience = absl::Seconds(20)) {
    const absl::Duration deadline = RealClock()->Monotonic() + patience;
    while (ReadMore(deadline)) {
    }
    return ended_;
  }

  // One reply with a Content-Length, or without a body where `head` was asked for.
  WireReply ReadReply(bool head = false) {
    WireReply reply;
    if (!ReadUntil("\r\n\r\n")) return reply;
    const size_t end = data_.find("\r\n\r\n") + 4;
    reply.head = data_.substr(0, end);
    data_.erase(0, end);
    int length = 0;
    const size_t at = absl::AsciiStrToLower(reply.head).find("content-length: ");
    if (at != std::string::npos) length = std::stoi(reply.head.substr(at + 16));
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(20);
    while (!head && data_.size() < static_cast<size_t>(length) && ReadMore(deadline)) {
    }
    if (!head) {
      reply.body = data_.substr(0, length);
      data_.erase(0, length);
    }
    reply.status = std::stoi(reply.head.substr(9, 3));
    return reply;
  }

  std::string& data() { return data_; }

 private:
  bool ReadMore(absl::Duration deadline) {
    const absl::Duration left = deadline - RealClock()->Monotonic();
    pollfd wait = {fd(), POLLIN, 0};
    if (left <= absl::ZeroDuration() ||
        poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) {
      return false;
    }
    char buffer[65536];
    const ssize_t n = recv(fd(), buffer, sizeof buffer, 0);
    ended_ = n <= 0;
    if (n > 0) data_.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  Fd socket_;
  bool connected_ = false;
  bool ended_ = false;
  std::string data_;
};

// A request with this token and, unless it is empty, this body.
inline std::string RequestText(const std::string& line, const std::string& token,
                               const std::string& body = "") {
  std::string text = absl::StrCat(line, " HTTP/1.1\r\nHost: localhost\r\n");
  if (!token.empty()) absl::StrAppend(&text, "Authorization: Bearer ", token, "\r\n");
  if (!body.empty()) absl::StrAppend(&text, "Content-Length: ", body.size(), "\r\n");
  return absl::StrCat(text, "\r\n", body);
}

// ---- over TLS ----------------------------------------------------------------------------------

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// Files, PEM.
struct TlsClient {
  std::string authority;    // of the server's certificate; "" = whichever it is
  std::string certificate;  // that it shows; "" = none
  std::string key;
};

// The reply to a request on a connection: to its end, or, where the connection stays open, its
// first bytes; "" if there was none.
inline std::string AskOverTls(int socket, const std::string& request, const TlsClient& client) {
  const std::unique_ptr<SSL_CTX, SslFree> context(SSL_CTX_new(TLS_client_method()));
  if (!client.certificate.empty()) {
    SSL_CTX_use_certificate_file(context.get(), client.certificate.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context.get(), client.key.c_str(), SSL_FILETYPE_PEM);
  }
  if (!client.authority.empty()) {
    SSL_CTX_load_verify_locations(context.get(), client.authority.c_str(), nullptr);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  const timeval patience = {20, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::unique_ptr<SSL, SslFree> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), socket);
  if (SSL_connect(ssl.get()) != 1) return "";
  if (SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())) <= 0) return "";
  std::string reply;
  char buffer[4096];
  do {
    const int got = SSL_read(ssl.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    reply.append(buffer, static_cast<size_t>(got));
  } while (absl::StrContains(request, "Connection: close"));
  return reply;
}

}  // namespace shirabe::service
