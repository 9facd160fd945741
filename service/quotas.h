// What one caller may hold of a server at the same time, at all of its doors together. Made by the
// server before its doors. Thread-safe.
#pragma once

#include "base/quota.h"

namespace shirabe::service {

struct Quotas {
  // Calls that wait for a point, a change or a deletion. They hold no thread.
  Quota waits{{.what = "waiting calls", .caller = 256, .all = 8192}};
  // Event streams and followed logs.
  Quota streams{{.what = "event streams", .caller = 512, .all = 8192}};
  // Of request bodies that are being read or are at work, as they are received.
  Quota bodies{{.what = "bytes of request bodies", .caller = 64 << 20, .all = 512 << 20}};
  // Of gRPC, each of which holds a thread while it is at work.
  Quota calls{{.what = "calls at work", .caller = 128, .all = 0}};
};

}  // namespace shirabe::service
