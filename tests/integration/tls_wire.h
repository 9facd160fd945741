// One request over TLS.
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <memory>
#include <string>

namespace shirabe::service {

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// Files, PEM.
struct TlsClient {
  std::string authority;    // of the server's certificate
  std::string certificate;  // that it shows; "" = none
  std::string key;
};

// The first bytes of the reply to a request on a connection; "" if there was none.
inline std::string AskOverTls(int socket, const std::string& request, const TlsClient& client) {
  const std::unique_ptr<SSL_CTX, SslFree> context(SSL_CTX_new(TLS_client_method()));
  if (!client.certificate.empty()) {
    SSL_CTX_use_certificate_file(context.get(), client.certificate.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context.get(), client.key.c_str(), SSL_FILETYPE_PEM);
  }
  SSL_CTX_load_verify_locations(context.get(), client.authority.c_str(), nullptr);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const timeval patience = {20, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::unique_ptr<SSL, SslFree> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), socket);
  if (SSL_connect(ssl.get()) != 1) return "";
  if (SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())) <= 0) return "";
  char buffer[4096];
  const int got = SSL_read(ssl.get(), buffer, sizeof buffer);
  return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : "";
}

}  // namespace shirabe::service
