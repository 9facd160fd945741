// A trial's object, written in a test as JSON.
#pragma once

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace shirabe::trial {

inline google::protobuf::Struct ParseStruct(const std::string& json) {
  google::protobuf::Struct object;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &object);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << json;
  return object;
}

}  // namespace shirabe::trial
