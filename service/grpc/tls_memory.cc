// What an idle connection by TLS holds. A server has one for each pod of a trial, which says a few
// hundred bytes now and then, and OpenSSL keeps 70 kB of buffers for it as gRPC asks for them. The
// linker has what calls these two functions call the ones below (CMakeLists.txt, `--wrap`), since
// gRPC keeps its SSL objects to itself. Any thread.
#include <openssl/bio.h>
#include <openssl/ssl.h>

namespace {

// What a peer has sent and OpenSSL has not taken yet: gRPC writes it in pieces that fit. The other
// direction must hold a whole record, and has OpenSSL's own size.
constexpr size_t kReceivedBytes = 2048;

}  // namespace

extern "C" {

SSL* __real_SSL_new(SSL_CTX* context);
int __real_BIO_new_bio_pair(BIO** network, size_t received, BIO** ssl, size_t sent);

// Its buffers of 16 kB for reading and writing are given back between records.
SSL* __wrap_SSL_new(SSL_CTX* context) {
  SSL* const ssl = __real_SSL_new(context);
  if (ssl != nullptr) SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
  return ssl;
}

// gRPC's call: 0 is the size by default.
int __wrap_BIO_new_bio_pair(BIO** network, size_t received, BIO** ssl, size_t sent) {
  return __real_BIO_new_bio_pair(network, received == 0 ? kReceivedBytes : received, ssl, sent);
}

}  // extern "C"
