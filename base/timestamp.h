// Points in time and durations as messages keep them, and as people read them. Pure functions.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace shirabe {

// The last second that a timestamp may have, in the year 9999; of Unix time.
inline constexpr double kMaxUnixSeconds = 253402300799;

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& time);
google::protobuf::Duration ToProto(absl::Duration duration);  // a finite one
absl::Duration FromProto(const google::protobuf::Duration& duration);
// RFC 3339 in UTC, seconds: 2026-11-21T08:30:00Z. "" for an unset timestamp.
std::string FormatTime(const google::protobuf::Timestamp& time);
// 45s, 2m5s, 12m, 3h20m, 30h, 5d4h, 90d: as precise as a reader of tables needs, like kubectl.
std::string FormatAge(absl::Duration age);

}  // namespace shirabe
