#include "view/lineage.h"

#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "client/records/enum_words.h"
#include "view/csv_export.h"
#include "view/record_json.h"
#include "view/text_table.h"
#include "view/wait_condition.h"

namespace shirabe::view {
namespace {

constexpr int64_t kLineagePage = 500;

// An attempt and its trial.
struct Link {
  const v1::Trial& trial;
  const v1::Attempt& attempt;
};

// What ran in all of them, as spec.shirabe.code names it.
using Code = std::string;

// The attempts of trials that are next to each other.
Status EachAttemptOf(client::Client& client, const std::vector<v1::Trial>& trials,
                     const std::function<void(const Link&)>& visit) {
  db::AttemptQuery query{.experiment = ExperimentKeyOf(trials.front()),
                         .after_trial = trials.front().number() - 1,
                         .after_number = std::numeric_limits<int32_t>::max(),
                         .limit = kLineagePage};
  auto trial = trials.begin();
  for (;;) {
    ASSIGN_OR_RETURN(const std::vector<v1::Attempt> attempts, client.ListAttempts(query));
    for (const v1::Attempt& attempt : attempts) {
      while (trial != trials.end() && trial->number() < attempt.trial()) ++trial;
      if (trial == trials.end()) return absl::OkStatus();
      if (trial->number() == attempt.trial()) visit({*trial, attempt});
    }
    if (static_cast<int64_t>(attempts.size()) < kLineagePage) return absl::OkStatus();
    query.after_trial = attempts.back().trial();
    query.after_number = attempts.back().number();
  }
}

Status EachLink(client::Client& client, const ExperimentKey& key,
                const std::function<void(const Link&)>& visit) {
  Status status;
  const auto page = [&](const std::vector<v1::Trial>& trials) {
    status = EachAttemptOf(client, trials, visit);
    return status.ok();
  };
  RETURN_IF_ERROR(EachTrialPage(client, key, page));
  return status;
}

std::string ParentOf(const v1::Trial& trial) {
  if (trial.parent().trial() == 0) return "";
  return TrialName({ExperimentKeyOf(trial), trial.parent().trial()});
}

// "" = from the beginning. A record of before it was kept names no trial, which is then its own.
std::string ResumedFrom(const v1::Attempt& attempt) {
  if (attempt.resumed_from_attempt() == 0) return "";
  const int64_t trial =
      attempt.resumed_from_trial() == 0 ? attempt.trial() : attempt.resumed_from_trial();
  return AttemptName({{ExperimentKeyOf(attempt), trial}, attempt.resumed_from_attempt()});
}

std::string NameOfAttempt(const v1::Attempt& attempt) {
  return AttemptName({{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()});
}

// "digits-3, step 40"
std::string WithStep(const std::string& name, int64_t step) {
  if (name.empty() || step == 0) return name;
  return absl::StrCat(name, ", step ", step);
}

// The same for people.
std::string ResumedFromWords(const v1::Attempt& attempt) {
  const std::string name = ResumedFrom(attempt);
  if (!name.empty()) return WithStep(name, attempt.resumed_from_step());
  if (attempt.begin_untold()) return "not known";
  if (attempt.resumed_from_step() == 0) return "the beginning";
  return WithStep("an earlier attempt", attempt.resumed_from_step());
}

// What is known of it once it has ended; before, what was seen so far.
std::string CauseOrState(const v1::Attempt& attempt) {
  const std::string cause = client::CauseWord(attempt.cause());
  return cause.empty() ? client::AttemptStateWord(attempt.state()) : cause;
}

std::vector<std::pair<std::string, Json>> LineageFields(const Link& link, const Code& code) {
  const v1::Attempt& attempt = link.attempt;
  const v1::Parent& parent = link.trial.parent();
  const bool resumed = attempt.resumed_from_attempt() != 0 || attempt.resumed_from_step() != 0;
  const bool ran = attempt.last_step() != 0;
  return {
      {"trial", TrialName({ExperimentKeyOf(link.trial), link.trial.number()})},
      {"attempt", attempt.number()},
      {"parent", TextOrNull(ParentOf(link.trial))},
      {"parent_step", parent.step() == 0 ? Json() : Json(parent.step())},
      {"resumed_from", TextOrNull(ResumedFrom(attempt))},
      {"resumed_from_step", resumed ? Json(attempt.resumed_from_step()) : Json()},
      {"last_step", ran ? Json(attempt.last_step()) : Json()},
      {"steps_gained", attempt.steps_gained()},
      {"steps_redone", attempt.steps_redone()},
      {"cause", CauseOrState(attempt)},
      {"seconds", NumberJson(attempt.seconds())},
      {"cost", NumberJson(attempt.cost())},
      {"code", TextOrNull(code)},
  };
}

std::string CellOf(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : PrintJsonLine(value);
}

std::string CsvOf(const std::vector<std::string>& cells) {
  const auto quote = [](std::string* out, const std::string& cell) { *out += CsvCell(cell); };
  return absl::StrJoin(cells, ",", quote) + "\n";
}

std::string LineageHeader() {
  std::vector<std::string> names;
  const v1::Trial trial;
  for (const auto& [name, value] : LineageFields({trial, v1::Attempt()}, "")) names.push_back(name);
  return CsvOf(names);
}

}  // namespace

StatusOr<std::string> DescribeLineage(client::Client& client, const ExperimentKey& key) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
  Table table({"ATTEMPT", "PARENT", "RESUMED-FROM", "LAST-STEP", "GAINED", "REDONE", "CAUSE"});
  bool any = false;
  RETURN_IF_ERROR(EachLink(client, key, [&](const Link& link) {
    const v1::Attempt& attempt = link.attempt;
    any = true;
    table.Add({NameOfAttempt(attempt), WithStep(ParentOf(link.trial), link.trial.parent().step()),
               ResumedFromWords(attempt), absl::StrCat(attempt.last_step()),
               absl::StrCat(attempt.steps_gained()), absl::StrCat(attempt.steps_redone()),
               CauseOrState(attempt)});
  }));
  std::string text;
  const auto& names = experiment.spec().shirabe().warm_start().experiments();
  if (!names.empty()) {
    absl::StrAppend(&text, "The search began with ", experiment.status().shirabe().prior_trials(),
                    " trials of ", absl::StrJoin(names, ", "), "\n");
  }
  const v1::CodePackage& code = experiment.spec().shirabe().code();
  if (!code.package().empty()) {
    absl::StrAppend(&text, "All attempts run code package ", code.package(), " of store ",
                    code.store(), "\n");
  }
  return text + (any ? table.Render() : "no attempt has been made yet\n");
}

Status EachLineageLine(client::Client& client, const ExperimentKey& key, bool csv,
                       const std::function<void(const std::string&)>& line) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
  const Code& code = experiment.spec().shirabe().code().package();
  if (csv) line(LineageHeader());
  return EachLink(client, key, [&](const Link& link) {
    if (csv) {
      std::vector<std::string> cells;
      for (const auto& [name, value] : LineageFields(link, code)) cells.push_back(CellOf(value));
      return line(CsvOf(cells));
    }
    Json object = Json::object();
    for (const auto& [name, value] : LineageFields(link, code)) object[name] = value;
    line(PrintJsonLine(object) + "\n");
  });
}

}  // namespace shirabe::view
