// Reading a file of any size once: for its SHA-256, and to write a copy on the way. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shirabe::trial {

// Two flags that may end what takes long: of the whole program, and of this piece of work. Both
// outlive it; null = there is none.
struct Interrupt {
  const std::atomic<bool>* all = nullptr;
  const std::atomic<bool>* one = nullptr;
  explicit operator bool() const { return (all != nullptr && *all) || (one != nullptr && *one); }
};

struct FilePass {
  int from = -1;        // read from where it stands to its end
  int to = -1;          // written to, unless -1
  Interrupt stop = {};  // once true, the answer is kCancelled
  std::string shown;    // names the file in messages
};

struct FileContents {
  int64_t bytes = 0;
  std::string sha256;  // hexadecimal
};

StatusOr<FileContents> PassOver(const FilePass& pass);

Status WriteAll(int fd, std::string_view bytes, const std::string& shown);

// Makes an empty file share the bytes of another; what is written to one later is not seen in the
// other. False if the file system cannot do that.
bool CloneFile(int from, int to);

}  // namespace shirabe::trial
