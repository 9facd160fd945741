// What sidecar/outbox.h promises of files that change between a look and a read.
#include "sidecar/outbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/sidecar/pod_harness.h"

namespace shirabe::sidecar {
namespace {

constexpr int64_t kAll = 1 << 20;

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() : pod_(PodAt(folder_, ConfigOf("nowhere"))), outbox_(&pod_) {
    EXPECT_TRUE(MakeDirs(pod_.paths.dir).ok());
  }

  void Write(const std::string& text) { ASSERT_TRUE(WriteFileAtomic(pod_.paths.log, text).ok()); }
  void Truncate(off_t size) { ASSERT_EQ(truncate(pod_.paths.log.c_str(), size), 0); }
  v1::SyncRequest Fill(bool expect_all) {
    v1::SyncRequest request;
    EXPECT_EQ(outbox_.Fill(kAll, request), expect_all);
    return request;
  }
  void Send(const v1::SyncRequest& request) {
    v1::SyncReply reply;
    for (const v1::FilePiece& piece : request.files()) {
      v1::FileHave& have = *reply.add_files();
      have.set_name(piece.name());
      have.set_size(piece.offset() + static_cast<int64_t>(piece.data().size()));
    }
    outbox_.Acknowledge(reply, request);
  }

  Folder folder_;
  Pod pod_;
  Outbox outbox_;
};

TEST_F(OutboxTest, WhatHasBecomeShorterSinceTheLookIsLookedAtAgain) {
  Write(std::string(100, 'a'));
  ASSERT_TRUE(outbox_.Look());
  Truncate(40);
  const v1::SyncRequest request = Fill(/*expect_all=*/false);
  ASSERT_EQ(request.files_size(), 1);
  EXPECT_EQ(request.files(0).data().size(), 40u);
  EXPECT_EQ(request.files(0).size(), 40);
  Send(request);
  // Nothing more is known to be there, and whether that is all is not.
  EXPECT_EQ(Fill(/*expect_all=*/false).files_size(), 0);
  EXPECT_FALSE(outbox_.Look());
  EXPECT_EQ(Fill(/*expect_all=*/true).files_size(), 0);
}

// An empty piece would be asked for again and again: the server has no more after it than before.
TEST_F(OutboxTest, NoEmptyPieceIsSentWhereNothingIsLeftToRead) {
  Write(std::string(100, 'a'));
  ASSERT_TRUE(outbox_.Look());
  Send(Fill(/*expect_all=*/true));
  Truncate(150);
  ASSERT_TRUE(outbox_.Look());
  Truncate(30);
  EXPECT_EQ(Fill(/*expect_all=*/false).files_size(), 0);
  // It was written anew: all of it goes, from its beginning.
  ASSERT_TRUE(outbox_.Look());
  const v1::SyncRequest request = Fill(/*expect_all=*/true);
  ASSERT_EQ(request.files_size(), 1);
  EXPECT_EQ(request.files(0).offset(), 0);
  EXPECT_EQ(request.files(0).data().size(), 30u);
}

}  // namespace
}  // namespace shirabe::sidecar
