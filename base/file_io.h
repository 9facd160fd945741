// Files, whole: small ones at once, and large ones that appear when they are complete (NewFile).
// Errors name the path. The functions are thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
// So many bytes from there on, fewer where the file ends before; its offset stays as it is.
StatusOr<std::string> ReadFileRange(int fd, int64_t offset, int64_t bytes, const std::string& path);
// All of the bytes; `shown` names the file in errors.
Status WriteAll(int fd, std::string_view bytes, const std::string& shown);
// Seen whole or not at all: written beside, to PATH.tmp, and renamed over; one writer at a time.
// With `durable`, also after a power cut.
Status WriteFileAtomic(const std::string& path, const std::string& contents, bool durable = false);
// mkdir -p.
Status MakeDirs(const std::string& path);

// A file that appears whole or not at all, however large: it is written without a name, which it
// gets when it is complete. A process that is killed meanwhile leaves nothing (where the file
// system knows no files without names, PATH.*.partial). Its owner alone may read it. Used by one
// thread.
class NewFile {
 public:
  // kAlreadyExists if there is anything of that name, a link included; with `replace` that is what
  // it replaces, never what a link points to.
  static StatusOr<NewFile> Create(const std::string& path, bool replace);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int fd() const { return fd_.get(); }
  // Gives it its name, once all that was written is on the disk.
  Status Publish();

 private:
  NewFile(std::string path, bool replace) : path_(std::move(path)), replace_(replace) {}
  Status Open();
  Status Link(const std::string& name);

  Fd fd_;
  std::string path_;
  bool replace_;
  std::string partial_;  // the name that it has for now; "" = none
};

}  // namespace shirabe
