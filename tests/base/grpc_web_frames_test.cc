// The frames of gRPC-Web, as both ends of it write and read them.
#include "base/text/grpc_web_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe {
namespace {

using ::testing::ElementsAre;

TEST(GrpcWebFramesTest, WhatIsWrittenIsRead) {
  const std::string zeros(3, '\0');
  const Status end = absl::NotFoundError("no trial \"größer\" of 100%\nat all");
  const auto body =
      ParseFrames(MessageFrame("one") + MessageFrame("") + MessageFrame(zeros) + EndFrame(end));
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_THAT(body->messages, ElementsAre("one", "", zeros));
  EXPECT_TRUE(body->complete);
  EXPECT_EQ(body->end, end);
}

TEST(GrpcWebFramesTest, TheBytesAreThoseOfTheStandard) {
  EXPECT_EQ(MessageFrame("ab"), std::string("\0\0\0\0\2ab", 7));
  EXPECT_EQ(EndFrame(absl::OkStatus()),
            std::string("\x80\0\0\0\x1e", 5) + "grpc-status:0\r\ngrpc-message:\r\n");
}

TEST(GrpcWebFramesTest, AStatusOfOthersIsReadToo) {
  const std::string text = "GRPC-Status: 7\r\nother: x\r\n";
  const auto body =
      ParseFrames(std::string("\x80\0\0\0", 4) + static_cast<char>(text.size()) + text);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->end, absl::PermissionDeniedError(""));
}

TEST(GrpcWebFramesTest, WhatHasNoEndIsNotComplete) {
  EXPECT_FALSE(ParseFrames(MessageFrame("one"))->complete);
  EXPECT_FALSE(ParseFrames("")->complete);
}

TEST(GrpcWebFramesTest, WhatIsCutOffOrSomethingElseIsRefused) {
  const std::string whole = MessageFrame("one") + EndFrame(absl::OkStatus());
  for (size_t size = 1; size < whole.size(); ++size) {
    if (size == MessageFrame("one").size()) continue;
    EXPECT_FALSE(ParseFrames(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseFrames(whole + MessageFrame("after the end")).ok());
  EXPECT_FALSE(ParseFrames("{\"kind\": \"Status\"}").ok());
  EXPECT_FALSE(ParseFrames(std::string("\0\xff\xff\xff\xff", 5)).ok());
}

}  // namespace
}  // namespace shirabe
