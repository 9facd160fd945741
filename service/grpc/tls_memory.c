// What a connection by TLS holds in a gRPC server, which has one for each sidecar, idle most of the
// time. gRPC 1.51 lets no caller choose, so the linker leads four calls here (`--wrap` in
// CMakeLists.txt). Only memory depends on it: a program without it does the same. Any thread.
#include "service/grpc/tls_memory.h"

#include <grpc/slice.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

enum {
  // What gRPC reads from a socket, decrypts and encrypts into; each connection has one of each.
  kTheirSlice = 8192,
  kSlice = 2048,
  // Between the socket and OpenSSL, 17 kB each way by default. gRPC loses what a handshake receives
  // at once and does not fit: one slice, or more once a round had 6.5 kB, which clients without
  // certificates never send.
  kReceived = kSlice,
  // A record that is sent must fit, of at most kTlsRecordBytes. What else a
  // handshake writes is fetched in parts.
  kSent = 4096,
};
_Static_assert((int)kSent >= (int)kTlsRecordBytes,
               "gRPC loses the end of a record that does not fit");

// While a gRPC server that asks for no certificates makes a connection's objects.
static _Thread_local int small;

// tsi_ssl_server_handshaker_factory_create_handshaker
#define FACTORY "tsi_ssl_server_handshaker_factory"
#define HANDSHAKER "_Z51" FACTORY "_create_handshakerP33" FACTORY "mmPP14tsi_handshaker"
int real_handshaker(void* factory, size_t received, size_t sent,
                    void** made) __asm__("__real_" HANDSHAKER);
int handshaker(void* factory, size_t received, size_t sent,
               void** made) __asm__("__wrap_" HANDSHAKER);
int handshaker(void* factory, size_t received, size_t sent, void** made) {
  small = 1;
  const int result = real_handshaker(factory, received, sent, made);
  small = 0;
  return result;
}

// Its buffers of 16 kB are there only while a record is: as Boost.Asio and curl ask for it.
SSL* __real_SSL_new(SSL_CTX* context);
SSL* __wrap_SSL_new(SSL_CTX* context) {
  SSL* const ssl = __real_SSL_new(context);
  if (ssl == NULL) return NULL;
  SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
  if (SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) small = 0;
  return ssl;
}

int __real_BIO_new_bio_pair(BIO** network, size_t received, BIO** ssl, size_t sent);
int __wrap_BIO_new_bio_pair(BIO** network, size_t received, BIO** ssl, size_t sent) {
  return small ? __real_BIO_new_bio_pair(network, kReceived, ssl, kSent)
               : __real_BIO_new_bio_pair(network, received, ssl, sent);
}

// grpc_event_engine::experimental::MemoryAllocator::MakeSlice. For megabytes it is asked for 64 kB.
#define ALLOCATOR "N17grpc_event_engine12experimental15MemoryAllocator"
#define MAKE_SLICE "_Z" ALLOCATOR "9MakeSliceENS0_13MemoryRequestE"
struct request {
  size_t min, max;
};
grpc_slice real_make_slice(void* allocator, struct request request) __asm__("__real_" MAKE_SLICE);
grpc_slice make_slice(void* allocator, struct request request) __asm__("__wrap_" MAKE_SLICE);
grpc_slice make_slice(void* allocator, struct request request) {
  if (request.min == kTheirSlice && request.max == kTheirSlice) request.min = request.max = kSlice;
  return real_make_slice(allocator, request);
}
