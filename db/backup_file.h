// The file of a backup: how records (proto/shirabe/v1/backup.proto) lie in it, and how a damaged,
// cut or foreign file is told. Used by client/store_backup. One thread at a time.
//
//   shirabe-backup 1\n      the format and its version
//   a zlib stream of        records, each after its length as a varint
//   64 hexadecimal digits   SHA-256 of all bytes before them, and a newline
//
// The first record is the header, the last one the counts of all others. It is independent of the
// store that it came from, and can be loaded into any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_io.h"
#include "base/sha256.h"
#include "base/status.h"
#include "proto/shirabe/v1/backup.pb.h"

namespace shirabe::db {

inline constexpr int kBackupFormat = 1;

// Counts one more: each record is one of its kind, but observations, which come many in one.
void CountRecord(const v1::BackupRecord& record, v1::BackupCounts* counts);

class BackupWriter {
 public:
  // Into an open file, named `path` in errors, from its beginning.
  BackupWriter(int fd, std::string path);
  ~BackupWriter();

  Status Add(const v1::BackupRecord& record);
  // Counts, trailer and, unless it is no file, fsync. Called once, last.
  Status Finish();
  const v1::BackupCounts& counts() const { return counts_; }
  int64_t bytes() const { return bytes_; }

 private:
  struct Deflate;
  Status Compress(const void* data, size_t size, int flush);
  Status WriteRaw(const char* data, size_t size);
  Status WriteHashed(const char* data, size_t size);

  const int fd_;
  const std::string path_;
  std::unique_ptr<Deflate> deflate_;
  Sha256 hash_;
  std::string pending_;  // written once there is a block of it
  v1::BackupCounts counts_;
  int64_t bytes_ = 0;
};

class BackupReader {
 public:
  // Opens a regular file, following no link, and reads its header. kInvalidArgument for what is no
  // backup, kUnimplemented for one of a newer format, naming both versions.
  static StatusOr<std::unique_ptr<BackupReader>> Open(const std::string& path);
  // By Open.
  BackupReader(Fd file, std::string path, int64_t size);
  ~BackupReader();

  const v1::BackupHeader& header() const { return header_; }
  // Those of the records read so far.
  const v1::BackupCounts& counts() const { return counts_; }
  int64_t bytes() const { return size_; }
  // The next record; false once all have been read and digest and counts are those of the file.
  // kDataLoss, naming the file, if it was cut or changed: no earlier record is to be trusted then.
  StatusOr<bool> Next(v1::BackupRecord* record);
  // The header has been read, and nothing else.
  Status Rewind();

 private:
  struct Inflate;
  Status ReadPreamble();
  StatusOr<bool> ReadRecord(v1::BackupRecord* record);
  StatusOr<uint32_t> ReadLength();
  Status ReadBytes(char* to, size_t size);
  Status Refill();
  Status CheckEnd();
  Status Damaged(const std::string& what) const;

  const Fd file_;
  const std::string path_;
  const int64_t size_;
  std::unique_ptr<Inflate> inflate_;
  std::unique_ptr<Sha256> hash_;
  int64_t offset_ = 0;  // of the next byte to be read from the file
  v1::BackupHeader header_;
  v1::BackupCounts counts_;
  std::string message_;
};

}  // namespace shirabe::db
