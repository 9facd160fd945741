#include "rehearsal/rehearsal_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/text/number.h"
#include "client/records/enum_words.h"
#include "rehearsal/rehearsal.h"
#include "view/record_rows.h"
#include "view/spending.h"

namespace shirabe::rehearsal {
namespace {

// An interval this many times the recommended one is worth a word.
constexpr double kMaxIntervalRatio = 3;
// What a signal, the scheduler and the file system may take beyond a notice.
constexpr double kSlackSeconds = 0.5;

constexpr char kSaveFix[] =
    "save now and then: with shirabe.checkpoint(step) of sdk/python, or write "
    "$SHIRABE_CHECKPOINT_DIR/<step>.tmp/ and rename it to $SHIRABE_CHECKPOINT_DIR/<step>/";
constexpr char kStopFix[] =
    "on SIGTERM (shirabe.should_stop() is then true) save, and exit with 75 within the notice; a "
    "shell in front must pass the signal on (exec the program, or trap)";
constexpr char kResumeFix[] =
    "load from $SHIRABE_RESUME_FROM (shirabe.resume()) when it is not empty, and go on with the "
    "step after the one that the folder is named after";
constexpr char kSeedFix[] =
    "seed every generator from $SHIRABE_SEED, which is the same in all attempts of a trial, and "
    "rehearse again; or accept larger differences with --tolerance";
constexpr char kStateFix[] =
    "save all that the next step depends on: weights, optimiser, learning-rate schedule, the state "
    "of the random generators and the place in the data";

using Key = std::pair<std::string, int64_t>;  // metric and step
using Values = std::map<Key, double>;

double SecondsBetween(const google::protobuf::Timestamp& from,
                      const google::protobuf::Timestamp& to) {
  return absl::ToDoubleSeconds(FromProto(to) - FromProto(from));
}

// The upper one; nullopt if there is nothing.
template <class Number>
std::optional<Number> MedianOf(std::vector<Number> numbers) {
  return numbers.empty() ? std::nullopt : std::optional(UpperMedian(std::move(numbers)));
}

// ---- what was lost ------------------------------------------------------------------------------

std::string ExitText(const v1::Attempt& attempt) {
  if (attempt.signal() > 0) return absl::StrCat("signal ", attempt.signal());
  return attempt.has_exit_code() ? absl::StrCat("exit ", attempt.exit_code()) : "unknown";
}

const PlannedPreemption* PreemptionOf(const Rehearsal& rehearsal, const v1::Attempt& attempt) {
  if (!WasPreempted(attempt)) return nullptr;
  for (const PlannedPreemption& preemption : rehearsal.preemptions) {
    if (view::PlacementOf(attempt).pool() == preemption.pool) return &preemption;
  }
  return nullptr;
}

// Killed at the end of its notice, or at its own end as if nothing had been said.
bool RanOn(const PlannedPreemption& preemption, const v1::Attempt& attempt, int64_t last_step) {
  constexpr int kKilled = 9;
  if (preemption.notice <= 0) return false;
  if (attempt.signal() == kKilled) return true;
  return attempt.has_exit_code() && attempt.exit_code() == 0 && attempt.last_step() >= last_step;
}

// What the next attempt did about it.
void AddNext(const RehearsalRun& run, const v1::Attempt& lost, const v1::Attempt& next,
             LostAttempt& entry) {
  entry.resumed_from = next.resumed_from_step();
  absl::Time sign = FromProto(next.has_start_time() ? next.start_time() : lost.end_time());
  std::optional<absl::Time> first;
  for (const db::StoredObservation& row : run.rows) {
    if (row.attempt != next.number()) continue;
    first = std::min(first.value_or(row.time), row.time);
    if (row.implicit_step) continue;
    entry.first_step = std::min(entry.first_step.value_or(row.step), row.step);
  }
  sign = std::max(sign, first.value_or(sign));
  entry.again_seconds = std::max(0.0, absl::ToDoubleSeconds(sign - FromProto(lost.end_time())));
}

LostAttempt LossOf(const Rehearsal& rehearsal, const PlannedPreemption& preemption,
                   const v1::Attempt& attempt) {
  const RehearsalRun& run = rehearsal.preempted;
  LostAttempt entry;
  entry.number = attempt.number();
  entry.notice = preemption.notice;
  entry.exit = ExitText(attempt);
  entry.ran_on = RanOn(preemption, attempt, rehearsal.baseline.trial.last_step());
  const double ran = SecondsBetween(run.attempts[0].start_time(), attempt.end_time());
  entry.stopped_after = std::max(0.0, ran - preemption.at);
  google::protobuf::Timestamp saved = attempt.start_time();
  for (const v1::Checkpoint& checkpoint : run.checkpoints) {
    if (checkpoint.attempt() > attempt.number()) continue;
    entry.newest_step = std::max(entry.newest_step, checkpoint.step());
    if (checkpoint.attempt() < attempt.number()) continue;
    if (FromProto(checkpoint.time()) > FromProto(saved)) saved = checkpoint.time();
  }
  entry.lost_seconds = std::max(0.0, SecondsBetween(saved, attempt.end_time()));
  for (const v1::Attempt& next : run.attempts) {
    if (next.number() == attempt.number() + 1) AddNext(run, attempt, next, entry);
  }
  return entry;
}

// ---- whether the numbers are the same -----------------------------------------------------------

// Of several attempts the last one's value counts.
Values CountedValues(const RehearsalRun& run) {
  Values values;
  for (const db::StoredObservation& row : run.rows) {
    if (!row.superseded) values[{row.metric, row.step}] = row.value;
  }
  return values;
}

double RelativeDifference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double scale = std::max(std::abs(a), std::abs(b));
  const double difference = std::abs(a - b) / scale;
  return std::isfinite(difference) ? difference : HUGE_VAL;
}

Continuity Compare(const Rehearsal& rehearsal, double tolerance) {
  Continuity result;
  const Values whole = CountedValues(rehearsal.baseline);
  const Values parts = CountedValues(rehearsal.preempted);
  for (const auto& [key, value] : whole) {
    const auto other = parts.find(key);
    if (other == parts.end()) {
      ++result.missing;
      continue;
    }
    ++result.compared;
    const double relative = RelativeDifference(value, other->second);
    if (relative > tolerance) ++result.different;
    if (relative > result.worst.relative) {
      result.worst = {key.first, key.second, value, other->second, relative};
    }
  }
  for (const auto& [key, value] : parts) result.extra += whole.contains(key) ? 0 : 1;
  for (const db::StoredObservation& row : rehearsal.preempted.rows) {
    const auto other = whole.find({row.metric, row.step});
    if (row.attempt != 1 || other == whole.end()) continue;
    result.differs_before_any_loss |= RelativeDifference(other->second, row.value) > tolerance;
  }
  return result;
}

// ---- the checks ---------------------------------------------------------------------------------

RehearsalCheck CheckFinishes(const Rehearsal& rehearsal, const RehearsalReport& report) {
  const v1::Trial& trial = rehearsal.preempted.trial;
  RehearsalCheck check{.name = "finishes"};
  const int played = static_cast<int>(report.lost.size());
  check.message = absl::StrFormat("%s in spite of %d of %d reclaims, in %.1f s instead of %.1f s",
                                  client::PhaseWord(trial.phase()), played, report.planned,
                                  report.disturbed_seconds, report.undisturbed_seconds);
  if (trial.phase() != v1::TRIAL_SUCCEEDED) {
    check.verdict = Verdict::kFailed;
    check.message += absl::StrCat(" (", trial.reason(), ": ", trial.message(), ")");
    check.fix = "look at what the last attempt printed: run the same file with `shirabe run`";
  } else if (played == 0) {
    check.verdict = Verdict::kFailed;
    check.fix = "nothing was taken away in time: give it more work to do, or another --seed";
  } else if (played < report.planned) {
    check.verdict = Verdict::kWarning;
    check.fix = "fewer reclaims than planned found it running: give it more work, or less --notice";
  }
  return check;
}

RehearsalCheck CheckSaves(const RehearsalReport& report) {
  RehearsalCheck check{.name = "saves"};
  if (report.checkpoints == 0) {
    return {.name = "saves",
            .verdict = Verdict::kFailed,
            .message =
                "it never saves: without preemptions, no checkpoint appeared in "
                "$SHIRABE_CHECKPOINT_DIR, so every preemption starts it from the beginning",
            .fix = kSaveFix};
  }
  check.message = absl::StrCat(report.checkpoints, " checkpoints, ",
                               FormatBytes(report.checkpoint_bytes), " each");
  if (report.checkpoint_seconds) {
    absl::StrAppendFormat(&check.message, ", %.3g s to save one", *report.checkpoint_seconds);
  }
  if (report.interval_seconds) {
    absl::StrAppendFormat(&check.message, ", every %.3g s", *report.interval_seconds);
  }
  return check;
}

RehearsalCheck CheckStops(const RehearsalReport& report) {
  double slowest = 0, notice = 0;
  int noticed = 0;
  for (const LostAttempt& lost : report.lost) {
    if (lost.notice <= 0) continue;
    ++noticed;
    if (lost.ran_on || lost.stopped_after > lost.notice + kSlackSeconds) {
      return {.name = "stops",
              .verdict = Verdict::kFailed,
              .message = absl::StrFormat(
                  "it ignores SIGTERM: attempt %d went on for %.1f s after a notice of %.4g s (%s)",
                  lost.number, lost.stopped_after, lost.notice, lost.exit),
              .fix = kStopFix};
    }
    slowest = std::max(slowest, lost.stopped_after);
    notice = lost.notice;
  }
  if (noticed == 0) {
    return {.name = "stops",
            .verdict = Verdict::kWarning,
            .message = "no reclaim with notice found it running",
            .fix = "rehearse with more --reclaims, or with more work to do"};
  }
  return {
      .name = "stops",
      .message = absl::StrFormat("at most %.2f s after the notice, of %.4g s", slowest, notice)};
}

RehearsalCheck CheckResumes(const RehearsalReport& report) {
  RehearsalCheck check{.name = "resumes"};
  int from_checkpoint = 0;
  for (const LostAttempt& lost : report.lost) {
    if (!lost.resumed_from) continue;
    const int next = lost.number + 1;
    check.verdict = Verdict::kFailed;
    if (*lost.resumed_from != lost.newest_step) {
      check.message = absl::StrFormat("attempt %d was started from step %d, and step %d was saved",
                                      next, *lost.resumed_from, lost.newest_step);
      check.fix = "look for CheckpointDamaged in what happened, and save each step only once";
      return check;
    }
    if (lost.first_step && *lost.resumed_from > 0 && *lost.first_step <= *lost.resumed_from) {
      check.message = absl::StrFormat(
          "attempt %d began again at step %d although it was given the checkpoint of step %d", next,
          *lost.first_step, *lost.resumed_from);
      check.fix = kResumeFix;
      return check;
    }
    check.verdict = Verdict::kOk;
    from_checkpoint += *lost.resumed_from > 0 ? 1 : 0;
  }
  check.message = absl::StrFormat("%d of %d restarts went on from a checkpoint, at its step",
                                  from_checkpoint, report.lost.size());
  if (report.lost.empty()) check.message = "nothing was taken away, so nothing had to resume";
  if (from_checkpoint > 0 || report.lost.empty()) return check;
  check.verdict = report.checkpoints == 0 ? Verdict::kFailed : Verdict::kWarning;
  check.message = "every restart began at step 0: nothing had been saved by then";
  check.fix = report.checkpoints == 0 ? kSaveFix : "save earlier, or rehearse with more work to do";
  return check;
}

RehearsalCheck CheckContinuous(const RehearsalReport& report) {
  const Continuity& facts = report.continuity;
  RehearsalCheck check{.name = "continuous"};
  if (facts.different == 0 && facts.missing == 0 && facts.extra == 0) {
    check.message =
        absl::StrFormat("all %d values are those of the undisturbed run", facts.compared);
    if (facts.worst.relative > 0) {
      absl::StrAppendFormat(&check.message, ", within %.1e", facts.worst.relative);
    }
    return check;
  }
  const Deviation& worst = facts.worst;
  check.message = absl::StrFormat("%d of %d values differ, %d are missing, %d too many",
                                  facts.different, facts.compared, facts.missing, facts.extra);
  if (facts.different > 0) {
    absl::StrAppendFormat(&check.message, "; most %s at step %d: %.6g instead of %.6g",
                          worst.metric, worst.step, worst.preempted, worst.baseline);
  }
  const bool only_values = facts.missing == 0 && facts.extra == 0;
  if (only_values && facts.differs_before_any_loss) {
    check.verdict = Verdict::kWarning;
    check.message += "; they do so before anything was taken away: the program is not repeatable";
    check.fix = kSeedFix;
    return check;
  }
  check.verdict = Verdict::kFailed;
  check.fix = only_values ? kStateFix : kResumeFix;
  return check;
}

RehearsalCheck CheckInterval(const RehearsalReport& report) {
  RehearsalCheck check{.name = "interval"};
  if (!report.recommended_seconds) {
    check.message = "what a checkpoint costs could not be measured";
    return check;
  }
  const double best = *report.recommended_seconds;
  const double mean = 3600 / report.reclaims_per_hour;
  check.message = absl::StrFormat(
      "at %.3g reclaims an hour, save every %.3g s (Young/Daly): %.2g %% of the time goes into it",
      report.reclaims_per_hour, best,
      100 * ExpectedOverhead(best, report.checkpoint_seconds.value_or(0), mean));
  if (report.interval_seconds.value_or(0) <= kMaxIntervalRatio * best) return check;
  check.verdict = Verdict::kWarning;
  check.message += absl::StrFormat("; now it is every %.3g s", *report.interval_seconds);
  check.fix = "save more often: a machine may vanish without notice";
  return check;
}

// ---- what saving costs --------------------------------------------------------------------------

void MeasureSaving(const Rehearsal& rehearsal, RehearsalReport& report) {
  const RehearsalRun& run = rehearsal.baseline;
  std::vector<int64_t> sizes;
  std::vector<absl::Time> times;
  for (const v1::Checkpoint& checkpoint : run.checkpoints) {
    sizes.push_back(checkpoint.bytes());
    times.push_back(FromProto(checkpoint.time()));
  }
  StableSort(times);
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) {
    gaps.push_back(absl::ToDoubleSeconds(times[i] - times[i - 1]));
  }
  std::vector<double> saves = run.save_seconds;
  saves.insert(saves.end(), rehearsal.preempted.save_seconds.begin(),
               rehearsal.preempted.save_seconds.end());
  report.checkpoints = static_cast<int64_t>(sizes.size());
  report.checkpoint_bytes = MedianOf(sizes).value_or(0);
  report.checkpoint_seconds = MedianOf(saves);
  report.interval_seconds = MedianOf(gaps);
  if (report.checkpoint_seconds.value_or(0) <= 0 || report.reclaims_per_hour <= 0) return;
  report.recommended_seconds =
      DalyInterval(*report.checkpoint_seconds, 3600 / report.reclaims_per_hour);
}

}  // namespace

RehearsalReport Judge(const Rehearsal& rehearsal, const JudgeOptions& options) {
  RehearsalReport report;
  report.undisturbed_seconds = WholeSeconds(rehearsal.baseline);
  report.disturbed_seconds = WholeSeconds(rehearsal.preempted);
  report.planned = static_cast<int>(rehearsal.preemptions.size());
  report.reclaims_per_hour = options.reclaims_per_hour;
  for (const v1::Attempt& attempt : rehearsal.preempted.attempts) {
    const PlannedPreemption* preemption = PreemptionOf(rehearsal, attempt);
    if (preemption != nullptr) report.lost.push_back(LossOf(rehearsal, *preemption, attempt));
  }
  report.continuity = Compare(rehearsal, options.tolerance);
  MeasureSaving(rehearsal, report);
  report.checks = {CheckFinishes(rehearsal, report),
                   CheckSaves(report),
                   CheckStops(report),
                   CheckResumes(report),
                   CheckContinuous(report),
                   CheckInterval(report)};
  report.safe =
      std::none_of(report.checks.begin(), report.checks.end(),
                   [](const RehearsalCheck& check) { return check.verdict == Verdict::kFailed; });
  return report;
}

}  // namespace shirabe::rehearsal
