// logs: what a trial printed, of its newest attempt, of a given one, or of all in turn.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "client/trial_files.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {
namespace {

constexpr int64_t kChunk = 1 << 16;
constexpr absl::Duration kLogPoll = absl::Milliseconds(200);

struct LogFlags {
  bool follow = false, all = false;
  std::optional<int64_t> attempt;
  std::optional<int64_t> tail;
};

// Prints what there is from `offset`, and moves it on. A log that is not there yet has nothing.
Status PrintMore(client::Client& client, const AttemptKey& key, int64_t& offset) {
  for (;;) {
    const auto chunk = client.ReadLog(key, offset, kChunk);
    if (absl::IsNotFound(chunk.status())) return absl::OkStatus();
    RETURN_IF_ERROR(chunk.status());
    Out(chunk->text());
    offset = chunk->next();
    if (chunk->at_end()) return FlushOut();
  }
}

// The offset at which the last `lines` lines begin.
StatusOr<int64_t> TailOffset(client::Client& client, const AttemptKey& key, int64_t lines) {
  std::vector<int64_t> starts = {0};  // of lines, the last `lines` + 1 of them
  int64_t offset = 0;
  for (;;) {
    const auto chunk = client.ReadLog(key, offset, kChunk);
    if (absl::IsNotFound(chunk.status())) return 0;
    RETURN_IF_ERROR(chunk.status());
    for (size_t i = 0; i < chunk->text().size(); ++i) {
      if (chunk->text()[i] == '\n') starts.push_back(offset + static_cast<int64_t>(i) + 1);
    }
    offset = chunk->next();
    const auto surplus = static_cast<int64_t>(starts.size()) - (lines + 1);
    if (surplus > 0) starts.erase(starts.begin(), starts.begin() + surplus);
    if (chunk->at_end()) break;
  }
  if (starts.back() != offset) starts.push_back(offset);  // the last line has no newline yet
  const auto count = static_cast<int64_t>(starts.size());
  return starts[std::max<int64_t>(0, count - 1 - lines)];
}

// The attempt to show: the given one, else the newest; 0 if there is none yet.
StatusOr<int32_t> FindAttempt(client::Client& client, const TrialKey& trial,
                              const LogFlags& flags) {
  ASSIGN_OR_RETURN(const client::Execution execution, client::ExecutionOf(client, trial));
  if (!flags.attempt) return execution.attempts;
  if (*flags.attempt <= execution.attempts) return static_cast<int32_t>(*flags.attempt);
  return absl::NotFoundError(absl::StrCat("trial ", TrialName(trial), " has ", execution.attempts,
                                          " attempts; there is no attempt ", *flags.attempt));
}

// Goes to stderr, since others read the log.
std::string Heading(const AttemptKey& key) { return "-- attempt " + AttemptName(key) + " --"; }

StatusOr<bool> IsOver(client::Client& client, const TrialKey& trial, int32_t attempt) {
  if (trial.number == kFollowUpNumber) {
    ASSIGN_OR_RETURN(const client::Execution execution, client::ExecutionOf(client, trial));
    return execution.ended || execution.attempts > attempt;
  }
  ASSIGN_OR_RETURN(const auto attempts,
                   client.ListAttempts({.experiment = trial.experiment, .trial = trial.number}));
  for (const v1::Attempt& record : attempts) {
    if (record.number() == attempt) return record.state() == v1::ATTEMPT_CLOSED;
  }
  return false;
}

// Until the attempt is closed; without --attempt it goes on with the next one, until the trial
// ends.
StatusOr<int> FollowLog(client::Client& client, const TrialKey& trial, const LogFlags& flags) {
  ASSIGN_OR_RETURN(int32_t attempt, FindAttempt(client, trial, flags));
  if (flags.all && attempt > 0) Hint(Heading({trial, attempt = 1}));
  int64_t offset = 0;
  if (attempt > 0 && flags.tail) {
    ASSIGN_OR_RETURN(offset, TailOffset(client, {trial, attempt}, *flags.tail));
  }
  for (;;) {
    bool over = false;
    if (attempt > 0) {
      ASSIGN_OR_RETURN(over, IsOver(client, trial, attempt));  // before the last read
      RETURN_IF_ERROR(PrintMore(client, {trial, attempt}, offset));
    }
    if (over && flags.attempt) return 0;
    ASSIGN_OR_RETURN(const client::Execution execution, client::ExecutionOf(client, trial));
    if (execution.attempts > attempt && (over || attempt == 0)) {
      attempt = attempt == 0 ? 1 : attempt + 1;
      offset = 0;
      Hint(Heading({trial, attempt}));
      continue;
    }
    if (execution.ended && (over || attempt == 0)) return 0;
    SleepUninterrupted(kLogPoll);
  }
}

// Of one whose log is not there, or no longer, it says so.
StatusOr<int> PrintAllLogs(client::Client& client, const TrialKey& trial, int32_t attempts) {
  for (int32_t attempt = 1; attempt <= attempts; ++attempt) {
    const AttemptKey key{trial, attempt};
    ProgressLine(Heading(key));
    const Status first = client.ReadLog(key, 0, 1).status();
    if (absl::IsNotFound(first)) {
      ProgressLine(std::string(first.message()));
      continue;
    }
    RETURN_IF_ERROR(first);
    int64_t offset = 0;
    RETURN_IF_ERROR(PrintMore(client, key, offset));
  }
  return 0;
}

StatusOr<int> PrintLog(client::Client& client, const TrialKey& trial, const LogFlags& flags) {
  ASSIGN_OR_RETURN(const int32_t attempt, FindAttempt(client, trial, flags));
  if (attempt == 0 && trial.number == kFollowUpNumber) {
    return absl::NotFoundError("what follows the experiment (spec.shirabe.onSuccess) has not " +
                               std::string("started yet: it has no log (shirabe describe ") +
                               trial.experiment.name + " says why)");
  }
  if (attempt == 0) {
    return absl::NotFoundError("trial " + TrialName(trial) +
                               " has not started yet: it has no log (shirabe describe trial " +
                               TrialName(trial) + " says why)");
  }
  if (flags.all) return PrintAllLogs(client, trial, attempt);
  const AttemptKey key{trial, attempt};
  int64_t offset = 0;
  if (flags.tail) {
    ASSIGN_OR_RETURN(offset, TailOffset(client, key, *flags.tail));
  }
  RETURN_IF_ERROR(client.ReadLog(key, offset, 1).status());
  RETURN_IF_ERROR(PrintMore(client, key, offset));
  return 0;
}

}  // namespace

StatusOr<int> Logs(const Arguments& arguments) {
  Globals globals;
  LogFlags flags;
  std::vector<std::string> names;
  Options options("logs TRIAL [-f]", "Prints the log of a trial's newest attempt.");
  options.Arguments("TRIAL", &names, 1, 1);
  options.Flag("-f,--follow", &flags.follow, "go on until the trial has ended");
  options.Number("--attempt", &flags.attempt, 1, "of this attempt");
  options.Flag("--all-attempts", &flags.all, "of each attempt in turn, the first one first");
  options.Number("--tail", &flags.tail, 0, "only the last N lines");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (flags.all && (flags.attempt || flags.tail)) {
    return UsageError(
        "--all-attempts prints whole logs of all: it does not go with --attempt or "
        "--tail");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const TrialKey trial, TrialArgument(names[0], session.ns));
  return flags.follow ? FollowLog(*session.client, trial, flags)
                      : PrintLog(*session.client, trial, flags);
}

SHIRABE_REGISTER(Verb, {.name = "logs",
                        .group = VerbGroup::kRead,
                        .summary = "print the log of a trial",
                        .completes = CompleteTrials,
                        .run = Logs});

}  // namespace shirabe::cmd
