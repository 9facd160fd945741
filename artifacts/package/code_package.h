// Code packages: a folder of a program as one archive (tar.gz) under the digest of its bytes, and
// back. Packed by the command line; unpacked where trials start (artifacts/package/code_cache.h).
//
// The same files give the same archive: sorted by path, without times, owners and any right but
// that to be run. What is unpacked is what a stranger may have packed: see tar_reader.h; beside
// that it has these limits, and an archive that would become more is refused before it does.
// Functions; no state.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"

namespace shirabe::artifacts {

struct PackageLimits {
  int64_t packed_bytes = 512 << 20;
  int64_t unpacked_bytes = int64_t{4} << 30;
  int64_t entries = 100'000;
};

// As spec.shirabe.code.package has it: sha256: and 64 digits of the hexadecimal, in lower case.
inline constexpr char kPackageScheme[] = "sha256:";
// The digits; kInvalidArgument, with the form, for another text.
StatusOr<std::string> DigestOfPackage(const std::string& package);
// Its key in a namespace's part of a store, below the prefix ("" = none).
std::string PackageKey(const std::string& prefix, const std::string& sha256);

struct Packed {
  std::string sha256;
  int64_t bytes = 0;  // of the archive
  int64_t unpacked_bytes = 0;
  int64_t files = 0;
};

struct FolderToPack {
  std::string path;
  std::string only = {};  // one folder in it, by its name; "" = all that is in it
};

// Writes the archive of a folder to `fd`, a file that is empty. .git and __pycache__ are left out
// wherever they stand, and what .shirabeignore names (ReadIgnoreFile). kInvalidArgument, with path
// and fix, for what no package can have: a link that leads out, a pipe; kResourceExhausted, with
// the limit.
StatusOr<Packed> PackFolder(const FolderToPack& what, int fd, const PackageLimits& limits = {});

// Makes a folder of the archive in `fd`, which is read from its start: files that only its readers
// may read and run, on the disk once it returns. `folder` is not there yet; after an error it may
// be, in part. kInvalidArgument: refused, or too large; kResourceExhausted: the disk is full;
// kCancelled: `stop` was requested.
Status UnpackPackage(int fd, const std::string& folder, const PackageLimits& limits,
                     const std::stop_token& stop);

// .shirabeignore: what of a folder is not packed. One pattern a line, as .gitignore has them: '*',
// '?' and '[…]' do not match '/'; a pattern with a '/' in it, but for the last character, begins at
// the folder itself, others hold at any depth; a last '/' means folders only. '#' begins a comment.
// Lines with '!' and with '**' are refused. Pure functions.
struct IgnorePattern {
  std::string glob;
  bool anchored = false;  // else of a name, at any depth
  bool folders_only = false;
};

inline constexpr char kIgnoreFile[] = ".shirabeignore";

// kInvalidArgument, with the number of the line.
StatusOr<std::vector<IgnorePattern>> ReadIgnoreFile(const std::string& text);

// Of a path below the folder. What lies in a folder that is ignored need not be asked about.
bool IsIgnored(const std::vector<IgnorePattern>& patterns, const std::string& path, bool folder);

}  // namespace shirabe::artifacts
