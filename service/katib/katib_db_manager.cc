#include "service/katib/katib_db_manager.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/sorting.h"
#include "base/text/message_check.h"
#include "base/text/number.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "service/grpc/grpc_caller.h"
#include "service/katib/katib_codec.h"

namespace shirabe::service {

namespace {

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E*SZ";  // RFC 3339, as Katib's own writes it
constexpr int kMaxRows = 100'000;                       // of one report
constexpr size_t kMaxNameBytes = 512;                   // of a trial or a metric, in characters

Status CheckName(const char* field, const std::string& name) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, name.empty() ? " is required" : " is too long: at most 512 characters"));
}

// "" is `missing`.
StatusOr<absl::Time> ReadTime(const std::string& field, const std::string& text,
                              absl::Time missing) {
  absl::Time time = missing;
  if (text.empty() || absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return time;
  return absl::InvalidArgumentError(field + " \"" + text.substr(0, kMaxNameBytes) +
                                    "\" is not a time; write one such as 2026-11-21T08:30:00Z");
}

StatusOr<KatibObservation> ReadRow(const katib::MetricLog& log, const std::string& path,
                                   absl::Time now) {
  KatibObservation row;
  RETURN_IF_ERROR(CheckName((path + ".metric.name").c_str(), log.metric().name()));
  row.metric = log.metric().name();
  const auto value = ParseNumber(log.metric().value());
  if (!value) {
    return absl::InvalidArgumentError(path + ".metric.value of " + row.metric + " is \"" +
                                      log.metric().value().substr(0, kMaxNameBytes) +
                                      "\", which is not a number; leave it out");
  }
  row.value = *value;
  ASSIGN_OR_RETURN(row.time, ReadTime(path + ".time_stamp", log.time_stamp(), now));
  if (row.time < absl::UnixEpoch()) row.time = now;  // Go's zero time, which is none
  if (log.has_step()) row.step = log.step();
  if (log.step() >= 0) return row;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ".step is ", log.step(), "; it must be 0 or more"));
}

class KatibDbManager : public katib::DBManager::Service {
 public:
  KatibDbManager(KatibAccess access, Clock* clock) : access_(std::move(access)), clock_(clock) {}

  grpc::Status ReportObservationLog(grpc::ServerContext* context,
                                    const katib::ReportObservationLogRequest* request,
                                    katib::ReportObservationLogReply*) override {
    return ToGrpc(Report(*context, *request));
  }

  grpc::Status GetObservationLog(grpc::ServerContext* context,
                                 const katib::GetObservationLogRequest* request,
                                 katib::GetObservationLogReply* reply) override {
    return ToGrpc(Get(*context, *request, *reply->mutable_observation_log()));
  }

  grpc::Status DeleteObservationLog(grpc::ServerContext* context,
                                    const katib::DeleteObservationLogRequest* request,
                                    katib::DeleteObservationLogReply*) override {
    return ToGrpc(Delete(*context, *request));
  }

 private:
  Status Report(const grpc::ServerContext& context,
                const katib::ReportObservationLogRequest& request) {
    RETURN_IF_ERROR(CheckName("trial_name", request.trial_name()));
    ASSIGN_OR_RETURN(const auto observations, access_(context, "DBManager/ReportObservationLog"));
    RETURN_IF_ERROR(CheckMessage(request));
    const auto& logs = request.observation_log().metric_logs();
    if (logs.size() > kMaxRows) {
      return absl::ResourceExhaustedError(absl::StrCat("observation_log has ", logs.size(),
                                                       " rows; at most ", kMaxRows, " at a time"));
    }
    KatibReport report{
        .trial = request.trial_name(), .attempt = request.attempt(), .token = request.token()};
    const absl::Time now = clock_->Now();
    // Values of one metric at the same time, or at none, are several, in their order; and the same
    // ones when the report comes again.
    std::map<std::pair<std::string, absl::Time>, int64_t> same;
    for (int i = 0; i < logs.size(); ++i) {
      const std::string path = absl::StrCat("observation_log.metric_logs[", i, "]");
      ASSIGN_OR_RETURN(KatibObservation row, ReadRow(logs[i], path, now));
      if (!row.step) row.time += absl::Microseconds(same[{row.metric, row.time}]++);
      report.rows.push_back(std::move(row));
    }
    return report.rows.empty() ? absl::OkStatus() : observations->Report(report);
  }

  Status Delete(const grpc::ServerContext& context,
                const katib::DeleteObservationLogRequest& request) {
    RETURN_IF_ERROR(CheckName("trial_name", request.trial_name()));
    ASSIGN_OR_RETURN(const auto observations, access_(context, "DBManager/DeleteObservationLog"));
    RETURN_IF_ERROR(CheckMessage(request));
    return observations->Delete(request.trial_name());
  }

  Status Get(const grpc::ServerContext& context, const katib::GetObservationLogRequest& request,
             katib::ObservationLog& log) {
    RETURN_IF_ERROR(CheckName("trial_name", request.trial_name()));
    ASSIGN_OR_RETURN(const auto observations, access_(context, "DBManager/GetObservationLog"));
    RETURN_IF_ERROR(CheckMessage(request));
    ASSIGN_OR_RETURN(const absl::Time start,
                     ReadTime("start_time", request.start_time(), absl::InfinitePast()));
    ASSIGN_OR_RETURN(const absl::Time end,
                     ReadTime("end_time", request.end_time(), absl::InfiniteFuture()));
    ASSIGN_OR_RETURN(std::vector<KatibObservation> rows,
                     observations->Read(request.trial_name(), request.metric_name()));
    StableSort(
        rows, [](const KatibObservation& a, const KatibObservation& b) { return a.time < b.time; });
    for (const KatibObservation& row : rows) {
      if (row.time < start || row.time > end) continue;
      katib::MetricLog& one = *log.add_metric_logs();
      one.set_time_stamp(absl::FormatTime(kTimeFormat, row.time, absl::UTCTimeZone()));
      one.mutable_metric()->set_name(row.metric);
      one.mutable_metric()->set_value(FormatNumber(row.value));
      if (row.step) one.set_step(*row.step);
    }
    return absl::OkStatus();
  }

  const KatibAccess access_;
  Clock* const clock_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeKatibDbManager(KatibAccess access, Clock* clock) {
  return std::make_unique<KatibDbManager>(std::move(access), clock);
}

namespace {

class ClientObservations : public KatibObservationStore {
 public:
  ClientObservations(client::Client& client, const std::string& ns,
                     std::unique_ptr<client::Client> own)
      : client_(client), ns_(ns), own_(std::move(own)) {}

  Status Report(const KatibReport& report) override {
    experiment::Report ours;
    int32_t named = 0;
    ASSIGN_OR_RETURN(ours.trial, Find(report.trial, &named));
    ours.attempt = report.attempt == 0 ? named : report.attempt;
    ours.token = report.token;
    for (const KatibObservation& row : report.rows) {
      ours.points.push_back({.metric = row.metric,
                             .value = row.value,
                             .step = row.step.value_or(0),
                             .implicit_step = !row.step.has_value(),
                             .time = row.time});
    }
    return client_.Tell(ours).status();
  }

  StatusOr<std::vector<KatibObservation>> Read(const std::string& trial,
                                               const std::string& metric) override {
    ASSIGN_OR_RETURN(const TrialKey key, Find(trial));
    ASSIGN_OR_RETURN(const auto known, client_.ListObservations({.trial = key, .metric = metric}));
    std::vector<KatibObservation> rows;
    for (const db::StoredObservation& row : known) {
      rows.push_back(
          {.metric = row.metric, .value = row.value, .time = row.time, .step = row.step});
    }
    return rows;
  }

  Status Delete(const std::string& trial) override {
    const auto key = Find(trial);
    if (absl::IsNotFound(key.status())) return absl::OkStatus();
    RETURN_IF_ERROR(key.status());
    return absl::FailedPreconditionError("the observations of trial " + TrialName(*key) +
                                         " stay as long as its experiment; delete experiment " +
                                         ToString(key->experiment));
  }

  Status SetEarlyStopped(const std::string& trial) override {
    ASSIGN_OR_RETURN(const TrialKey key, Find(trial));
    ASSIGN_OR_RETURN(const v1::Trial record, client_.GetTrial(key));
    if (record.phase() == v1::TRIAL_EARLY_STOPPED) return absl::OkStatus();
    return absl::FailedPreconditionError("trial " + TrialName(key) +
                                         " is run by Shirabe, which stops it early itself: give "
                                         "its experiment spec.earlyStopping");
  }

 private:
  // By the trial's name, or by that of its object or pod, which programs of Katib's know it by.
  static std::optional<AttemptKey> Parse(const std::string& name, const std::string& ns) {
    if (const auto trial = ParseTrialName(name, ns)) return AttemptKey{*trial, 0};
    if (const auto attempt = ParseAttemptName(name, ns)) return attempt;
    const size_t dash = name.rfind('-');
    return dash == std::string::npos ? std::nullopt : ParseAttemptName(name.substr(0, dash), ns);
  }

  // `attempt` gets the one that the name is of, 0 if it is the trial's.
  StatusOr<TrialKey> Find(const std::string& name, int32_t* attempt = nullptr) const {
    const size_t slash = name.find('/');
    const std::string ns = slash == std::string::npos ? ns_ : name.substr(0, slash);
    if (slash != std::string::npos) RETURN_IF_ERROR(ValidateNamespace(ns));
    const auto found = Parse(slash == std::string::npos ? name : name.substr(slash + 1), ns);
    const auto key = found ? std::optional(found->trial) : std::nullopt;
    if (attempt != nullptr && found) *attempt = found->number;
    if (!key) {
      return absl::NotFoundError("\"" + Printable(name) +
                                 "\" is not a name of a trial, such as digits-7");
    }
    if (!ns.empty()) return Checked(*key);
    return FindAnywhere(*key);
  }

  StatusOr<TrialKey> Checked(const TrialKey& key) const {
    RETURN_IF_ERROR(client_.GetTrial(key).status());
    return key;
  }

  StatusOr<TrialKey> FindAnywhere(const TrialKey& wanted) const {
    ASSIGN_OR_RETURN(const auto experiments, client_.ListExperiments(""));
    std::vector<std::string> namespaces;
    for (const v1::Experiment& experiment : experiments) {
      const bool has = experiment.metadata().name() == wanted.experiment.name &&
                       experiment.status().trials() >= wanted.number;
      if (has) namespaces.push_back(experiment.metadata().namespace_());
    }
    if (namespaces.empty()) {
      return absl::NotFoundError("there is no trial " + TrialName(wanted));
    }
    if (namespaces.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is a trial ", TrialName(wanted), " in several namespaces, ",
                       absl::StrJoin(namespaces, ", "), "; write NAMESPACE/", TrialName(wanted)));
    }
    return Checked({{namespaces[0], wanted.experiment.name}, wanted.number});
  }

  client::Client& client_;
  const std::string ns_;
  const std::unique_ptr<client::Client> own_;
};

}  // namespace

std::unique_ptr<KatibObservationStore> MakeClientObservations(client::Client& client,
                                                              const std::string& ns) {
  return std::make_unique<ClientObservations>(client, ns, nullptr);
}

std::unique_ptr<KatibObservationStore> MakeClientObservations(
    std::unique_ptr<client::Client> client, const std::string& ns) {
  client::Client& it = *client;
  return std::make_unique<ClientObservations>(it, ns, std::move(client));
}

}  // namespace shirabe::service
