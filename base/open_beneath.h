// Opens what a program may have put there, or whose name came from outside: regular files and
// folders below one that is ours. No symbolic link below `root` is followed, nothing outside it is
// reached, and nothing that is no regular file is opened or read: no pipe, socket or device can
// make a thread wait. By openat2 (RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS); name by name where the
// kernel, or a filter of system calls, refuses that.
//
// Used by all code that reads logs, metrics, records and checkpoints. `path` begins with `root`,
// and is what errors name; its names may be chosen by a program, `root` may not. With an empty
// `root` the folder of `path` is trusted as it stands, and only its last name is not: for a path
// that the author of an experiment has written down. Thread-safe: no state.
//
// Errors: kNotFound if there is nothing of that name; kInvalidArgument, saying what it is and what
// to do, for a link or what is no regular file (or no folder); kResourceExhausted out of
// descriptors or memory; else as ErrnoStatus.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_io.h"
#include "base/status.h"

namespace shirabe {

// `access` is O_RDONLY, or O_RDWR and O_CREAT and the like, with `mode` for a new file.
StatusOr<Fd> OpenBeneath(const std::string& root, const std::string& path, int access = 0,
                         unsigned mode = 0600);

// A small file, whole. kResourceExhausted if it is larger than `max_bytes`.
StatusOr<std::string> ReadBeneath(const std::string& root, const std::string& path,
                                  int64_t max_bytes);

// The last `lines` lines within the last `max_bytes` bytes; "" if the file cannot be read.
std::string TailBeneath(const std::string& root, const std::string& path, int lines,
                        int64_t max_bytes = 8192);

// The folder that lies so many names above a path, as a root for it; "/" at the top.
std::string FolderAbove(const std::string& path, int names);

// rm -r of what a program has made: however deep it is nested, however many entries it has, and
// whatever modes its folders were given. No symbolic link is followed, and at most some sixty
// descriptors are open. Nothing there is fine; of two that remove the same, both succeed.
Status RemoveAll(const std::string& path);

}  // namespace shirabe
