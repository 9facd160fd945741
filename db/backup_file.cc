#include "db/backup_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "google/protobuf/util/message_differencer.h"

namespace shirabe::db {
namespace {

constexpr char kBackupMagic[] = "shirabe-backup ";
constexpr size_t kMaxPreamble = 32;  // of the first line
constexpr size_t kTrailer = 65;
constexpr size_t kBlock = 256 << 10;
// Protobuf's own limit is larger; no record of ours comes near it.
constexpr uint32_t kMaxBackupRecord = 256u << 20;
// A level more takes longer than the bytes that it saves take to be written.
constexpr int kLevel = 3;

}  // namespace

void CountRecord(const v1::BackupRecord& record, v1::BackupCounts* counts) {
  using Record = v1::BackupRecord;
  v1::BackupCounts& now = *counts;
  switch (record.record_case()) {
    case Record::kName: return now.set_names(now.names() + 1);
    case Record::kExperiment: return now.set_experiments(now.experiments() + 1);
    case Record::kTrial: return now.set_trials(now.trials() + 1);
    case Record::kAttempt: return now.set_attempts(now.attempts() + 1);
    case Record::kCheckpoint: return now.set_checkpoints(now.checkpoints() + 1);
    case Record::kObservations:
      return now.set_observations(now.observations() + record.observations().value_size());
    case Record::kEvent: return now.set_events(now.events() + 1);
    case Record::kIntent: return now.set_intents(now.intents() + 1);
    case Record::kSchedule: return now.set_schedules(now.schedules() + 1);
    case Record::kHeader:
    case Record::kCounts:
    case Record::RECORD_NOT_SET: return;
  }
}

// ---- writing

struct BackupWriter::Deflate {
  z_stream stream{};
  std::vector<unsigned char> out = std::vector<unsigned char>(kBlock);
  Deflate() { CHECK(deflateInit(&stream, kLevel) == Z_OK); }
  ~Deflate() { deflateEnd(&stream); }
};

BackupWriter::BackupWriter(int fd, std::string path)
    : fd_(fd),
      path_(std::move(path)),
      deflate_(std::make_unique<Deflate>()),
      pending_(absl::StrCat(kBackupMagic, kBackupFormat, "\n")) {}

BackupWriter::~BackupWriter() = default;

Status BackupWriter::WriteRaw(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t wrote = write(fd_, data, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      return ErrnoStatus(absl::StrCat("cannot write backup ", path_, " after ", bytes_, " bytes"),
                         errno);
    }
    data += wrote;
    size -= static_cast<size_t>(wrote);
    bytes_ += wrote;
  }
  return absl::OkStatus();
}

Status BackupWriter::WriteHashed(const char* data, size_t size) {
  hash_.Add({data, size});
  return WriteRaw(data, size);
}

Status BackupWriter::Compress(const void* data, size_t size, int flush) {
  z_stream& stream = deflate_->stream;
  stream.next_in = static_cast<unsigned char*>(const_cast<void*>(data));
  stream.avail_in = static_cast<uInt>(size);
  for (;;) {
    stream.next_out = deflate_->out.data();
    stream.avail_out = static_cast<uInt>(deflate_->out.size());
    const int code = deflate(&stream, flush);
    CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR);
    const size_t made = deflate_->out.size() - stream.avail_out;
    RETURN_IF_ERROR(WriteHashed(reinterpret_cast<const char*>(deflate_->out.data()), made));
    if (flush == Z_FINISH ? code == Z_STREAM_END : stream.avail_out > 0) return absl::OkStatus();
  }
}

Status BackupWriter::Add(const v1::BackupRecord& record) {
  if (bytes_ == 0) {
    RETURN_IF_ERROR(WriteHashed(pending_.data(), pending_.size()));
    pending_.clear();
  }
  CountRecord(record, &counts_);
  const size_t size = record.ByteSizeLong();
  if (size > kMaxBackupRecord) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record of ", size, " bytes is too large for a backup"));
  }
  for (size_t rest = size;; rest >>= 7) {
    pending_ += static_cast<char>(rest < 128 ? rest : (rest & 127) | 128);
    if (rest < 128) break;
  }
  CHECK(record.AppendToString(&pending_));
  if (pending_.size() < kBlock) return absl::OkStatus();
  RETURN_IF_ERROR(Compress(pending_.data(), pending_.size(), Z_NO_FLUSH));
  pending_.clear();
  return absl::OkStatus();
}

Status BackupWriter::Finish() {
  v1::BackupRecord last;
  *last.mutable_counts() = counts_;
  RETURN_IF_ERROR(Add(last));
  RETURN_IF_ERROR(Compress(pending_.data(), pending_.size(), Z_FINISH));
  const std::string trailer = hash_.Hex() + "\n";
  RETURN_IF_ERROR(WriteRaw(trailer.data(), trailer.size()));
  // A pipe cannot be flushed.
  if (fsync(fd_) == 0 || errno == EINVAL || errno == EROFS) return absl::OkStatus();
  return ErrnoStatus("cannot write backup " + path_ + " to the disk", errno);
}

// ---- reading

struct BackupReader::Inflate {
  z_stream stream{};
  std::vector<char> in = std::vector<char>(kBlock);
  bool ended = false;
  Inflate() { CHECK(inflateInit(&stream) == Z_OK); }
  ~Inflate() { inflateEnd(&stream); }
};

BackupReader::BackupReader(Fd file, std::string path, int64_t size)
    : file_(std::move(file)), path_(std::move(path)), size_(size) {}

BackupReader::~BackupReader() = default;

Status BackupReader::Damaged(const std::string& what) const {
  return absl::DataLossError(absl::StrCat("backup ", path_, " is damaged (", what,
                                          "): nothing of it was restored; use another one"));
}

StatusOr<std::unique_ptr<BackupReader>> BackupReader::Open(const std::string& path) {
  auto opened = OpenBeneath("", path);
  RETURN_IF_ERROR(Prefix("backup", opened.status()));
  struct stat info;
  if (fstat(opened->get(), &info) != 0) return ErrnoStatus("cannot read backup " + path, errno);
  auto reader = std::make_unique<BackupReader>(*std::move(opened), path, info.st_size);
  RETURN_IF_ERROR(reader->Rewind());
  return reader;
}

Status BackupReader::Rewind() {
  offset_ = 0;
  hash_ = std::make_unique<Sha256>();
  inflate_ = std::make_unique<Inflate>();
  counts_.Clear();
  RETURN_IF_ERROR(ReadPreamble());
  v1::BackupRecord first;
  ASSIGN_OR_RETURN(const bool found, ReadRecord(&first));
  if (!found || !first.has_header()) return Damaged("it does not begin with its header");
  header_ = std::move(*first.mutable_header());
  return absl::OkStatus();
}

Status BackupReader::ReadPreamble() {
  char bytes[kMaxPreamble];
  const ssize_t got = pread(file_.get(), bytes, sizeof bytes, 0);
  if (got < 0) return ErrnoStatus("cannot read backup " + path_, errno);
  const std::string text(bytes, static_cast<size_t>(got));
  const size_t end = text.find('\n');
  int format = 0;
  if (!absl::StartsWith(text, kBackupMagic) || end == std::string::npos ||
      !absl::SimpleAtoi(text.substr(sizeof kBackupMagic - 1, end + 1 - sizeof kBackupMagic),
                        &format)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, " is not a backup of shirabe: name a file that \"shirabe backup\" has written"));
  }
  if (format != kBackupFormat) {
    return absl::UnimplementedError(absl::StrCat(
        "backup ", path_, " has format ", format, ", but this program (", SHIRABE_VERSION,
        ") knows only ", kBackupFormat, ": restore it with the newer shirabe that wrote it"));
  }
  if (size_ < static_cast<int64_t>(end + 1 + kTrailer)) return Damaged("it was cut short");
  hash_->Add({bytes, end + 1});
  offset_ = static_cast<int64_t>(end) + 1;
  return absl::OkStatus();
}

Status BackupReader::Refill() {
  const auto left = size_ - static_cast<int64_t>(kTrailer) - offset_;
  if (left <= 0) return Damaged("it was cut short");
  Inflate& inflate = *inflate_;
  const auto most = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(kBlock)));
  ssize_t got = 0;
  do {
    got = pread(file_.get(), inflate.in.data(), most, offset_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return ErrnoStatus("cannot read backup " + path_, errno);
  if (got == 0) return Damaged("it was cut short");
  hash_->Add({inflate.in.data(), static_cast<size_t>(got)});
  offset_ += got;
  inflate.stream.next_in = reinterpret_cast<unsigned char*>(inflate.in.data());
  inflate.stream.avail_in = static_cast<uInt>(got);
  return absl::OkStatus();
}

Status BackupReader::ReadBytes(char* to, size_t size) {
  z_stream& stream = inflate_->stream;
  stream.next_out = reinterpret_cast<unsigned char*>(to);
  stream.avail_out = static_cast<uInt>(size);
  while (stream.avail_out > 0) {
    if (inflate_->ended) return Damaged("a record ends before its end");
    if (stream.avail_in == 0) RETURN_IF_ERROR(Refill());
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      inflate_->ended = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return Damaged(stream.msg == nullptr ? "it cannot be decompressed" : stream.msg);
    }
  }
  return absl::OkStatus();
}

StatusOr<uint32_t> BackupReader::ReadLength() {
  uint64_t length = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    char byte = 0;
    RETURN_IF_ERROR(ReadBytes(&byte, 1));
    length |= static_cast<uint64_t>(byte & 127) << shift;
    if ((byte & 128) != 0) continue;
    if (length > kMaxBackupRecord) break;
    return static_cast<uint32_t>(length);
  }
  return Damaged("a record is longer than any can be");
}

StatusOr<bool> BackupReader::ReadRecord(v1::BackupRecord* record) {
  ASSIGN_OR_RETURN(const uint32_t length, ReadLength());
  // By pieces: a length that is wrong must not take memory that the file has no bytes for.
  message_.clear();
  while (message_.size() < length) {
    const size_t piece = std::min<size_t>(length - message_.size(), 1 << 20);
    const size_t at = message_.size();
    message_.resize(at + piece);
    RETURN_IF_ERROR(ReadBytes(message_.data() + at, piece));
  }
  if (!record->ParseFromString(message_)) return Damaged("a record cannot be read");
  return true;
}

StatusOr<bool> BackupReader::Next(v1::BackupRecord* record) {
  RETURN_IF_ERROR(ReadRecord(record).status());
  switch (record->record_case()) {
    case v1::BackupRecord::RECORD_NOT_SET:
      return absl::UnimplementedError(absl::StrCat(
          "backup ", path_, " has a record that this program (", SHIRABE_VERSION,
          ") does not know: restore it with the shirabe that wrote it (", header_.program(), ")"));
    case v1::BackupRecord::kHeader: return Damaged("it has two headers");
    case v1::BackupRecord::kCounts: break;
    default: CountRecord(*record, &counts_); return true;
  }
  if (!google::protobuf::util::MessageDifferencer::Equals(record->counts(), counts_)) {
    return Damaged("it has other records than it counts");
  }
  RETURN_IF_ERROR(CheckEnd());
  return false;
}

// Nothing may follow but the end of the stream and the digest.
Status BackupReader::CheckEnd() {
  z_stream& stream = inflate_->stream;
  while (!inflate_->ended) {
    char byte = 0;
    stream.next_out = reinterpret_cast<unsigned char*>(&byte);
    stream.avail_out = 1;
    if (stream.avail_in == 0) RETURN_IF_ERROR(Refill());
    const int code = inflate(&stream, Z_NO_FLUSH);
    inflate_->ended = code == Z_STREAM_END;
    if (stream.avail_out == 0 || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)) {
      return Damaged("something follows its last record");
    }
  }
  const int64_t end = size_ - static_cast<int64_t>(kTrailer);
  if (stream.avail_in != 0 || offset_ != end) return Damaged("something follows its last record");
  char trailer[kTrailer];
  if (pread(file_.get(), trailer, kTrailer, end) != static_cast<ssize_t>(kTrailer)) {
    return Damaged("it was cut short");
  }
  if (std::string(trailer, kTrailer) == hash_->Hex() + "\n") return absl::OkStatus();
  return Damaged("its digest is another one: it was changed");
}

}  // namespace shirabe::db
