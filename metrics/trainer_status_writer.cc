#include "metrics/trainer_status_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "base/text/number.h"

namespace shirabe::metrics {
namespace {

std::string QuotedName(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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
    absl::StrAppend(&line, separator, QuotedName(point.metric), ": ", FormatNumber(point.value));
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
