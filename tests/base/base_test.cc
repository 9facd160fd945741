// The small parts: status, clock, registry, log.
#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/registry.h"
#include "base/status.h"
#include "base/timestamp.h"

namespace shirabe {
namespace {

TEST(StatusTest, PrefixKeepsTheCode) {
  const Status status = Prefix("spec.seed", absl::OutOfRangeError("-1 is below 0"));
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(status), "spec.seed: -1 is below 0");
  EXPECT_TRUE(Prefix("x", absl::OkStatus()).ok());
}

TEST(StatusTest, ErrnoHasItsCode) {
  using enum absl::StatusCode;
  for (const auto& [error, code] : {std::pair{ENOSPC, kResourceExhausted},
                                    {EDQUOT, kResourceExhausted},
                                    {EFBIG, kResourceExhausted},
                                    {ENOENT, kNotFound},
                                    {EACCES, kPermissionDenied},
                                    {EROFS, kPermissionDenied},
                                    {EEXIST, kAlreadyExists},
                                    {EIO, kUnavailable}}) {
    EXPECT_EQ(ErrnoStatus("x", error).code(), code) << error;
  }
  EXPECT_EQ(Message(ErrnoStatus("cannot open a", ENOENT)),
            "cannot open a: No such file or directory");
}

StatusOr<int> Half(int x) {
  if (x % 2 != 0) return absl::InvalidArgumentError("odd");
  return x / 2;
}

Status Quarter(int x, int& result) {
  ASSIGN_OR_RETURN(const int half, Half(x));
  ASSIGN_OR_RETURN(result, Half(half));
  RETURN_IF_ERROR(absl::OkStatus());
  return absl::OkStatus();
}

TEST(StatusTest, MacrosReturnTheFirstError) {
  int result = 0;
  EXPECT_TRUE(Quarter(8, result).ok());
  EXPECT_EQ(result, 2);
  EXPECT_EQ(Message(Quarter(6, result)), "odd");
}

TEST(StatusTest, ChecksEndTheProcessAndSayWhere) {
  EXPECT_DEATH(CHECK(1 == 2), "base_test.cc:.*CHECK failed: 1 == 2");
  CHECK(true);
}

TEST(ClockTest, AManualClockMovesWhenTold) {
  ManualClock clock(absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(5));
  clock.StepWallClock(-absl::Seconds(50));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(55));
  EXPECT_EQ(clock.Monotonic(), absl::Seconds(5));
  EXPECT_DEATH(clock.Advance(-absl::Seconds(1)), "CHECK failed");
}

TEST(ClockTest, ManyThreadsMayAdvanceIt) {
  ManualClock clock(absl::UnixEpoch());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&clock] {
      for (int k = 0; k < 1000; ++k) clock.Advance(absl::Seconds(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(4000));
}

TEST(ClockTest, TheRealClockGoesOn) {
  const absl::Duration before = RealClock()->Monotonic();
  EXPECT_LE(before, RealClock()->Monotonic());
  EXPECT_GT(RealClock()->Now(), absl::FromUnixSeconds(1'700'000'000));
}

TEST(ClockTest, TimestampsAreExact) {
  const absl::Time time = absl::FromUnixNanos(1'700'000'000'123'456'789);
  EXPECT_EQ(FromProto(ToProto(time)), time);
  EXPECT_EQ(FromProto(ToProto(absl::FromUnixNanos(-1))), absl::FromUnixNanos(-1));
  EXPECT_EQ(FormatTime(ToProto(time)), "2023-11-14T22:13:20Z");
  EXPECT_EQ(FormatTime({}), "");
}

TEST(ClockTest, AgesAreShort) {
  const std::pair<int64_t, const char*> cases[] = {{-5, "0s"},
                                                   {0, "0s"},
                                                   {119, "119s"},
                                                   {120, "2m"},
                                                   {125, "2m5s"},
                                                   {600, "10m"},
                                                   {3 * 3600 - 1, "179m"},
                                                   {3 * 3600, "3h"},
                                                   {12000, "3h20m"},
                                                   {8 * 3600, "8h"},
                                                   {30 * 3600, "30h"},
                                                   {2 * 86400, "2d"},
                                                   {5 * 86400 + 4 * 3600, "5d4h"},
                                                   {90 * 86400, "90d"}};
  for (const auto& [seconds, text] : cases) EXPECT_EQ(FormatAge(absl::Seconds(seconds)), text);
  EXPECT_EQ(FormatAge(absl::Milliseconds(999)), "0s");
}

struct Shape {
  std::string name;
  std::vector<std::string> aliases;
  int corners = 0;
};

struct Plain {
  std::string name;
};

TEST(RegistryTest, FindsByNameAndAlias) {
  Registry<Shape> shapes;
  shapes.Add({.name = "square", .aliases = {"quad"}, .corners = 4});
  shapes.Add({.name = "line", .aliases = {}, .corners = 2});
  EXPECT_EQ(shapes.Find("quad")->corners, 4);
  EXPECT_EQ(shapes.Find("line")->corners, 2);
  EXPECT_EQ(shapes.Find("circle"), nullptr);
  EXPECT_EQ(shapes.Names(), (std::vector<std::string>{"line", "square"}));
  EXPECT_EQ(shapes.Aliases(), std::vector<std::string>{"quad"});
  Registry<Plain> plain;
  plain.Add({.name = "a"});
  EXPECT_NE(plain.Find("a"), nullptr);
}

TEST(RegistryTest, ANameGivenTwiceEndsTheProcess) {
  Registry<Shape> shapes;
  shapes.Add({.name = "square", .aliases = {"quad"}, .corners = 4});
  EXPECT_DEATH(shapes.Add({.name = "square", .aliases = {}, .corners = 4}), "CHECK failed");
  EXPECT_DEATH(shapes.Add({.name = "other", .aliases = {"quad"}, .corners = 4}), "CHECK failed");
  EXPECT_DEATH(shapes.Add({.name = "other", .aliases = {"square"}, .corners = 4}), "CHECK failed");
  EXPECT_DEATH(shapes.Add({.name = "quad", .aliases = {}, .corners = 4}), "CHECK failed");
}

// What Log writes to stderr, which is no terminal here.
std::string Logged(LogLevel level, std::string_view message, const std::string& value) {
  testing::internal::CaptureStderr();
  Log(level, message, {{"trial", value}});
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, OneJsonObjectALine) {
  const std::string line = Logged(LogLevel::kWarning, "gone", "a\"b\n\xff");
  ASSERT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  ASSERT_FALSE(parsed.is_discarded()) << line;
  EXPECT_EQ(parsed["level"], "warning");
  EXPECT_EQ(parsed["msg"], "gone");
  EXPECT_EQ(parsed["trial"], "a\"b\n\xEF\xBF\xBD");
  EXPECT_TRUE(parsed.contains("ts"));
}

TEST(LogTest, LevelsBelowTheLeastAreDropped) {
  EXPECT_EQ(Logged(LogLevel::kInfo, "x", "y"), "");
  SetLogLevel(LogLevel::kDebug);
  EXPECT_NE(Logged(LogLevel::kDebug, "x", "y"), "");
  SetLogLevel(LogLevel::kWarning);
}

}  // namespace
}  // namespace shirabe
