// gzip as it comes, in pieces of any size; zlib does it. Each object is used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace shirabe::artifacts {

using BytesSink = std::function<Status(std::string_view)>;

// Makes plain bytes of it. kInvalidArgument for what is none, or has something behind its end.
class Gunzip {
 public:
  Gunzip();
  ~Gunzip();
  // At most 64 KiB are told at once, however much comes of a few bytes; an error of `out` ends it.
  Status Add(std::string_view bytes, const BytesSink& out);
  Status Finish() const;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

// The other way. The same bytes give the same: no time and no name is in it.
class Gzip {
 public:
  explicit Gzip(BytesSink out);
  ~Gzip();
  Status Add(std::string_view bytes);
  Status Finish();

 private:
  struct Stream;
  Status Run(std::string_view bytes, bool last);

  const BytesSink out_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace shirabe::artifacts
