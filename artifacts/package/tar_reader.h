// A tar archive as it comes, in pieces of any size: ustar, its extensions of POSIX (pax) and GNU's
// long names. Written for what strangers have packed: only plain files, folders and symbolic links
// are told, each path is a way below the archive's own folder, a link leads to a place there, and
// whatever else stands in an archive is an error that names it. Nothing is kept of it but one
// header. Used by one thread.
//
// Errors: kInvalidArgument for what is no archive, or one that is refused; else the sink's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shirabe::artifacts {

inline constexpr size_t kMaxPackedPathBytes = 1000;
inline constexpr int kMaxPackedPathNames = 64;

struct TarEntry {
  enum class Kind { kFile, kFolder, kLink };
  Kind kind = Kind::kFile;
  std::string path;    // names joined by '/', none of them "", "." or ".."
  std::string target;  // of a link
  int64_t bytes = 0;   // of a file
  bool executable = false;
};

// Each entry is begun and ended; a file's bytes come in between.
class TarSink {
 public:
  virtual ~TarSink() = default;
  virtual Status Begin(const TarEntry& entry) = 0;
  virtual Status Bytes(std::string_view bytes) = 0;
  virtual Status End() = 0;
};

class TarReader {
 public:
  // The sink outlives it.
  explicit TarReader(TarSink* sink) : sink_(*sink) {}

  Status Add(std::string_view bytes);
  // That was all: an error if the archive is cut off.
  Status Finish() const;

 private:
  enum class Part { kHeader, kFile, kExtension, kPadding, kEnd };

  Status AddPiece(std::string_view& bytes);
  Status ReadHeader();
  Status BeginEntry(char type);
  Status EndData();
  Status ReadRecords(std::string_view records, bool global);

  TarSink& sink_;
  Part part_ = Part::kHeader;
  std::string header_;     // what has come of it
  std::string extension_;  // the same of one
  char type_ = 0;          // of that
  int64_t left_ = 0;       // of the part
  int64_t padding_ = 0;    // after it
  bool entry_open_ = false;
  // What extensions say of the next entry; -1 and "" = nothing.
  std::string path_;
  std::string target_;
  int64_t bytes_ = -1;
};

// The path in this form; "" for the archive's own folder. kInvalidArgument for a way that leads
// elsewhere, and for one that is too long or too deep.
StatusOr<std::string> PackedPath(std::string_view path);
// Whether a link at that path leads to a place within: '..' only at its beginning, and not more of
// them than there are folders above it. With links that are made last, below folders that are none,
// no chain of them leads out.
bool LinkStaysWithin(const std::string& path, std::string_view target);

}  // namespace shirabe::artifacts
