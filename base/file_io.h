// Small files, whole. Errors name the path. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace shirabe {

// An open descriptor, closed at the end of its scope.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();

 private:
  int fd_;
};

// kNotFound if there is no such file; kResourceExhausted if it is larger than `max_bytes`.
StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes = 64 << 20);
// What is left of an open file; `path` names it in errors. kResourceExhausted as above.
StatusOr<std::string> ReadAll(const Fd& fd, const std::string& path, int64_t max_bytes);
// Seen whole or not at all: written beside, to PATH.tmp, and renamed over; one writer at a time.
// With `durable`, also after a power cut.
Status WriteFileAtomic(const std::string& path, const std::string& contents, bool durable = false);
// mkdir -p.
Status MakeDirs(const std::string& path);

}  // namespace shirabe
