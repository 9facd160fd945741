#include "schedule/cron_schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"

namespace shirabe::schedule {

// Of one of the five.
struct CronFieldRule {
  const char* name;
  int least, greatest;
  const char* words;  // of the values, three letters each
};

namespace {

constexpr int kYearsAhead = 9;  // a leap day may be eight years away
constexpr size_t kMaxCronBytes = 200;
constexpr char kFieldsHelp[] =
    "write five fields, as in \"30 2 * * 1-5\": minute, hour, day of the "
    "month, month, day of the week";

constexpr std::array<CronFieldRule, 5> kFields = {{
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day of the month", 1, 31, ""},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {"day of the week", 0, 6, "sunmontuewedthufrisat"},
}};

constexpr std::pair<const char*, const char*> kMacros[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

std::optional<int> ReadInt(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Quoted, and not more of it than anyone would read.
std::string Shown(std::string_view text) { return Quoted(std::string(text.substr(0, 60))); }

}  // namespace

class CronReader {
 public:
  CronReader(const CronFieldRule& rule, std::string_view text) : rule_(rule), text_(text) {}

  StatusOr<CronSchedule::Field> Read() {
    CronSchedule::Field field;
    for (const absl::string_view part :
         absl::StrSplit(absl::string_view(text_.data(), text_.size()), ',')) {
      RETURN_IF_ERROR(AddPart({part.data(), part.size()}, field));
    }
    return field;
  }

 private:
  Status Error(std::string_view part, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", rule_.name, " ", Shown(part), " ", what, ": it is *, a value from ", rule_.least,
        " to ", rule_.greatest, ", a range a-b, with or without a step /n, ",
        "or a list of these with commas"));
  }

  StatusOr<int> Value(std::string_view text, std::string_view part) const {
    std::optional<int> value = ReadInt(text);
    const std::string word = absl::AsciiStrToLower(std::string(text));
    if (word.size() == 3) {
      const size_t at = std::string_view(rule_.words).find(word);
      if (at != std::string_view::npos && at % 3 == 0)
        value = static_cast<int>(at / 3) + rule_.least;
    }
    if (!value) return Error(part, "cannot be read");
    if (*value == 7 && rule_.greatest == 6) return Error(part, "is no day (Sunday is 0)");
    if (*value < rule_.least || *value > rule_.greatest) return Error(part, "is out of range");
    return *value;
  }

  Status AddPart(std::string_view part, CronSchedule::Field& field) const {
    const size_t slash = part.find('/');
    const std::string_view range = part.substr(0, slash);
    int step = 1;
    if (slash != std::string_view::npos) {
      const auto given = ReadInt(part.substr(slash + 1));
      if (!given || *given < 1) return Error(part, "has no step above 0 after the /");
      step = *given;
    }
    int first = rule_.least, last = rule_.greatest;
    if (range == "*" || range == "?") {
      field.any = field.any || step == 1;
    } else {
      const size_t dash = range.find('-');
      ASSIGN_OR_RETURN(first, Value(range.substr(0, dash), part));
      if (dash != std::string_view::npos) {
        ASSIGN_OR_RETURN(last, Value(range.substr(dash + 1), part));
      } else if (slash == std::string_view::npos) {
        last = first;
      }
      if (last < first) return Error(part, "ends before it begins");
    }
    for (int value = first; value <= last; value += std::min(step, 64)) {
      field.bits |= uint64_t{1} << value;
    }
    return absl::OkStatus();
  }

  const CronFieldRule& rule_;
  const std::string_view text_;
};

StatusOr<CronSchedule> CronSchedule::Parse(std::string_view text, const std::string& zone) {
  if (text.size() > kMaxCronBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", text.size(), " bytes, more than ", kMaxCronBytes, ": ", kFieldsHelp));
  }
  for (const auto& [macro, fields] : kMacros) {
    if (text == macro) text = fields;
  }
  if (text.find('=') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(text), " must not hold a time zone: write it into timeZone"));
  }
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()),
                                                        absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (parts.size() != kFields.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(text), " has ", parts.size(), " fields: ", kFieldsHelp));
  }
  CronSchedule made;
  const std::array<Field*, 5> fields = {&made.minutes_, &made.hours_, &made.days_, &made.months_,
                                        &made.weekdays_};
  for (size_t i = 0; i < fields.size(); ++i) {
    ASSIGN_OR_RETURN(*fields[i], CronReader(kFields[i], parts[i]).Read());
  }
  made.zone_ = absl::UTCTimeZone();
  // What it could otherwise mean is a file of this machine.
  const bool odd = zone.find("..") != std::string::npos || zone.rfind('/', 0) == 0 ||
                   zone.rfind("file:", 0) == 0 || zone == "localtime" || zone == "Local";
  if (!zone.empty() && (odd || !absl::LoadTimeZone(zone, &made.zone_))) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeZone ", Shown(zone),
                     " is not known here: write a name such as Europe/Berlin or Etc/UTC"));
  }
  return made;
}

// Where both are restricted, either will do.
bool CronSchedule::IsDay(absl::CivilDay day) const {
  // absl counts from Monday.
  const int weekday = (static_cast<int>(absl::GetWeekday(day)) + 1) % 7;
  const bool by_date = days_.Has(day.day()), by_week = weekdays_.Has(weekday);
  return days_.any || weekdays_.any ? by_date && by_week : by_date || by_week;
}

absl::Time CronSchedule::NextAfter(absl::Time after) const {
  const int64_t minute = absl::ToUnixSeconds(after) / 60;
  const int64_t floor = absl::ToUnixSeconds(after) < minute * 60 ? minute - 1 : minute;
  absl::Time at = absl::FromUnixSeconds((floor + 1) * 60);
  const absl::CivilYear last = absl::ToCivilYear(after, zone_) + kYearsAhead;
  for (;;) {
    const absl::CivilSecond local = zone_.At(at).cs;
    if (absl::CivilYear(local) > last) return absl::InfiniteFuture();
    absl::Time next = at + absl::Minutes(1);
    if (!months_.Has(local.month())) {
      next = std::max(next, absl::FromCivil(absl::CivilMonth(local) + 1, zone_));
    } else if (!IsDay(absl::CivilDay(local))) {
      next = std::max(next, absl::FromCivil(absl::CivilDay(local) + 1, zone_));
    } else if (!hours_.Has(local.hour())) {
      // By instants, so that an hour that comes twice is looked at twice; a change of clocks within
      // it is at worst stepped over by minutes.
      const absl::Time hour = at + absl::Minutes(60 - local.minute());
      const bool changes = zone_.At(hour - absl::Minutes(1)).offset != zone_.At(at).offset;
      if (!changes) next = hour;
    } else if (minutes_.Has(local.minute())) {
      return at;
    }
    at = next;
  }
}

}  // namespace shirabe::schedule
