#include "cmd/verbs/jobs/job_logs.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/printable.h"
#include "client/records/enum_words.h"
#include "cmd/terminal.h"

namespace shirabe::cmd {
namespace {

constexpr int64_t kLogPiece = 1 << 16;
// A line that is longer is printed in pieces.
constexpr size_t kMaxLogLine = 1 << 16;

}  // namespace

void JobLogs::PrintLine(const AttemptKey& key, const std::string& line) const {
  const std::string prefix =
      prefix_ ? absl::StrCat(key.trial.number, ".", key.number, "  ") : std::string();
  Out(absl::StrCat(prefix, Printable(line), "\n"));
}

Status JobLogs::PrintAttempt(const AttemptKey& key) {
  Tail& tail = tails_[{key.trial.number, key.number}];
  for (;;) {
    const auto chunk = client_->ReadLog(key, tail.offset, kLogPiece);
    if (absl::IsNotFound(chunk.status())) return absl::OkStatus();
    RETURN_IF_ERROR(chunk.status());
    tail.begun += chunk->text();
    tail.offset = chunk->next();
    size_t begin = 0;
    for (size_t end = tail.begun.find('\n'); end != std::string::npos;
         end = tail.begun.find('\n', begin)) {
      PrintLine(key, tail.begun.substr(begin, end - begin));
      begin = end + 1;
    }
    tail.begun.erase(0, begin);
    if (tail.begun.size() > kMaxLogLine) PrintLine(key, std::exchange(tail.begun, ""));
    if (chunk->at_end()) return FlushOut();
  }
}

Status JobLogs::PrintTrial(const v1::Trial& trial) {
  const TrialKey key{key_, trial.number()};
  for (int32_t attempt = 1; attempt <= trial.attempts(); ++attempt) {
    RETURN_IF_ERROR(PrintAttempt({key, attempt}));
  }
  if (!client::IsTerminal(trial.phase())) return absl::OkStatus();
  for (int32_t attempt = 1; attempt <= trial.attempts(); ++attempt) {
    const auto tail = tails_.extract({trial.number(), attempt});
    if (!tail.empty() && !tail.mapped().begun.empty()) {
      PrintLine({key, attempt}, tail.mapped().begun);
    }
  }
  ended_.insert(trial.number());
  return absl::OkStatus();
}

Status JobLogs::Print() {
  ASSIGN_OR_RETURN(const auto trials, client_->ListTrials({.experiment = key_}));
  for (const v1::Trial& trial : trials) {
    if (!ended_.contains(trial.number())) RETURN_IF_ERROR(PrintTrial(trial));
  }
  return FlushOut();
}

void JobLogs::PrintSometimes(absl::Duration interval) {
  const absl::Duration now = RealClock()->Monotonic();
  if (now < next_) return;
  next_ = now + interval;
  Print().IgnoreError();
}

}  // namespace shirabe::cmd
