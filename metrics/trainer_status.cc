#include "metrics/trainer_status.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "metrics/line_parser.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {
namespace {

using Json = nlohmann::json;

Status Refuse(const std::string& field, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("trainerStatus", field, ": ", why));
}

// Numbers may be quoted, as the specification has them.
std::optional<double> StatusNumber(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  return ParseNumber(value.get_ref<const std::string&>());
}

StatusOr<std::optional<double>> Between(const Json& status, const char* key, double most) {
  const auto found = status.find(key);
  if (found == status.end() || found->is_null()) return std::nullopt;
  const std::optional<double> number = StatusNumber(*found);
  if (number && *number >= 0 && *number <= most && *number == std::floor(*number)) return number;
  return Refuse(absl::StrCat(".", key),
                absl::StrCat("must be a whole number from 0 to ", FormatNumber(most)));
}

// The names under which programs give their step.
bool IsStep(const std::string& name) {
  return name == "current_step" || name == "global_step" || name == "step";
}

// Grows with every step, whatever is logged.
bool IsProgress(const std::string& name) {
  return name == "total_steps" || name == "current_epoch" || name == "epoch";
}

bool IsEvaluation(const std::string& name) {
  return name.compare(0, 5, "eval_") == 0 || name.compare(0, 5, "test_") == 0;
}

Status ParseMetric(const Json& item, size_t index, TrainerStatus& status) {
  const std::string field = absl::StrCat(".metrics[", index, "]");
  if (!item.is_object()) return Refuse(field, "must be {name: …, value: …}");
  const auto name = item.find("name");
  const auto value = item.find("value");
  if (name == item.end() || !name->is_string() || value == item.end()) {
    return Refuse(field, "must be {name: …, value: …}");
  }
  const auto& word = name->get_ref<const std::string&>();
  const std::optional<double> number = StatusNumber(*value);
  if (!number) return absl::OkStatus();  // programs log words too
  if (word.size() > kMaxTrainerMetricName) {
    return Refuse(field, absl::StrCat("its name has more than ", kMaxTrainerMetricName, " bytes"));
  }
  if (!IsStep(word)) {
    status.metrics.emplace_back(word, *number);
  } else if (*number >= 0 && *number < 0x1p62 && *number == std::floor(*number)) {
    status.step = static_cast<int64_t>(*number);
  } else {
    return Refuse(field, absl::StrCat(word, " must be a whole number from 0"));
  }
  return absl::OkStatus();
}

Status TooManyMetrics() {
  return Refuse(".metrics", absl::StrCat("more than ", kMaxTrainerMetrics, " names are reported"));
}

// That of a call without one is not the step before it: a value of that may have come already.
std::optional<int64_t> StepOfCall(const TrainerStatus& status, const TrainerState& memory) {
  if (status.step) return status.step;
  std::optional<int64_t> step;
  if (memory.step) step = *memory.step + 1;
  const auto total = memory.metrics.find("total_steps");
  if (status.progress_percent != 100 || total == memory.metrics.end()) return step;
  const double steps = total->second.value;
  if (!(steps > 0 && steps < 0x1p53)) return step;
  return std::max(step.value_or(0), static_cast<int64_t>(steps));
}

// What is logged together.
using Cohort = std::pair<bool, int64_t>;

}  // namespace

StatusOr<TrainerStatus> ParseTrainerStatus(std::string_view body) {
  if (body.size() > kMaxTrainerStatusBytes) {
    return Refuse("", absl::StrCat("is larger than ", kMaxTrainerStatusBytes, " bytes"));
  }
  const Json json = ReadJsonOrDiscarded(body);
  if (!json.is_object() || !json.contains("trainerStatus")) {
    return Refuse("", absl::StrCat("is missing in ", Excerpt(body)));
  }
  const Json& fields = json["trainerStatus"];
  if (!fields.is_object()) return Refuse("", "must be an object");
  TrainerStatus status;
  ASSIGN_OR_RETURN(const auto percent, Between(fields, "progressPercentage", 100));
  if (percent) status.progress_percent = static_cast<int>(*percent);
  ASSIGN_OR_RETURN(const auto rest, Between(fields, "estimatedRemainingSeconds", 1e12));
  if (rest) status.remaining_seconds = static_cast<int64_t>(*rest);
  const auto time = fields.find("lastUpdatedTime");
  if (time != fields.end() && time->is_string()) {
    status.time = ParseTime(time->get_ref<const std::string&>());
  }
  const auto metrics = fields.find("metrics");
  if (metrics == fields.end() || metrics->is_null()) return status;
  if (!metrics->is_array()) return Refuse(".metrics", "must be a list of {name: …, value: …}");
  if (metrics->size() > kMaxTrainerMetrics) return TooManyMetrics();
  for (size_t i = 0; i < metrics->size(); ++i) {
    RETURN_IF_ERROR(ParseMetric((*metrics)[i], i, status));
  }
  return status;
}

StatusOr<std::vector<TrainerObservation>> NewObservations(const TrainerStatus& status,
                                                          TrainerState& memory) {
  std::set<std::string_view> unknown;
  for (const auto& [name, value] : status.metrics) {
    if (!memory.metrics.contains(name)) unknown.insert(name);
  }
  if (memory.metrics.size() + unknown.size() > kMaxTrainerMetrics) return TooManyMetrics();
  ++memory.calls;
  std::set<Cohort> fresh;
  const auto cohort_of = [&](const std::string& name) {
    return Cohort{IsEvaluation(name), memory.metrics.at(name).since};
  };
  for (const auto& [name, value] : status.metrics) {
    const auto [seen, first] = memory.metrics.try_emplace(name, TrainerState::Seen{});
    if (first) seen->second.since = memory.calls;
    const bool changed = first || !SameNumber(seen->second.value, value);
    seen->second.value = value;
    if (changed && !IsProgress(name)) fresh.insert(cohort_of(name));
  }
  if (status.step || !fresh.empty()) memory.step = StepOfCall(status, memory);
  std::vector<TrainerObservation> points;
  for (const auto& [name, value] : status.metrics) {
    if (fresh.contains(cohort_of(name))) points.push_back({name, value, memory.step});
  }
  return points;
}

namespace {

// All of one call is of one step. Non-finite values stand bare, as Python writes them.
std::string MetricsLine(const std::vector<TrainerObservation>& points,
                        const std::optional<absl::Time>& time) {
  std::string line = "{";
  if (points.front().step) absl::StrAppend(&line, "\"step\": ", *points.front().step, ", ");
  if (time)
    absl::StrAppend(&line, "\"timestamp\": ",
                    FormatNumber(absl::ToDoubleSeconds(*time - absl::UnixEpoch())), ", ");
  absl::StrAppend(&line, "\"metrics\": {");
  const char* separator = "";
  for (const TrainerObservation& point : points) {
    absl::StrAppend(&line, separator, JsonQuoted(point.metric), ": ", FormatNumber(point.value));
    separator = ", ";
  }
  return line + "}}\n";
}

// One write, so that no line of the program's comes between.
Status AppendLine(const std::string& path, const std::string& line, unsigned mode) {
  ASSIGN_OR_RETURN(const Fd fd, OpenBeneath("", path, O_WRONLY | O_APPEND | O_CREAT, mode));
  // Past the umask, where it has just been made. The program's own has rights of its own.
  struct stat info {};
  if (fstat(fd.get(), &info) == 0 && info.st_size == 0 && fchmod(fd.get(), mode) != 0) errno = 0;
  const ssize_t written = write(fd.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  return ErrnoStatus("cannot write " + path, written < 0 ? errno : ENOSPC);
}

// A file that cannot be written is not the call's fault, whatever stands in its place.
Status NotTheCalls(const Status& status) {
  return status.ok() ? status : absl::UnavailableError(Message(status));
}

}  // namespace

StatusOr<bool> TrainerStatusWriter::Write(const std::string& body) {
  ASSIGN_OR_RETURN(const TrainerStatus status, ParseTrainerStatus(body));
  TrainerState state = state_;
  ASSIGN_OR_RETURN(const auto points, NewObservations(status, state));
  if (!points.empty()) {
    RETURN_IF_ERROR(NotTheCalls(AppendLine(file_, MetricsLine(points, status.time), mode_)));
  }
  state_ = std::move(state);
  return !points.empty();
}

}  // namespace shirabe::metrics
