#include "base/timestamp.h"

#include <algorithm>
#include <ctime>

#include "absl/strings/str_format.h"

namespace shirabe {
namespace {

struct Part {
  int64_t count;
  char unit;
};

// 2m5s, but 2m instead of 2m0s.
std::string TwoUnits(Part great, Part small) {
  std::string text = absl::StrFormat("%d%c", great.count, great.unit);
  if (small.count > 0) text += absl::StrFormat("%d%c", small.count, small.unit);
  return text;
}

}  // namespace

google::protobuf::Timestamp ToProto(absl::Time time) {
  const timespec parts = absl::ToTimespec(time);
  google::protobuf::Timestamp proto;
  proto.set_seconds(parts.tv_sec);
  proto.set_nanos(static_cast<int32_t>(parts.tv_nsec));
  return proto;
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return proto;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

std::string FormatTime(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", FromProto(time), absl::UTCTimeZone());
}

std::string FormatAge(absl::Duration age) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(age));
  const int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (seconds < 120) return absl::StrFormat("%ds", seconds);
  if (minutes < 10) return TwoUnits({minutes, 'm'}, {seconds % 60, 's'});
  if (hours < 3) return absl::StrFormat("%dm", minutes);
  if (hours < 8) return TwoUnits({hours, 'h'}, {minutes % 60, 'm'});
  if (hours < 48) return absl::StrFormat("%dh", hours);
  if (days < 8) return TwoUnits({days, 'd'}, {hours % 24, 'h'});
  return absl::StrFormat("%dd", days);
}

}  // namespace shirabe
