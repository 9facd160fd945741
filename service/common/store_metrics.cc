#include "service/common/store_metrics.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "client/records/enum_words.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "suggestion/accelerator/program_gpu.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kRefreshInterval = absl::Seconds(1);
// Also where they are not asked for: what is counted of experiments that have ended is forgotten
// then.
constexpr absl::Duration kReadAtLeast = absl::Minutes(1);

bool IsPreempted(v1::Cause cause) {
  return cause == v1::PREEMPTED_SCHEDULER || cause == v1::PREEMPTED_EVICTION ||
         cause == v1::PREEMPTED_NODE || cause == v1::PREEMPTED_SPOT;
}

// A count of trials by how they ended or stand, and what it is called in Katib's metrics.
struct TrialCount {
  const char* state;
  int64_t (v1::ExperimentStatus::*get)() const;
};
constexpr TrialCount kTrialCounts[] = {
    {"Pending", &v1::ExperimentStatus::trials_pending},
    {"Running", &v1::ExperimentStatus::trials_running},
    {"Succeeded", &v1::ExperimentStatus::trials_succeeded},
    {"Failed", &v1::ExperimentStatus::trials_failed},
    {"Killed", &v1::ExperimentStatus::trials_killed},
    {"EarlyStopped", &v1::ExperimentStatus::trials_early_stopped},
    {"MetricsUnavailable", &v1::ExperimentStatus::trial_metrics_unavailable},
};

struct TrialCounter {
  const char* family;
  int64_t (v1::ExperimentStatus::*get)() const;
};
constexpr TrialCounter kTrialCounters[] = {
    {"katib_trial_created_total", &v1::ExperimentStatus::trials},
    {"katib_trial_succeeded_total", &v1::ExperimentStatus::trials_succeeded},
    {"katib_trial_failed_total", &v1::ExperimentStatus::trials_failed},
    {"katib_trial_metrics_unavailable_total", &v1::ExperimentStatus::trial_metrics_unavailable},
    {"shirabe_trial_early_stopped_total", &v1::ExperimentStatus::trials_early_stopped},
    {"shirabe_trial_killed_total", &v1::ExperimentStatus::trials_killed},
};

double SumOfEndpoints(const v1::ShirabeStatus& status,
                      int64_t (v1::NotificationStatus::*count)() const) {
  double sum = 0;
  for (const v1::NotificationStatus& one : status.notifications()) {
    sum += static_cast<double>((one.*count)());
  }
  return sum;
}

struct SpendCounter {
  const char* family;
  double (*get)(const v1::ShirabeStatus&);
};
constexpr SpendCounter kSpendCounters[] = {
    {"shirabe_preemptions_total",
     [](const v1::ShirabeStatus& s) { return static_cast<double>(s.preemptions()); }},
    {"shirabe_attempt_lost_work_seconds_total",
     [](const v1::ShirabeStatus& s) { return s.wasted_seconds(); }},
    {"shirabe_cost_total", [](const v1::ShirabeStatus& s) { return s.cost(); }},
    {"shirabe_refused_writes_total",
     [](const v1::ShirabeStatus& s) { return static_cast<double>(s.refused_writes()); }},
    {"shirabe_notifications_delivered_total",
     [](const v1::ShirabeStatus& s) {
       return SumOfEndpoints(s, &v1::NotificationStatus::delivered);
     }},
    {"shirabe_notifications_given_up_total",
     [](const v1::ShirabeStatus& s) {
       return SumOfEndpoints(s, &v1::NotificationStatus::given_up);
     }},
};

bool Ended(const v1::ExperimentStatus& status, const char* how) {
  for (const v1::Condition& condition : status.conditions()) {
    if (condition.type() == how && condition.status() == "True") return true;
  }
  return false;
}

// Endpoints that did not take the notification which was last tried.
int64_t FailingEndpoints(const v1::ShirabeStatus& status) {
  return std::ranges::count_if(status.notifications(), [](const auto& endpoint) {
    return endpoint.pending() > 0 && !endpoint.error().empty();
  });
}

// What is compared with the next one: many experiments are remembered.
v1::ExperimentStatus Counts(v1::ExperimentStatus status) {
  status.clear_current_optimal_trial();
  for (v1::Condition& condition : *status.mutable_conditions()) {
    condition.clear_message();
    condition.clear_reason();
    condition.clear_last_update_time();
    condition.clear_last_transition_time();
  }
  v1::ShirabeStatus& ours = *status.mutable_shirabe();
  ours.clear_memo();
  ours.clear_waiting();
  ours.clear_notified();
  for (auto& endpoint : *ours.mutable_notifications()) endpoint.clear_error();
  ours.clear_recommended_trial();
  // A copy: what was cleared keeps its memory.
  return v1::ExperimentStatus(status);
}

// A counter never goes down: what an experiment takes back is not counted again.
void AddGrowth(Metrics& metrics, const char* family, const std::string& ns, double growth) {
  if (growth > 0) metrics.Add(family, {ns}, growth);
}

// ---- the process -------------------------------------------------------------------------------

void SetMemory(Metrics& metrics) {
  const auto text = ReadFile("/proc/self/statm");
  if (!text.ok()) return;
  const std::vector<std::string> words = absl::StrSplit(*text, ' ');
  int64_t pages = 0;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  if (words.size() < 2) return;
  if (absl::SimpleAtoi(words[0], &pages)) {
    metrics.Set("process_virtual_memory_bytes", {}, static_cast<double>(pages) * page);
  }
  if (absl::SimpleAtoi(words[1], &pages)) {
    metrics.Set("process_resident_memory_bytes", {}, static_cast<double>(pages) * page);
  }
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void SetProcess(Metrics& metrics) {
  SetMemory(metrics);
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    metrics.Set("process_cpu_seconds_total", {},
                SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime));
  }
  std::error_code error;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    files += entry.path().empty() ? 0 : 1;
  }
  metrics.Set("process_open_fds", {}, files);
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    metrics.Set("process_max_fds", {}, static_cast<double>(limit.rlim_cur));
  }
}

// Nothing where none has been looked for: it opens none.
void SetGpu(Metrics& metrics) {
  using suggestion::accelerator::GpuReport;
  const GpuReport gpu = suggestion::accelerator::ReportGpu();
  if (gpu.state == GpuReport::State::kNotAsked) return;
  const auto set = [&](const char* family, const Labels& labels, int64_t value) {
    metrics.Set(family, labels, static_cast<double>(value));
  };
  set("shirabe_gpu_ready", {}, gpu.state == GpuReport::State::kReady ? 1 : 0);
  set("shirabe_gpu_calls_total", {"upload"}, gpu.counts.uploads);
  set("shirabe_gpu_calls_total", {"evaluation"}, gpu.counts.evaluations);
  set("shirabe_gpu_calls_total", {"conditioning"}, gpu.counts.conditionings);
  set("shirabe_gpu_calls_total", {"scoring"}, gpu.counts.scorings);
  set("shirabe_gpu_batches_total", {"evaluation"}, gpu.counts.batches);
  set("shirabe_gpu_batches_total", {"scoring"}, gpu.counts.scoring_batches);
  set("shirabe_gpu_failures_total", {}, gpu.counts.failures);
  set("shirabe_gpu_waiting", {}, gpu.counts.waiting);
}

}  // namespace

StoreMetrics::StoreMetrics(Options options) : options_(options), began_(options.clock->Now()) {
  options_.metrics->Set("process_start_time_seconds", {},
                        static_cast<double>(absl::ToUnixSeconds(began_)));
  if (!options_.process_only) Read();
  listener_ =
      options_.hub->Listen([this](const std::vector<db::Change>& changes) { OnChanges(changes); });
  options_.metrics->BeforeText([this](Metrics&) { Refresh(); });
}

StoreMetrics::~StoreMetrics() {
  options_.hub->Unlisten(listener_);
  options_.metrics->BeforeText(nullptr);
}

void StoreMetrics::Refresh() {
  SetProcess(*options_.metrics);
  SetGpu(*options_.metrics);
  if (options_.refresh) options_.refresh(*options_.metrics);
  if (options_.process_only) return;
  options_.metrics->Set("shirabe_store_revision", {},
                        static_cast<double>(options_.hub->revision()));
  const MutexLock lock(mutex_);
  ReadIfOlder(kRefreshInterval);
}

void StoreMetrics::ReadIfOlder(absl::Duration age) {
  const absl::Duration now = options_.clock->Monotonic();
  if (now - read_ < age) return;
  read_ = now;
  Read();
}

void StoreMetrics::Read() {
  const auto changed = ReadChanged();
  if (!changed.ok()) return options_.metrics->Add("shirabe_store_errors_total", {});
  if (!*changed) return;
  std::erase_if(counted_, [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = seen_.find(entry.first.experiment);
    return found == seen_.end() || found->second.status.has_completion_time();
  });
  SetGauges();
}

// Of all the first time, which have happened before; then only what has changed since the last.
StatusOr<bool> StoreMetrics::ReadChanged() {
  if (revision_ < 0) {
    ASSIGN_OR_RETURN(const int64_t revision, options_.client->Revision());
    ASSIGN_OR_RETURN(const auto experiments, options_.client->ListExperiments(""));
    for (const v1::Experiment& experiment : experiments) Record(experiment, /*count=*/false);
    revision_ = revision;
    return true;
  }
  ASSIGN_OR_RETURN(const auto changes, options_.client->Changes(revision_));
  std::set<ExperimentKey> keys;
  for (const db::Change& change : changes) {
    const bool tells =
        change.kind == db::Change::Kind::kExperiment || change.kind == db::Change::Kind::kDeleted;
    if (tells) keys.insert(change.experiment);
  }
  for (const ExperimentKey& key : keys) {
    const auto experiment = options_.client->GetExperiment(key);
    if (!experiment.ok() && !absl::IsNotFound(experiment.status())) return experiment.status();
    experiment.ok() ? Record(*experiment, /*count=*/true) : RecordDeletion(key);
  }
  if (!changes.empty()) revision_ = changes.back().revision;
  return !keys.empty();
}

void StoreMetrics::Record(const v1::Experiment& experiment, bool count) {
  const ExperimentKey key = experiment::KeyOf(experiment);
  const std::string& uid = experiment.metadata().uid();
  const auto before = seen_.find(key);
  if (before != seen_.end() && before->second.uid != uid) RecordDeletion(key);
  const bool fresh = !seen_.contains(key);
  Seen& seen = seen_[key];
  if (count && fresh) options_.metrics->Add("katib_experiment_created_total", {key.ns});
  if (count) Compare(experiment, seen);
  seen = {uid, experiment::CurrentCondition(experiment).type(),
          FailingEndpoints(experiment.status().shirabe()), Counts(experiment.status())};
}

void StoreMetrics::RecordDeletion(const ExperimentKey& key) {
  const auto before = seen_.find(key);
  if (before == seen_.end()) return;
  options_.metrics->Add("katib_experiment_deleted_total", {key.ns});
  AddGrowth(*options_.metrics, "katib_trial_deleted_total", key.ns,
            static_cast<double>(before->second.status.trials()));
  seen_.erase(before);
}

void StoreMetrics::Compare(const v1::Experiment& now, const Seen& before) {
  Metrics& metrics = *options_.metrics;
  const std::string& ns = now.metadata().namespace_();
  for (const TrialCounter& counter : kTrialCounters) {
    AddGrowth(metrics, counter.family, ns,
              static_cast<double>((now.status().*counter.get)() - (before.status.*counter.get)()));
  }
  for (const SpendCounter& counter : kSpendCounters) {
    AddGrowth(metrics, counter.family, ns,
              counter.get(now.status().shirabe()) - counter.get(before.status.shirabe()));
  }
  for (const char* how : {"Succeeded", "Failed"}) {
    if (!Ended(now.status(), how) || Ended(before.status, how)) continue;
    metrics.Add(
        how[0] == 'S' ? "katib_experiment_succeeded_total" : "katib_experiment_failed_total", {ns});
  }
}

void StoreMetrics::SetGauges() {
  std::map<std::pair<std::string, std::string>, int64_t> states;
  std::map<std::pair<std::string, std::string>, int64_t> trials;
  std::map<std::string, int64_t> failing;
  for (const auto& [key, seen] : seen_) {
    failing[key.ns] += seen.failing_endpoints;
    ++states[{key.ns, seen.state}];
    for (const TrialCount& count : kTrialCounts) {
      trials[{key.ns, count.state}] += (seen.status.*count.get)();
    }
  }
  options_.metrics->Clear("katib_experiments_current");
  options_.metrics->Clear("katib_trials_current");
  options_.metrics->Clear("shirabe_notifications_failing");
  for (const auto& [ns, count] : failing) {
    options_.metrics->Set("shirabe_notifications_failing", {ns}, static_cast<double>(count));
  }
  for (const auto& [key, count] : states) {
    options_.metrics->Set("katib_experiments_current", {key.first, key.second},
                          static_cast<double>(count));
  }
  for (const auto& [key, count] : trials) {
    options_.metrics->Set("katib_trials_current", {key.first, key.second},
                          static_cast<double>(count));
  }
}

// ---- attempts ----------------------------------------------------------------------------------

void StoreMetrics::OnChanges(const std::vector<db::Change>& changes) {
  if (options_.process_only) return;
  std::set<TrialKey> trials;
  for (const db::Change& change : changes) {
    if (change.kind == db::Change::Kind::kAttempt) {
      trials.insert({change.experiment, change.trial});
    }
  }
  const MutexLock lock(mutex_);
  for (const TrialKey& trial : trials) CountAttempts(trial);
  ReadIfOlder(kReadAtLeast);
}

void StoreMetrics::CountAttempts(const TrialKey& trial) {
  const auto attempts =
      options_.client->ListAttempts({.experiment = trial.experiment, .trial = trial.number});
  if (!attempts.ok()) return options_.metrics->Add("shirabe_store_errors_total", {});
  Counted& counted = counted_[trial];
  for (size_t i = 0; i < attempts->size(); ++i) {
    const v1::Attempt& attempt = (*attempts)[i];
    if (attempt.number() > counted.started && attempt.has_start_time()) {
      counted.started = attempt.number();
      if (FromProto(attempt.start_time()) >= began_) CountStart(*attempts, i);
    }
    if (attempt.number() > counted.closed && attempt.state() == v1::ATTEMPT_CLOSED) {
      counted.closed = attempt.number();
      if (FromProto(attempt.end_time()) >= began_) CountEnd(attempt);
    }
  }
}

void StoreMetrics::CountStart(const std::vector<v1::Attempt>& attempts, size_t i) {
  const v1::Attempt& attempt = attempts[i];
  const absl::Time start = FromProto(attempt.start_time());
  if (i == 0) {
    options_.metrics->Observe("shirabe_trial_queue_wait_seconds", {attempt.namespace_()},
                              absl::ToDoubleSeconds(start - FromProto(attempt.creation_time())));
  } else if (IsPreempted(attempts[i - 1].cause())) {
    options_.metrics->Observe("shirabe_preemption_recovery_seconds", {attempt.namespace_()},
                              absl::ToDoubleSeconds(start - FromProto(attempts[i - 1].end_time())));
  }
}

void StoreMetrics::CountEnd(const v1::Attempt& attempt) {
  Metrics& metrics = *options_.metrics;
  const std::string& ns = attempt.namespace_();
  metrics.Add("shirabe_attempts_total", {ns, client::CauseWord(attempt.cause())});
  const std::string capacity =
      attempt.placements().empty() ? "" : attempt.placements().rbegin()->capacity();
  metrics.Add("shirabe_attempt_seconds_total", {ns, capacity.empty() ? "on-demand" : capacity},
              attempt.seconds());
  AddGrowth(metrics, "shirabe_metric_ingest_points_total", ns, static_cast<double>(attempt.rows()));
}

}  // namespace shirabe::service
