// A file that grows, read on from a cursor: opened, read at an offset, and told from another file
// that has taken its name or its place. Used by the readers of lines (tail.h) and of event files
// (tfevents.h). No state but the open descriptor; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::metrics {

struct OpenFile {
  Fd fd;
  uint64_t inode = 0;
  uint64_t size = 0;  // when it was opened
};

// Nullopt if there is no such file, or no path; kInvalidArgument, naming it, for what is no regular
// file, or is reached over a link below `root` (base/beneath.h).
StatusOr<std::optional<OpenFile>> OpenToFollow(const std::string& root, const std::string& path);

// Up to `bytes` at `offset`; fewer at the end of the file. `path` is for the error.
StatusOr<std::string> ReadAt(const OpenFile& file, uint64_t offset, uint64_t bytes,
                             const std::string& path);

// The first and the last min(64, offset) bytes before the cursor's offset, to be kept in its
// `head`: they tell a file that was rewritten in place.
StatusOr<std::string> Edges(const OpenFile& file, const v1::FileCursor& cursor);

// Whether the file still holds what was read of it, as far as inode, size and edges tell. The inode
// of one of `copies` (collector.h) tells nothing.
StatusOr<bool> IsContinued(const OpenFile& file, const v1::FileCursor& cursor, bool copies);

// Whether a copy holds the beginning of what was read and not yet all of it: another server has
// taken over, and is being sent it anew. There is nothing to read until it is longer again.
StatusOr<bool> IsRefilled(const OpenFile& copy, const v1::FileCursor& cursor);

}  // namespace shirabe::metrics
