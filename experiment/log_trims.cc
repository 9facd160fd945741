#include "experiment/log_trims.h"

#include <limits>

#include "base/log.h"
#include "metrics/journal.h"
#include "trial/log_file.h"

namespace shirabe::experiment {
namespace {

// How much of a log its collector has read; all of it where none does.
int64_t ReadOf(const v1::Attempt& attempt, const metrics::Source& source) {
  for (const v1::FileCursor& file : attempt.cursor().files()) {
    if (file.path() == source.log) return static_cast<int64_t>(file.offset());
  }
  const bool reads = source.spec.collector().kind() == v1::STD_OUT;
  return reads ? 0 : std::numeric_limits<int64_t>::max();
}

}  // namespace

void LogTrims::Note(Live& live, const metrics::Source& source) {
  const trial::LogLimits limits;
  if (source.log.empty()) return;
  if (trial::DiskBytes(source.log) <= limits.head + limits.tail + 2 * limits.step) return;
  const int64_t read = ReadOf(live.open->record, source);
  // An old cursor is no harm as long as what it has still to read is there.
  live.open_changed = true;
  logs_.push_back({source.log, metrics::RootOf(source, source.log), read});
}

void LogTrims::Run() const {
  for (const LongLog& log : logs_) {
    const Status trimmed = trial::TrimLog(log.path, log.read, {}, log.root);
    if (trimmed.ok() || absl::IsUnimplemented(trimmed)) continue;
    Log(LogLevel::kWarning, "a long log could not be shortened", {{"error", Message(trimmed)}});
  }
}

}  // namespace shirabe::experiment
