#include "artifacts/package/gzip_stream.h"

#include <zlib.h>

#include <utility>

namespace shirabe::artifacts {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr int kGzipWindow = 15 + 16;  // the largest, in gzip's format
constexpr int kMemory = 8;            // zlib's default

Bytef* In(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

}  // namespace

struct Gunzip::Stream {
  z_stream z = {};
  bool ended = false;
  std::string buffer = std::string(kPiece, '\0');
};

Gunzip::Gunzip() : stream_(std::make_unique<Stream>()) {
  CHECK(inflateInit2(&stream_->z, kGzipWindow) == Z_OK);
}

Gunzip::~Gunzip() { inflateEnd(&stream_->z); }

Status Gunzip::Add(std::string_view bytes, const BytesSink& out) {
  Stream& s = *stream_;
  s.z.next_in = In(bytes);
  s.z.avail_in = static_cast<uInt>(bytes.size());
  bool full = false;  // there may be more of what it has read
  while (s.z.avail_in > 0 || full) {
    if (s.ended) return absl::InvalidArgumentError("the file has something behind its end");
    s.z.next_out = reinterpret_cast<Bytef*>(s.buffer.data());
    s.z.avail_out = kPiece;
    const int result = inflate(&s.z, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError("it is no gzip file, or a damaged one");
    }
    full = s.z.avail_out == 0 && result == Z_OK;
    s.ended = result == Z_STREAM_END;
    const std::string_view made(s.buffer.data(), kPiece - s.z.avail_out);
    if (!made.empty()) RETURN_IF_ERROR(out(made));
  }
  return absl::OkStatus();
}

Status Gunzip::Finish() const {
  if (stream_->ended) return absl::OkStatus();
  return absl::InvalidArgumentError("the gzip file is cut off");
}

struct Gzip::Stream {
  z_stream z = {};
  std::string buffer = std::string(kPiece, '\0');
};

Gzip::Gzip(BytesSink out) : out_(std::move(out)), stream_(std::make_unique<Stream>()) {
  CHECK(deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                     Z_DEFAULT_STRATEGY) == Z_OK);
}

Gzip::~Gzip() { deflateEnd(&stream_->z); }

Status Gzip::Add(std::string_view bytes) { return Run(bytes, /*last=*/false); }

Status Gzip::Finish() { return Run("", /*last=*/true); }

Status Gzip::Run(std::string_view bytes, bool last) {
  Stream& s = *stream_;
  s.z.next_in = In(bytes);
  s.z.avail_in = static_cast<uInt>(bytes.size());
  do {
    s.z.next_out = reinterpret_cast<Bytef*>(s.buffer.data());
    s.z.avail_out = kPiece;
    CHECK(deflate(&s.z, last ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
    const std::string_view made(s.buffer.data(), kPiece - s.z.avail_out);
    if (!made.empty()) RETURN_IF_ERROR(out_(made));
  } while (s.z.avail_out == 0);
  return absl::OkStatus();
}

}  // namespace shirabe::artifacts
