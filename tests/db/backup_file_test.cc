// The file of a backup: what comes back, and what is refused by name: cut anywhere, changed
// anywhere, foreign, newer, a link, a device.
#include "db/backup_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/escaping.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/rng.h"
#include "base/sha256.h"

namespace shirabe::db {
namespace {

using ::testing::HasSubstr;

class BackupFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/shirabe-backup-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/file";
  }
  void TearDown() override { ASSERT_TRUE(RemoveAll(folder_).ok()); }

  Status WriteTrials(int trials, int name_bytes = 3) {
    const Fd fd(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    BackupWriter writer(fd.get(), path_);
    v1::BackupRecord record;
    record.mutable_header()->set_program("9.9");
    RETURN_IF_ERROR(writer.Add(record));
    for (int i = 1; i <= trials; ++i) {
      record.mutable_trial()->set_number(i);
      // What cannot be compressed fills more than one block.
      record.mutable_trial()->set_explanation(absl::BytesToHexString(RandomBytes(name_bytes)));
      RETURN_IF_ERROR(writer.Add(record));
    }
    return writer.Finish();
  }
  // The trials that were read, before all was found to be well.
  StatusOr<int> ReadTrials() {
    ASSIGN_OR_RETURN(const auto reader, BackupReader::Open(path_));
    int trials = 0;
    bool in_order = true;  // says nothing until the end was reached
    for (v1::BackupRecord record;;) {
      ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
      if (!more) break;
      in_order = record.trial().number() == ++trials && in_order;
    }
    EXPECT_TRUE(in_order);
    return trials;
  }
  void Put(const std::string& bytes) { ASSERT_TRUE(WriteFileAtomic(path_, bytes).ok()); }

  std::string folder_;
  std::string path_;
};

TEST_F(BackupFile, GivesBackWhatWasWritten) {
  for (const int trials : {0, 1, 3000}) {
    ASSERT_TRUE(WriteTrials(trials, 500).ok());
    EXPECT_EQ(ReadTrials().value_or(-1), trials);
  }
  const auto reader = BackupReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->header().program(), "9.9");
  v1::BackupRecord record;
  while ((*reader)->Next(&record).value_or(false)) {
  }
  EXPECT_EQ((*reader)->counts().trials(), 3000);
  ASSERT_TRUE((*reader)->Rewind().ok());
  EXPECT_TRUE((*reader)->Next(&record).value_or(false));
  EXPECT_EQ(record.trial().number(), 1);
}

TEST_F(BackupFile, CutAnywhereItIsRefused) {
  ASSERT_TRUE(WriteTrials(20).ok());
  const std::string whole = *ReadFile(path_);
  for (size_t size = 0; size < whole.size(); ++size) {
    Put(whole.substr(0, size));
    const Status status = ReadTrials().status();
    ASSERT_FALSE(status.ok()) << size;
    EXPECT_THAT(Message(status), HasSubstr(path_));
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsInvalidArgument(status)) << status;
  }
}

TEST_F(BackupFile, ChangedAnywhereItIsRefused) {
  ASSERT_TRUE(WriteTrials(20).ok());
  const std::string whole = *ReadFile(path_);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 5}) {
      std::string bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      Put(bad);
      ASSERT_FALSE(ReadTrials().ok()) << "byte " << at << " bit " << bit;
    }
  }
  for (const std::string& more : {whole + "x", whole + whole}) {
    Put(more);
    EXPECT_FALSE(ReadTrials().ok());
  }
}

// One whose author has made the digest right: then the stream and the counts must be.
TEST_F(BackupFile, WithAnHonestDigestItsContentsAreStillChecked) {
  ASSERT_TRUE(WriteTrials(20).ok());
  const std::string whole = *ReadFile(path_);
  const std::string body = whole.substr(0, whole.size() - 65);
  int accepted = 0;  // a bit that only fills the last byte of a compressed block means nothing
  for (size_t at = 17; at < body.size(); ++at) {
    std::string bad = body;
    bad[at] = static_cast<char>(bad[at] ^ 8);
    Put(bad + HexSha256(bad) + "\n");
    const StatusOr<int> trials = ReadTrials();
    if (!trials.ok()) continue;
    ++accepted;
    ASSERT_EQ(*trials, 20) << at;
  }
  EXPECT_LE(accepted, 2);
  for (const std::string& bad : {body + "x", body.substr(0, body.size() - 4)}) {
    Put(bad + HexSha256(bad) + "\n");
    EXPECT_TRUE(absl::IsDataLoss(ReadTrials().status()));
  }
}

TEST_F(BackupFile, RefusesAnotherFormatAndOtherFiles) {
  ASSERT_TRUE(WriteTrials(1).ok());
  std::string newer = *ReadFile(path_);
  newer.replace(newer.find(" 1\n"), 3, " 2\n");
  Put(newer);
  const Status status = ReadTrials().status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("format 2"));
  EXPECT_THAT(Message(status), HasSubstr("knows only 1"));
  for (const std::string& foreign :
       {std::string(""), std::string("SQLite format 3\0", 16), std::string("shirabe-backup \n"),
        std::string("shirabe-backup 1x\n"), std::string(100'000, 'x')}) {
    Put(foreign);
    const Status refused = ReadTrials().status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("is not a backup"));
  }
}

TEST_F(BackupFile, OpensRegularFilesOnly) {
  ASSERT_TRUE(WriteTrials(1).ok());
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {link, pipe, folder_, std::string("/dev/zero")}) {
    EXPECT_FALSE(BackupReader::Open(path).ok()) << path;
  }
  EXPECT_TRUE(absl::IsNotFound(BackupReader::Open(folder_ + "/none").status()));
}

TEST_F(BackupFile, WritesNoRecordThatItWouldNotRead) {
  const Fd fd(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  BackupWriter writer(fd.get(), path_);
  v1::BackupRecord record;
  record.mutable_header()->set_host(std::string(300 << 20, 'x'));
  const Status status = writer.Add(record);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace shirabe::db
