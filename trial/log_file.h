// The log of an attempt on this machine, which takes a bounded part of the disk however much its
// program prints: its first and its last megabytes are kept. What lies between is a hole in the
// file, so that every byte keeps its offset: those that follow the log, collectors with their
// cursors and sidecars that send it, need not know. A program that runs may write on meanwhile.
// Used for logs that programs here write and for copies of those from a cluster; thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace shirabe::trial {

struct LogLimits {
  int64_t head = 32 << 20;  // bytes of its beginning
  int64_t tail = 32 << 20;  // and of its end
  int64_t step = 8 << 20;   // by which it may be longer before something is left out
};

// Leaves out the middle, as far as that was read (`read`: no byte before this offset is needed any
// more). kUnimplemented where the file system cannot: the log then stays whole.
// Below `root` no link is followed (base/open_beneath.h).
Status TrimLog(const std::string& path, int64_t read, const LogLimits& limits = {},
               const std::string& root = "");

// Whether files in this folder can be shortened in that way; it must be there.
bool CanTrim(const std::string& folder);

// What a file takes of the disk; 0 if it is not there.
int64_t DiskBytes(const std::string& path);

struct LogPiece {
  std::string text;
  int64_t next = 0;     // offset of the byte after it
  bool at_end = false;  // there was no more when it was read
};
// At most `max_bytes` from `offset`. In the place of what was left out stands a line that says how
// much it is. kNotFound if there is no log; kInvalidArgument if what stands there is none.
StatusOr<LogPiece> ReadLog(const std::string& path, int64_t offset, int64_t max_bytes,
                           const std::string& root = "");

// The end of the hole that begins at `offset` or before and reaches beyond it; `offset` itself if
// that byte is there, or is past the end.
int64_t EndOfHole(int fd, int64_t offset);

}  // namespace shirabe::trial
