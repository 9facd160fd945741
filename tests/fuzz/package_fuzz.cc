// Any bytes as an archive of tar: what is told of it lies within, and pieces of any size tell the
// same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "artifacts/package/code_package.h"
#include "artifacts/package/gzip_stream.h"
#include "artifacts/package/tar_reader.h"

namespace shirabe::artifacts {
namespace {

constexpr int64_t kMostInflated = 1 << 20;

class Told : public TarSink {
 public:
  Status Begin(const TarEntry& entry) override {
    CHECK(!open_);
    open_ = true;
    const auto path = PackedPath(entry.path);
    CHECK(path.ok() && *path == entry.path && !entry.path.empty());
    CHECK(entry.kind == TarEntry::Kind::kFile || entry.bytes == 0);
    CHECK(entry.kind != TarEntry::Kind::kLink || LinkStaysWithin(entry.path, entry.target));
    left_ = entry.bytes;
    absl::StrAppend(&text_, "\n", entry.path, ">", entry.target, entry.executable ? "*" : "", ":");
    return absl::OkStatus();
  }
  Status Bytes(std::string_view bytes) override {
    left_ -= static_cast<int64_t>(bytes.size());
    CHECK(open_ && left_ >= 0);
    text_ += bytes;
    return absl::OkStatus();
  }
  Status End() override {
    CHECK(open_ && left_ == 0);
    open_ = false;
    return absl::OkStatus();
  }
  const std::string& text() const { return text_; }

 private:
  bool open_ = false;
  int64_t left_ = 0;
  std::string text_;
};

// What is told of them, and whether it is an archive.
std::string ReadTar(std::string_view bytes, size_t piece) {
  Told told;
  TarReader reader(&told);
  Status status;
  for (size_t at = 0; at < bytes.size() && status.ok(); at += piece) {
    status = reader.Add(bytes.substr(at, piece));
  }
  if (status.ok()) status = reader.Finish();
  return absl::StrCat(status.ok() ? "good" : "bad", told.text());
}

void RunOne(std::string_view bytes) {
  const std::string whole = ReadTar(bytes, bytes.size() + 1);
  const std::string pieces = ReadTar(bytes, 37);
  // Cut up, more of a file's bytes are told before the error behind them is seen.
  CHECK(!absl::StartsWith(whole, "good") || whole == pieces);
  CHECK(absl::StartsWith(whole, "good") == absl::StartsWith(pieces, "good"));
  Gunzip gunzip;
  std::string inflated;
  const Status status = gunzip.Add(bytes, [&](std::string_view piece) -> Status {
    inflated += piece;
    if (static_cast<int64_t>(inflated.size()) < kMostInflated) return absl::OkStatus();
    return absl::ResourceExhaustedError("enough");
  });
  if (status.ok()) ReadTar(inflated, inflated.size() + 1);
  const auto patterns = ReadIgnoreFile(std::string(bytes));
  if (patterns.ok() && patterns->size() < 20) IsIgnored(*patterns, "a/b.py", false);
}

}  // namespace
}  // namespace shirabe::artifacts

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shirabe::artifacts::RunOne(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
