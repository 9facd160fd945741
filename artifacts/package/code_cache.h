// Code packages that have been fetched: a folder for each, named by its digest. What stands there
// is whole: a package is checked before anything of it is unpacked, unpacked beside its place,
// flushed and renamed. A process that is killed leaves what the next one removes.
//
//   <folder>/<sha256>/       the package, readable and no more
//   <folder>/<sha256>.tmp/   being unpacked
//   <folder>/<sha256>.lock   locked by who does so: one process at a time
//
// Thread-safe.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "artifacts/artifact_store.h"
#include "artifacts/package/code_package.h"
#include "base/file_io.h"
#include "base/status.h"

namespace shirabe::artifacts {

// Tells all bytes of an archive, in order.
using PackageSource = std::function<Status(const PieceSink&)>;

class CodeCache {
 public:
  explicit CodeCache(std::string folder, const PackageLimits& limits = {})
      : folder_(std::move(folder)), limits_(limits) {}

  std::string PathOf(const std::string& sha256) const { return folder_ + "/" + sha256; }
  bool Has(const std::string& sha256) const;

  // OK once it is there. kUnavailable: another process is at it; kDataLoss: these are other bytes
  // than the digest says; kInvalidArgument: refused, or too large; kResourceExhausted: the disk is
  // full; else the source's.
  Status Fill(const std::string& sha256, const PackageSource& source, const std::stop_token& stop);
  // That no trial runs in it is for the caller to know. kUnavailable: it is being fetched.
  Status Remove(const std::string& sha256);

 private:
  StatusOr<Fd> Lock(const std::string& sha256) const;
  Status FillLocked(const std::string& sha256, const PackageSource& source,
                    const std::stop_token& stop);

  const std::string folder_;
  const PackageLimits limits_;
};

}  // namespace shirabe::artifacts
