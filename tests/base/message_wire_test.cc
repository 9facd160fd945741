#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/text/message_check.h"
#include "proto/katib/v1beta1/api.pb.h"
#include "proto/shirabe/v1/api.pb.h"

namespace shirabe {
namespace {

namespace katib = api::v1::beta1;

using google::protobuf::Descriptor;
using testing::HasSubstr;

const Descriptor& Type() { return *katib::GetSuggestionsRequest::descriptor(); }

std::string Repeated(const std::string& piece, int64_t times) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += piece;
  return all;
}

// A field of length-delimited bytes.
std::string Field(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size > 127; size >>= 7) text += static_cast<char>((size & 127) | 128);
  return text + static_cast<char>(size) + bytes;
}

TEST(MessageWireTest, MessagesAreCountedAtAnyDepth) {
  const int number = katib::GetSuggestionsRequest::kTrialsFieldNumber;
  const std::string most = Repeated(Field(number, ""), kMaxWireObjects);
  EXPECT_TRUE(CheckWire(Type(), most).ok());
  const Status status = CheckWire(Type(), most + Field(number, ""));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("send them in several calls"));
  // TrialSpec.labels stand in trials[].spec.
  const int spec = katib::Trial::kSpecFieldNumber;
  const int labels = katib::TrialSpec::kLabelsFieldNumber;
  const auto deep = [&](int64_t count) {
    return Field(number, Field(spec, Repeated(Field(labels, ""), count)));
  };
  EXPECT_TRUE(CheckWire(Type(), deep(kMaxWireObjects - 2)).ok());
  EXPECT_FALSE(CheckWire(Type(), deep(kMaxWireObjects - 1)).ok());
}

TEST(MessageWireTest, FieldsThatTheTypeDoesNotHaveAreCountedOfEveryKind) {
  const std::string group = std::string("\xfb\x01\x08\x01\xfc\x01", 6);  // 31: {1: 1}
  for (const std::string& unknown :
       {std::string("\xf8\x01\x07", 3), Field(15, "x"), std::string("\xf9\x01") + "12345678",
        std::string("\xfd\x01") + "1234", group}) {
    EXPECT_TRUE(CheckWire(Type(), unknown).ok());
    EXPECT_FALSE(CheckWire(Type(), Repeated(unknown, kMaxWireObjects + 1)).ok());
  }
}

TEST(MessageWireTest, TextsOfListsAreCountedAndBytesAreNot) {
  const Descriptor& space = *katib::FeasibleSpace::descriptor();
  const int list = katib::FeasibleSpace::kListFieldNumber;
  EXPECT_FALSE(CheckWire(space, Repeated(Field(list, ""), kMaxWireObjects + 1)).ok());
  EXPECT_TRUE(
      CheckWire(space, Field(katib::FeasibleSpace::kMaxFieldNumber, std::string(4 << 20, 'x')))
          .ok());
}

// The largest that people have reason to send.
TEST(MessageWireTest, AnImportOfFourMegabytesPasses) {
  v1::ImportRequest request;
  while (request.trials_size() < 2900) {
    v1::ImportRequest::Trial& trial = *request.add_trials();
    trial.set_name(absl::StrCat("t", request.trials_size()));
    for (int step = 1; step <= 100; ++step) {
      v1::ImportRequest::Point& point = *trial.add_points();
      point.set_step(step);
      point.set_value(0.5);
    }
  }
  const std::string bytes = request.SerializeAsString();
  EXPECT_GT(bytes.size(), 3'700'000u);
  EXPECT_LT(bytes.size(), 4u << 20);
  EXPECT_TRUE(CheckWire(*request.GetDescriptor(), bytes).ok());
}

// The parser refuses them; here they must only come to an end.
TEST(MessageWireTest, WhatCannotBeReadIsLeftToTheParser) {
  for (const std::string& text :
       {std::string("\x0a"), std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\x0a\x7f x"),
        std::string("\x0f"), std::string(100, '\xff'), Repeated("\x0b", 1'000'000)}) {
    EXPECT_TRUE(CheckWire(Type(), text).ok());
    EXPECT_FALSE(katib::GetSuggestionsRequest().ParseFromString(text));
  }
}

}  // namespace
}  // namespace shirabe
