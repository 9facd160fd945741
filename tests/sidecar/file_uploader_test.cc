// What sidecar/file_uploader.h promises of files that change between a look and a read.
#include "sidecar/file_uploader.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_beneath.h"
#include "tests/sidecar/pod_harness.h"

namespace shirabe::sidecar {
namespace {

constexpr int64_t kAll = 1 << 20;

class FileUploaderTest : public testing::Test {
 protected:
  FileUploaderTest() : pod_(PodAt(folder_, ConfigOf("nowhere"))), uploader_(&pod_) {
    EXPECT_TRUE(MakeDirs(pod_.paths.dir).ok());
  }

  void Write(const std::string& text) { ASSERT_TRUE(WriteFileAtomic(pod_.paths.log, text).ok()); }
  void Truncate(off_t size) { ASSERT_EQ(truncate(pod_.paths.log.c_str(), size), 0); }
  v1::SyncRequest FillRequest(bool expect_all) {
    v1::SyncRequest request;
    EXPECT_EQ(uploader_.FillRequest(kAll, request), expect_all);
    return request;
  }
  void Send(const v1::SyncRequest& request) {
    v1::SyncReply reply;
    for (const v1::FilePiece& piece : request.files()) {
      v1::FileHave& have = *reply.add_files();
      have.set_name(piece.name());
      have.set_size(piece.offset() + static_cast<int64_t>(piece.data().size()));
    }
    uploader_.Acknowledge(reply, request);
  }

  Folder folder_;
  Pod pod_;
  FileUploader uploader_;
};

TEST_F(FileUploaderTest, WhatHasBecomeShorterSinceTheLookIsLookedAtAgain) {
  Write(std::string(100, 'a'));
  ASSERT_TRUE(uploader_.Scan());
  Truncate(40);
  const v1::SyncRequest request = FillRequest(/*expect_all=*/false);
  ASSERT_EQ(request.files_size(), 1);
  EXPECT_EQ(request.files(0).data().size(), 40u);
  EXPECT_EQ(request.files(0).size(), 40);
  Send(request);
  // Nothing more is known to be there, and whether that is all is not.
  EXPECT_EQ(FillRequest(/*expect_all=*/false).files_size(), 0);
  EXPECT_FALSE(uploader_.Scan());
  EXPECT_EQ(FillRequest(/*expect_all=*/true).files_size(), 0);
}

// Its path is the author's, its folders are the program's.
TEST_F(FileUploaderTest, TheTokenOfThePodIsNoFileOfACollector) {
  std::string secrets = "/dev/shm/shirabe-token-XXXXXX";
  struct stat here, there;
  if (mkdtemp(secrets.data()) == nullptr || stat(secrets.c_str(), &there) != 0 ||
      stat(pod_.paths.dir.c_str(), &here) != 0 || here.st_dev == there.st_dev) {
    rmdir(secrets.c_str());
    GTEST_SKIP() << "/dev/shm is no file system of its own here";
  }
  ASSERT_TRUE(WriteFileAtomic(secrets + "/token", "the pod's token").ok());
  const Folder data;
  ASSERT_EQ(symlink(secrets.c_str(), (data.path() + "/logs").c_str()), 0);
  pod_.config.set_token_path(secrets + "/token");
  auto& collector = *pod_.config.mutable_collector();
  collector.mutable_collector()->set_kind(v1::FILE_COLLECTOR);
  collector.mutable_source()->mutable_file_system_path()->set_path(data.path() + "/logs/token");
  FileUploader uploader(&pod_);
  uploader.Scan();
  EXPECT_NE(uploader.last_error(), "") << "it has not tried";
  v1::SyncRequest request;
  uploader.FillRequest(kAll, request);
  EXPECT_EQ(request.DebugString().find("the pod's token"), std::string::npos);
  EXPECT_TRUE(RemoveAll(secrets).ok());
}

// An empty piece would be asked for again and again: the server has no more after it than before.
TEST_F(FileUploaderTest, NoEmptyPieceIsSentWhereNothingIsLeftToRead) {
  Write(std::string(100, 'a'));
  ASSERT_TRUE(uploader_.Scan());
  Send(FillRequest(/*expect_all=*/true));
  Truncate(150);
  ASSERT_TRUE(uploader_.Scan());
  Truncate(30);
  EXPECT_EQ(FillRequest(/*expect_all=*/false).files_size(), 0);
  // It was written anew: all of it goes, from its beginning.
  ASSERT_TRUE(uploader_.Scan());
  const v1::SyncRequest request = FillRequest(/*expect_all=*/true);
  ASSERT_EQ(request.files_size(), 1);
  EXPECT_EQ(request.files(0).offset(), 0);
  EXPECT_EQ(request.files(0).data().size(), 30u);
}

}  // namespace
}  // namespace shirabe::sidecar
