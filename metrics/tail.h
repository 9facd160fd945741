// Reads the lines that were added to a file since a cursor. Used by the collectors' reader; no
// state but the cursor, so any thread may call it, and reading again from an old cursor gives the
// same lines as long as the file only grew.
//
// A file is followed by its inode, a copy by what it holds. One that was renamed away within its
// folder (log rotation) is read to its end before the one that took its place; one that was
// truncated, replaced or rewritten in place is read from its beginning. To notice the last, a
// cursor keeps in `head` the first and the last min(64, offset) bytes before its offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::metrics {

constexpr int64_t kMaxLineBytes = 1 << 20;  // longer lines are skipped to their end

struct TailRequest {
  v1::FileCursor cursor;         // with its path
  std::string root = {};         // see base/beneath.h
  bool ended = false;            // a last line without its end counts
  bool return_ends_line = true;  // so does \r end a line, not only \n
  // Its writer truncates it and writes it anew, again and again: what changes while it is read is
  // left to the next call.
  bool rewritten = false;
  bool copies = false;          // see collector.h
  int64_t max_bytes = 4 << 20;  // at least 2 * kMaxLineBytes
};

struct TailResult {
  v1::FileCursor cursor;
  int64_t bytes = 0;       // read on by this call
  int64_t long_lines = 0;  // skipped; each counted when it is seen to be too long
  bool more = false;       // stopped at a limit: call again
};

// Calls `on_line` for each whole line, without its end; false from it stops after that line. A file
// that is not there has no lines. Errors name the path: kInvalidArgument for what is no regular
// file, else as ErrnoStatus.
StatusOr<TailResult> ReadLines(const TailRequest& request,
                               absl::FunctionRef<bool(std::string_view)> on_line);

// A cursor at the end of what `path` holds now; nothing but the path if there is no such file, or
// it cannot be read (the first call of ReadLines will say so).
v1::FileCursor EndOfFile(const std::string& path, const std::string& root = "");

// Lines in the file, as far as `max_bytes`; -1 if it is not there or cannot be read.
int64_t CountLines(const std::string& path, int64_t max_bytes = 64 << 20);

}  // namespace shirabe::metrics
