// When a schedule in the five fields of cron is due, in a time zone. A start is due in every minute
// whose local time matches the fields: a local time that a change of clocks leaves out is due on no
// instant of that day, and one that comes twice is due twice, as with Kubernetes' CronJob.
//
//   minute 0-59   hour 0-23   day of the month 1-31   month 1-12 or JAN-DEC
//   day of the week 0-6 or SUN-SAT, from Sunday
//
// Each is * or ?, a number, a range a-b, any of these with a step /n (a/n: from a to the greatest),
// or a list of them with commas. Where both kinds of day are restricted, either will do; */n is a
// restriction. @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually stand for five
// fields. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe::schedule {

class CronSchedule {
 public:
  // kInvalidArgument, with the field, what is wrong with it and how to write it. `zone` is a name
  // of the IANA database, as Europe/Berlin; "" is UTC.
  static StatusOr<CronSchedule> Parse(std::string_view text, const std::string& zone);

  // The first start that is due after this moment; InfiniteFuture if there is none within nine
  // years, as on 30 February.
  absl::Time NextAfter(absl::Time after) const;

  const absl::TimeZone& zone() const { return zone_; }

 private:
  struct Field {
    uint64_t bits = 0;  // of the values that match
    bool any = false;   // * or ?
    bool Has(int value) const { return (bits >> value & 1) != 0; }
  };
  friend class CronReader;

  bool IsDay(absl::CivilDay day) const;

  Field minutes_, hours_, days_, months_, weekdays_;
  absl::TimeZone zone_;
};

}  // namespace shirabe::schedule
