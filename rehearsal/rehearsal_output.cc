// A rehearsal's report for people, and for scripts.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rehearsal/rehearsal_report.h"
#include "view/text_table.h"

namespace shirabe::rehearsal {
namespace {

const char* VerdictWord(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kWarning: return "warning";
    default: return "FAILED";
  }
}

std::string Seconds(double seconds) { return absl::StrFormat("%.2f", seconds); }

std::string StepText(const std::optional<int64_t>& step) {
  return step ? std::to_string(*step) : "";
}

std::string LostTable(const std::vector<LostAttempt>& lost) {
  if (lost.empty()) return "";
  view::Table table({"ATTEMPT", "NOTICE", "STOPPED-AFTER", "EXIT", "SAVED", "RESUMED-FROM",
                     "FIRST-STEP", "LOST", "BACK-AFTER"});
  for (const LostAttempt& entry : lost) {
    table.Add({std::to_string(entry.number), Seconds(entry.notice), Seconds(entry.stopped_after),
               entry.exit, entry.newest_step > 0 ? std::to_string(entry.newest_step) : "",
               StepText(entry.resumed_from), StepText(entry.first_step),
               Seconds(entry.lost_seconds), Seconds(entry.again_seconds)});
  }
  return table.Render() + "\n";
}

view::Json StepJson(const std::optional<int64_t>& step) {
  return step ? view::Json(*step) : view::Json();
}

view::Json SecondsJson(const std::optional<double>& seconds) {
  return seconds ? view::NumberJson(*seconds) : view::Json();
}

view::Json LostJson(const LostAttempt& entry) {
  return {{"attempt", entry.number},
          {"noticeSeconds", view::NumberJson(entry.notice)},
          {"stoppedAfterSeconds", view::NumberJson(entry.stopped_after)},
          {"exit", entry.exit},
          {"savedStep", entry.newest_step},
          {"resumedFromStep", StepJson(entry.resumed_from)},
          {"firstStep", StepJson(entry.first_step)},
          {"lostSeconds", view::NumberJson(entry.lost_seconds)},
          {"backAfterSeconds", view::NumberJson(entry.again_seconds)}};
}

view::Json CheckJson(const RehearsalCheck& check) {
  const bool failed = check.verdict == Verdict::kFailed;
  view::Json tree = {{"name", check.name},
                     {"verdict", failed ? "failed" : VerdictWord(check.verdict)},
                     {"message", check.message}};
  if (!check.fix.empty()) tree["fix"] = check.fix;
  return tree;
}

view::Json ContinuityJson(const Continuity& facts) {
  view::Json tree = {{"compared", facts.compared},
                     {"different", facts.different},
                     {"missing", facts.missing},
                     {"extra", facts.extra},
                     {"repeatable", !facts.differs_before_any_loss}};
  if (facts.worst.relative == 0) return tree;
  tree["worst"] = {{"metric", facts.worst.metric},
                   {"step", facts.worst.step},
                   {"undisturbed", view::NumberJson(facts.worst.baseline)},
                   {"disturbed", view::NumberJson(facts.worst.preempted)},
                   {"relative", view::NumberJson(facts.worst.relative)}};
  return tree;
}

}  // namespace

std::string ReportText(const RehearsalReport& report) {
  std::string text = LostTable(report.lost);
  int64_t failed = 0;
  for (const RehearsalCheck& check : report.checks) {
    absl::StrAppendFormat(&text, "%-8s %-11s %s\n", VerdictWord(check.verdict), check.name,
                          view::Printable(check.message));
    if (!check.fix.empty()) absl::StrAppend(&text, std::string(21, ' '), "fix: ", check.fix, "\n");
    failed += check.verdict == Verdict::kFailed ? 1 : 0;
  }
  if (report.safe) return text + "\nsafe: it may run on machines that vanish\n";
  return absl::StrCat(text, "\nnot safe: ", failed, " of ", report.checks.size(),
                      " checks failed\n");
}

view::Json ReportJson(const RehearsalReport& report) {
  view::Json tree = {{"kind", "Rehearsal"},
                     {"safe", report.safe},
                     {"undisturbedSeconds", view::NumberJson(report.undisturbed_seconds)},
                     {"disturbedSeconds", view::NumberJson(report.disturbed_seconds)},
                     {"plannedReclaims", report.planned},
                     {"checkpoints", report.checkpoints},
                     {"checkpointBytes", report.checkpoint_bytes},
                     {"checkpointSeconds", SecondsJson(report.checkpoint_seconds)},
                     {"intervalSeconds", SecondsJson(report.interval_seconds)},
                     {"recommendedIntervalSeconds", SecondsJson(report.recommended_seconds)},
                     {"reclaimsPerHour", view::NumberJson(report.reclaims_per_hour)}};
  tree["continuity"] = ContinuityJson(report.continuity);
  tree["lostAttempts"] = view::Json::array();
  for (const LostAttempt& entry : report.lost) tree["lostAttempts"].push_back(LostJson(entry));
  tree["checks"] = view::Json::array();
  for (const RehearsalCheck& check : report.checks) tree["checks"].push_back(CheckJson(check));
  return tree;
}

}  // namespace shirabe::rehearsal
