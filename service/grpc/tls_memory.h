/* What service/grpc/tls_memory.c, in C, and the server must agree on. */
#pragma once

/* Of a TLS record that gRPC sends, at most: each connection has a buffer for one. */
enum { kTlsRecordBytes = 4096 };
