#include "service/common/server_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text/number.h"

namespace shirabe::service {
namespace {

// A family whose labels take more values than this has a mistake: its new series are dropped.
constexpr size_t kMaxSeries = 5000;
constexpr char kDropped[] = "shirabe_metrics_series_dropped_total";

enum class Type { kCounter, kGauge, kHistogram };

// Seconds: of requests, and of what takes minutes.
constexpr double kFast[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                            0.1,    0.25,  0.5,    1,     2.5,  5,     10};
constexpr double kLong[] = {0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400};

struct FamilyInfo {
  const char* name;
  Type type;
  const char* labels;  // parted by blanks
  const char* help;
  const double* bounds = nullptr;
  size_t bound_count = 0;
};

// Katib's eleven first, by their names and labels.
constexpr FamilyInfo kFamilies[] = {
    {"katib_experiment_created_total", Type::kCounter, "namespace", "Experiments created"},
    {"katib_experiment_succeeded_total", Type::kCounter, "namespace", "Experiments succeeded"},
    {"katib_experiment_failed_total", Type::kCounter, "namespace", "Experiments failed"},
    {"katib_experiment_deleted_total", Type::kCounter, "namespace", "Experiments deleted"},
    {"katib_experiments_current", Type::kGauge, "namespace status", "Experiments by their state"},
    {"katib_trial_created_total", Type::kCounter, "namespace", "Trials created"},
    {"katib_trial_succeeded_total", Type::kCounter, "namespace", "Trials succeeded"},
    {"katib_trial_failed_total", Type::kCounter, "namespace", "Trials failed"},
    {"katib_trial_deleted_total", Type::kCounter, "namespace", "Trials deleted"},
    {"katib_trial_metrics_unavailable_total", Type::kCounter, "namespace",
     "Trials that ended without their objective"},
    {"katib_trials_current", Type::kGauge, "namespace status", "Trials by their state"},

    {"shirabe_trial_early_stopped_total", Type::kCounter, "namespace", "Trials stopped early"},
    {"shirabe_trial_killed_total", Type::kCounter, "namespace", "Trials killed"},
    {"shirabe_attempts_total", Type::kCounter, "namespace cause",
     "Attempts that ended, by the cause"},
    {"shirabe_attempt_seconds_total", Type::kCounter, "namespace capacity",
     "Seconds that attempts ran, by the machine's capacity"},
    {"shirabe_attempt_lost_work_seconds_total", Type::kCounter, "namespace",
     "Seconds of work lost with attempts, after their last checkpoint"},
    {"shirabe_cost_total", Type::kCounter, "namespace",
     "What attempts cost, in the currency of "
     "their prices"},
    {"shirabe_preemptions_total", Type::kCounter, "namespace", "Attempts lost to the platform"},
    {"shirabe_preemption_recovery_seconds", Type::kHistogram, "namespace",
     "From the loss of an attempt to the start of the next one", kLong, std::size(kLong)},
    {"shirabe_trial_queue_wait_seconds", Type::kHistogram, "namespace",
     "From a trial's creation to the start of its first attempt", kLong, std::size(kLong)},
    {"shirabe_metric_ingest_points_total", Type::kCounter, "namespace",
     "Metric values stored, counted when their attempt ends"},
    {"shirabe_refused_writes_total", Type::kCounter, "namespace",
     "Writes of attempts that were no longer current"},
    {"shirabe_notifications_delivered_total", Type::kCounter, "namespace",
     "Notifications that endpoints have acknowledged"},
    {"shirabe_notifications_failing", Type::kGauge, "namespace",
     "Endpoints of experiments that did not take the notification last tried; it is tried again"},
    {"shirabe_notifications_given_up_total", Type::kCounter, "namespace",
     "Notifications that endpoints did not take within a day"},

    {"shirabe_http_requests_total", Type::kCounter, "method route code", "HTTP requests answered"},
    {"shirabe_http_request_duration_seconds", Type::kHistogram, "method route",
     "Time to make a reply; of streams, to their beginning", kFast, std::size(kFast)},
    {"shirabe_http_connections", Type::kGauge, "", "HTTP connections open"},
    {"shirabe_http_connections_refused_total", Type::kCounter, "",
     "Connections refused because there were too many"},
    {"shirabe_grpc_connections_refused_total", Type::kCounter, "",
     "Connections of gRPC refused because there were too many"},
    {"shirabe_sse_clients", Type::kGauge, "", "Event streams open"},
    {"shirabe_grpc_requests_total", Type::kCounter, "method code", "gRPC calls answered"},
    {"shirabe_grpc_request_duration_seconds", Type::kHistogram, "method",
     "Time to answer a gRPC call", kFast, std::size(kFast)},
    {"shirabe_kube_requests_total", Type::kCounter, "verb resource code",
     "Requests to the API server of the cluster, each try"},
    {"shirabe_gpu_ready", Type::kGauge, "", "1 while a GPU computes suggestions"},
    {"shirabe_gpu_calls_total", Type::kCounter, "kind",
     "What the GPU has computed: uploads, evaluations of a fit, conditionings, scorings"},
    {"shirabe_gpu_batches_total", Type::kCounter, "kind",
     "Calls that evaluations or scorings went in, those that wait at the same time together"},
    {"shirabe_gpu_failures_total", Type::kCounter, "",
     "Calls that failed, so that the processor computed in their place"},
    {"shirabe_gpu_waiting", Type::kGauge, "", "Calls that wait for the GPU"},
    {"shirabe_store_revision", Type::kGauge, "", "Revision of the newest commit"},
    {"shirabe_store_errors_total", Type::kCounter, "", "Times the store could not be read"},
    {"shirabe_ready", Type::kGauge, "check",
     "1 while the store is read and the leases in it are renewed; while Experiments are watched"},
    {"shirabe_build_info", Type::kGauge, "version", "Always 1"},
    {kDropped, Type::kCounter, "family", "Series beyond the most that a family may have"},

    {"process_resident_memory_bytes", Type::kGauge, "", "Resident memory size in bytes"},
    {"process_virtual_memory_bytes", Type::kGauge, "", "Virtual memory size in bytes"},
    {"process_cpu_seconds_total", Type::kCounter, "", "User and system CPU time in seconds"},
    {"process_open_fds", Type::kGauge, "", "Open file descriptors"},
    {"process_max_fds", Type::kGauge, "", "Most file descriptors"},
    {"process_start_time_seconds", Type::kGauge, "", "Start of the process since 1970"},
};

const FamilyInfo& FamilyInfoOf(std::string_view name) {
  const auto found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                  [&](const FamilyInfo& info) { return info.name == name; });
  CHECK(found != std::end(kFamilies));
  return *found;
}

std::vector<std::string> LabelNames(const FamilyInfo& info) {
  return absl::StrSplit(info.labels, ' ', absl::SkipEmpty());
}

const char* TypeWord(Type type) {
  return type == Type::kCounter ? "counter" : type == Type::kGauge ? "gauge" : "histogram";
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return FormatNumber(value);
}

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

// {namespace="a",le="0.5"}; "" without labels. `bound` is the last of a bucket's.
std::string LabelText(const FamilyInfo& info, const Labels& labels, const std::string& bound) {
  std::string text;
  const std::vector<std::string> names = LabelNames(info);
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", names[i], "=\"", Escaped(labels[i]), "\"");
  }
  if (!bound.empty()) absl::StrAppend(&text, text.empty() ? "{" : ",", "le=\"", bound, "\"");
  return text.empty() ? "" : text + "}";
}

void AppendLine(std::string& out, const std::string& name, const std::string& labels,
                double value) {
  absl::StrAppend(&out, name, labels, " ", NumberText(value), "\n");
}

}  // namespace

Metrics::Metrics() {
  for (const FamilyInfo& info : kFamilies) {
    series_[info.name];
    if (info.labels[0] == '\0') Find(info.name, {});  // what has not happened yet is 0
  }
  Set("shirabe_build_info", {SHIRABE_VERSION}, 1);
}

Metrics::Series* Metrics::Find(std::string_view family, const Labels& labels) {
  const FamilyInfo& info = FamilyInfoOf(family);
  CHECK(labels.size() == LabelNames(info).size());
  auto& all = series_.find(family)->second;
  auto found = all.find(labels);
  if (found != all.end()) return &found->second;
  if (all.size() >= kMaxSeries) {
    if (family != kDropped) Find(kDropped, {std::string(family)})->value += 1;
    return nullptr;
  }
  Series series;
  if (info.type == Type::kHistogram) series.buckets.resize(info.bound_count + 1);
  return &all.emplace(labels, std::move(series)).first->second;
}

void Metrics::Add(std::string_view family, const Labels& labels, double amount) {
  const MutexLock lock(mutex_);
  if (Series* series = Find(family, labels)) series->value += amount;
}

void Metrics::Set(std::string_view family, const Labels& labels, double value) {
  const MutexLock lock(mutex_);
  if (Series* series = Find(family, labels)) series->value = value;
}

void Metrics::Observe(std::string_view family, const Labels& labels, double value) {
  const FamilyInfo& info = FamilyInfoOf(family);
  CHECK(info.type == Type::kHistogram);
  const MutexLock lock(mutex_);
  Series* series = Find(family, labels);
  if (series == nullptr) return;
  series->value += value;
  for (size_t i = 0; i < info.bound_count; ++i) {
    if (value <= info.bounds[i]) ++series->buckets[i];
  }
  ++series->buckets.back();
}

void Metrics::Clear(std::string_view family) {
  const MutexLock lock(mutex_);
  series_.find(family)->second.clear();
}

void Metrics::RecordHttpCall(const HttpCallRecord& record) {
  const std::string route = record.route.empty() ? "none" : record.route;
  const std::string method = record.method.empty() ? "none" : record.method;
  Add("shirabe_http_requests_total", {method, route, std::to_string(record.status)});
  Observe("shirabe_http_request_duration_seconds", {method, route},
          absl::ToDoubleSeconds(record.took));
}

void Metrics::RecordGrpcCall(const GrpcCallRecord& record) {
  Add("shirabe_grpc_requests_total", {record.method, record.code});
  Observe("shirabe_grpc_request_duration_seconds", {record.method},
          absl::ToDoubleSeconds(record.took));
}

void Metrics::BeforeText(std::function<void(Metrics&)> refresh) {
  const MutexLock lock(refresh_mutex_);
  refresh_ = std::move(refresh);
}

std::string Metrics::Text() {
  {
    const MutexLock lock(refresh_mutex_);
    if (refresh_) refresh_(*this);
  }
  const MutexLock lock(mutex_);
  std::string out;
  for (const FamilyInfo& info : kFamilies) {
    const auto& all = series_.find(info.name)->second;
    if (all.empty()) continue;
    absl::StrAppend(&out, "# HELP ", info.name, " ", info.help, ".\n# TYPE ", info.name, " ",
                    TypeWord(info.type), "\n");
    const std::string name = info.name;
    for (const auto& [labels, series] : all) {
      if (info.type != Type::kHistogram) {
        AppendLine(out, name, LabelText(info, labels, ""), series.value);
        continue;
      }
      for (size_t i = 0; i <= info.bound_count; ++i) {
        const std::string bound = i < info.bound_count ? NumberText(info.bounds[i]) : "+Inf";
        AppendLine(out, name + "_bucket", LabelText(info, labels, bound),
                   static_cast<double>(series.buckets[i]));
      }
      AppendLine(out, name + "_sum", LabelText(info, labels, ""), series.value);
      AppendLine(out, name + "_count", LabelText(info, labels, ""),
                 static_cast<double>(series.buckets.back()));
    }
  }
  return out;
}

double Metrics::Value(std::string_view family, const Labels& labels) const {
  const MutexLock lock(mutex_);
  const auto& all = series_.find(family)->second;
  const auto found = all.find(labels);
  if (found == all.end()) return 0;
  return found->second.buckets.empty() ? found->second.value
                                       : static_cast<double>(found->second.buckets.back());
}

}  // namespace shirabe::service
