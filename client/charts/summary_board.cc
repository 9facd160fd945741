#include "client/charts/summary_board.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/timestamp.h"
#include "client/records/attempt_spending.h"
#include "client/records/enum_words.h"
#include "client/records/stored_records.h"
#include "experiment/conditions.h"

namespace shirabe::client {
namespace {

constexpr int64_t kManyChanges = 5000;  // then all summaries are made again

v1::Experiment OwnerOf(const v1::Experiment& experiment) {
  v1::Experiment owner;
  *owner.mutable_metadata() = experiment.metadata();
  owner.mutable_status()->mutable_shirabe()->set_namespace_uid(
      experiment.status().shirabe().namespace_uid());
  return owner;
}

void PutNames(const v1::Experiment& experiment, v1::Summary& summary) {
  const v1::ObjectiveSpec& objective = experiment.spec().objective();
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  summary.set_namespace_(experiment.metadata().namespace_());
  summary.set_name(experiment.metadata().name());
  summary.set_state(StateWord(experiment));
  summary.set_message(status.fatal().empty() ? experiment::CurrentCondition(experiment).message()
                                             : status.fatal());
  summary.set_waiting(status.waiting());
  summary.set_algorithm(status.algorithm().empty() ? experiment.spec().algorithm().algorithm_name()
                                                   : status.algorithm());
  summary.set_metric(objective.objective_metric_name());
  summary.set_objective_type(ObjectiveWord(objective.type()));
  if (objective.has_goal()) summary.set_goal(objective.goal());
  const std::string& currency = experiment.spec().shirabe().budget().currency();
  summary.set_currency(currency.empty() ? "USD" : currency);
  *summary.mutable_tags() = status.tags();
  if (status.has_on_success()) summary.set_on_success(FollowUpWord(status.on_success().phase()));
}

void PutTimes(const v1::Experiment& experiment, v1::Summary& summary) {
  const v1::ExperimentStatus& status = experiment.status();
  if (experiment.metadata().has_creation_timestamp()) {
    *summary.mutable_created() = experiment.metadata().creation_timestamp();
  }
  if (status.has_start_time()) *summary.mutable_started() = status.start_time();
  if (status.has_completion_time()) *summary.mutable_ended() = status.completion_time();
}

void PutCounts(const v1::Experiment& experiment, v1::Summary& summary) {
  const v1::ExperimentStatus& status = experiment.status();
  summary.set_trials(status.trials());
  summary.set_trials_pending(status.trials_pending());
  summary.set_trials_running(status.trials_running());
  summary.set_trials_succeeded(status.trials_succeeded());
  summary.set_trials_failed(status.trials_failed());
  summary.set_trials_killed(status.trials_killed());
  summary.set_trials_early_stopped(status.trials_early_stopped());
  summary.set_trials_metrics_unavailable(status.trial_metrics_unavailable());
  summary.set_trials_infeasible(status.shirabe().trials_infeasible());
  summary.set_trials_ended(status.trials_succeeded() + status.trials_failed() +
                           status.trials_killed() + status.trials_early_stopped() +
                           status.trial_metrics_unavailable());
  if (experiment.spec().has_max_trial_count()) {
    summary.set_max_trials(experiment.spec().max_trial_count());
  }
  summary.set_parallel_trials(std::max(experiment.spec().parallel_trial_count(), 1));
}

void PutBest(const v1::Experiment& experiment, v1::Summary& summary) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  const v1::ResultFront& front = experiment.status().shirabe().front();
  summary.set_front(front.size());
  if (front.has_hypervolume()) summary.set_hypervolume(front.hypervolume());
  if (!best.has_objective()) return;
  summary.mutable_best()->set_trial(best.number());
  summary.mutable_best()->set_value(best.objective());
  summary.mutable_best()->set_step(best.step());
  *summary.mutable_best()->mutable_assignments() = best.parameter_assignments();
}

void PutCosts(const v1::Experiment& experiment, const std::vector<v1::Attempt>& open,
              absl::Time now, v1::Summary& summary) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  summary.set_seconds(status.seconds());
  summary.set_cost(status.cost());
  summary.set_on_demand_cost(status.on_demand_cost());
  summary.set_wasted_seconds(status.wasted_seconds());
  summary.set_wasted_cost(status.wasted_cost());
  summary.set_preemptions(status.preemptions());
  if (status.seconds() > 0) summary.set_wasted_share(status.wasted_seconds() / status.seconds());
  const v1::Budget& budget = experiment.spec().shirabe().budget();
  if (budget.has_max_cost()) summary.set_max_cost(budget.max_cost());
  *summary.mutable_as_of() = ToProto(now);
  for (const v1::Attempt& attempt : open) {
    const Spending spent = SpendingOf(attempt, now);
    summary.set_seconds(summary.seconds() + spent.seconds);
    summary.set_cost(summary.cost() + spent.cost);
    summary.set_on_demand_cost(summary.on_demand_cost() + spent.on_demand_cost);
    const v1::Placement placement = PlacementOf(attempt);
    if (!placement.has_start_time() || placement.has_end_time()) continue;
    summary.set_cost_per_hour(summary.cost_per_hour() + placement.price_per_hour());
    const bool spot = placement.capacity() == "spot";
    if (spot) summary.set_running_spot(summary.running_spot() + 1);
    if (!spot) summary.set_running_on_demand(summary.running_on_demand() + 1);
  }
}

// What is left to run, shared by as many trials as run at the same time. A trial takes as long as
// the ended ones have taken on average, with what preemptions made them run again.
void PutEta(const v1::Experiment& experiment, const std::vector<v1::Attempt>& open, absl::Time now,
            v1::Summary& summary) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  const bool going = !experiment::IsEnded(experiment) && !status.paused() && !status.stopping();
  const int64_t ended = summary.trials_ended();
  if (!going || !summary.has_max_trials() || ended == 0 || status.seconds() <= 0) return;
  const double mean = status.seconds() / static_cast<double>(ended);
  double left = mean * static_cast<double>(std::max<int64_t>(summary.max_trials() - ended, 0));
  for (const v1::Attempt& attempt : open) left -= std::min(SpendingOf(attempt, now).seconds, mean);
  summary.set_eta_seconds(std::max(left, 0.0) / static_cast<double>(summary.parallel_trials()));
}

}  // namespace

v1::Summary SummaryOf(const v1::Experiment& experiment, const std::vector<v1::Attempt>& open,
                      absl::Time now) {
  v1::Summary summary;
  PutNames(experiment, summary);
  PutTimes(experiment, summary);
  PutCounts(experiment, summary);
  PutBest(experiment, summary);
  PutCosts(experiment, open, now, summary);
  PutEta(experiment, open, now, summary);
  return summary;
}

// The second part of its version.
int64_t RevisionOf(const v1::Summary& summary) {
  int64_t revision = 0;
  const std::string& version = summary.version();
  const bool read = absl::SimpleAtoi(version.substr(version.find('-') + 1), &revision);
  return read ? revision : 0;
}

StatusOr<v1::Summary> SummaryBoard::Get(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(Refresh());
  ASSIGN_OR_RETURN(const Entry* entry, Find(key));
  RETURN_IF_ERROR(namespaces_->CheckNamespaceExists(entry->owner));
  return entry->summary;
}

StatusOr<std::vector<v1::Summary>> SummaryBoard::List(const std::string& ns) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(Refresh());
  RETURN_IF_ERROR(FindAll());
  std::vector<v1::Summary> list;
  for (auto it = entries_.lower_bound({ns, ""}); it != entries_.end(); ++it) {
    if (!ns.empty() && it->first.ns != ns) break;
    if (namespaces_->CheckNamespaceExists(it->second.owner).ok())
      list.push_back(it->second.summary);
  }
  return list;
}

Status SummaryBoard::Refresh() {
  ASSIGN_OR_RETURN(const int64_t revision, store_->Revision());
  if (revision == revision_) return absl::OkStatus();
  std::vector<db::Change> changes;
  if (revision_ >= 0) {
    ASSIGN_OR_RETURN(changes, store_->Changes(revision_, kManyChanges));
  }
  if (revision_ < 0 || static_cast<int64_t>(changes.size()) >= kManyChanges) {
    entries_.clear();
    stale_.clear();
    whole_ = false;
  }
  for (const db::Change& change : changes) {
    entries_.erase(change.experiment);
    if (whole_) stale_.insert(change.experiment);
  }
  revision_ = revision;
  return absl::OkStatus();
}

StatusOr<const SummaryBoard::Entry*> SummaryBoard::Find(const ExperimentKey& key) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) return &found->second;
  ASSIGN_OR_RETURN(const auto experiment, store_->GetExperiment(key));
  return Add(experiment.record);
}

Status SummaryBoard::FindAll() {
  if (!whole_) {
    ASSIGN_OR_RETURN(const auto experiments, store_->ListExperiments(""));
    for (const auto& [experiment, revision] : experiments) {
      if (entries_.contains(experiment::KeyOf(experiment))) continue;
      RETURN_IF_ERROR(Add(experiment).status());
    }
    whole_ = true;
  }
  while (!stale_.empty()) {
    const Status found = Find(*stale_.begin()).status();
    if (!found.ok() && !absl::IsNotFound(found)) return found;
    stale_.erase(stale_.begin());
  }
  return absl::OkStatus();
}

StatusOr<const SummaryBoard::Entry*> SummaryBoard::Add(const v1::Experiment& experiment) {
  const ExperimentKey key = experiment::KeyOf(experiment);
  std::vector<v1::Attempt> open;
  if (!experiment::IsEnded(experiment)) {
    ASSIGN_OR_RETURN(open, Records(store_->ListAttempts({.experiment = key, .open_only = true})));
  }
  Entry& entry = entries_[key];
  entry.summary = SummaryOf(experiment, open, clock_->Now());
  entry.summary.set_version(absl::StrCat(
      absl::ToUnixMicros(FromProto(experiment.metadata().creation_timestamp())), "-", revision_));
  entry.owner = OwnerOf(experiment);
  return &entry;
}

}  // namespace shirabe::client
