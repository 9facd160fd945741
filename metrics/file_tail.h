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
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/file_io.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::metrics {

constexpr int64_t kMaxLineBytes = 1 << 20;  // longer lines are skipped to their end

struct TailRequest {
  v1::FileCursor cursor;         // with its path
  std::string root = {};         // see base/open_beneath.h
  bool ended = false;            // a last line without its end counts
  bool return_ends_line = true;  // so does \r end a line, not only \n
  // Its writer truncates it and writes it again and again: what changes while it is read is
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

// A file that grows, read on from a cursor: opened, read at an offset, and told from another file
// that has taken its name or its place. Used by the readers of lines (ReadLines) and of event files
// (tf_events.h). No state but the open descriptor; any thread.
struct TailedFile {
  Fd fd;
  uint64_t inode = 0;
  uint64_t size = 0;  // when it was opened
};

// Nullopt if there is no such file, or no path; kInvalidArgument, naming it, for what is no regular
// file, or is reached over a link below `root` (base/open_beneath.h).
StatusOr<std::optional<TailedFile>> OpenForTail(const std::string& root, const std::string& path);

// Up to `bytes` at `offset`; fewer at the end of the file. `path` is for the error.
StatusOr<std::string> ReadAt(const TailedFile& file, uint64_t offset, uint64_t bytes,
                             const std::string& path);

// The first and the last min(64, offset) bytes before the cursor's offset, to be kept in its
// `head`: they tell a file that was rewritten in place.
StatusOr<std::string> Edges(const TailedFile& file, const v1::FileCursor& cursor);

// Whether the file still holds what was read of it, as far as inode, size and edges tell. The inode
// of one of `copies` (collector.h) tells nothing.
StatusOr<bool> IsContinued(const TailedFile& file, const v1::FileCursor& cursor, bool copies);

// Whether a copy holds the beginning of what was read and not yet all of it: another server has
// taken over, and is being sent it again. There is nothing to read until it is longer again.
StatusOr<bool> IsBeingResent(const TailedFile& copy, const v1::FileCursor& cursor);

}  // namespace shirabe::metrics
