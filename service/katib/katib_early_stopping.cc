#include "service/katib/katib_early_stopping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/statistics.h"
#include "base/text/message_check.h"
#include "base/text/number.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "service/grpc/grpc_caller.h"
#include "service/katib/katib_codec.h"
#include "suggestion/early_stopping.h"
#include "suggestion/known_settings.h"
#include "suggestion/remote/remote_algorithm_table.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kReadDeadline = absl::Seconds(20);  // for one trial's values, elsewhere
constexpr char kRules[] = "EarlyStopping/GetEarlyStoppingRules";
constexpr double kWorst = std::numeric_limits<double>::infinity();

using suggestion::StopperInfo;

// A rule of ours as the request names it, its settings checked.
struct Rule {
  const StopperInfo* info = nullptr;
  suggestion::Settings settings;
  bool maximize = false;

  // The setting's number, or its default; nullopt if it has neither.
  std::optional<double> Number(const std::string& name) const {
    if (const auto given = suggestion::NumberSetting(settings, name)) return given;
    for (const suggestion::SettingInfo& known : info->settings) {
      if (known.name == name) return ParseNumber(known.default_value);
    }
    return std::nullopt;
  }
};

StatusOr<Rule> ReadRule(const katib::EarlyStoppingSpec& spec, bool maximize) {
  Rule rule{.maximize = maximize};
  for (const katib::EarlyStoppingSetting& setting : spec.algorithm_settings()) {
    rule.settings.emplace_back(setting.name(), setting.value());
  }
  const auto created = suggestion::CreateStopper(spec.algorithm_name(),
                                                 {.settings = rule.settings, .maximize = maximize});
  if (!created.ok()) {
    return absl::InvalidArgumentError("spec.earlyStopping: " + Message(created.status()));
  }
  rule.info = Registry<StopperInfo>::Get().Find(spec.algorithm_name());
  return rule;
}

// What one trial's first values come to for the rule.
double Summary(const std::vector<double>& losses, bool mean) {
  if (!mean) return *std::min_element(losses.begin(), losses.end());
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

// Reads the values of trials from another DBManager.
class Elsewhere {
 public:
  explicit Elsewhere(const std::string& address)
      : stub_(katib::DBManager::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {}

  StatusOr<std::vector<KatibObservation>> Read(const std::string& trial,
                                               const std::string& metric) {
    grpc::ClientContext context;
    context.set_deadline(
        gpr_time_from_micros(absl::ToInt64Microseconds(kReadDeadline), GPR_TIMESPAN));
    katib::GetObservationLogRequest request;
    request.set_trial_name(trial);
    request.set_metric_name(metric);
    katib::GetObservationLogReply reply;
    const grpc::Status status = stub_->GetObservationLog(&context, request, &reply);
    if (!status.ok()) {
      return absl::UnavailableError("db_manager_address: " + status.error_message());
    }
    std::vector<KatibObservation> rows;
    for (const katib::MetricLog& log : reply.observation_log().metric_logs()) {
      const auto value = ParseNumber(log.metric().value());
      rows.push_back({.metric = metric, .value = value.value_or(std::nan(""))});
    }
    return rows;
  }

 private:
  std::unique_ptr<katib::DBManager::Stub> stub_;
};

class KatibEarlyStopping : public katib::EarlyStopping::Service {
 public:
  explicit KatibEarlyStopping(KatibAccess access) : access_(std::move(access)) {}

  grpc::Status GetEarlyStoppingRules(grpc::ServerContext* context,
                                     const katib::GetEarlyStoppingRulesRequest* request,
                                     katib::GetEarlyStoppingRulesReply* reply) override {
    const CancelScope scope([context] { return context->IsCancelled(); });
    return ToGrpc(Rules(*context, *request, *reply));
  }

  grpc::Status SetTrialStatus(grpc::ServerContext* context,
                              const katib::SetTrialStatusRequest* request,
                              katib::SetTrialStatusReply*) override {
    const Status good = CheckMessage(*request);
    if (!good.ok()) return ToGrpc(good);
    if (request->trial_name().empty()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "trial_name is required"};
    }
    const auto observations = access_(*context, "EarlyStopping/SetTrialStatus");
    return ToGrpc(observations.ok() ? (*observations)->SetEarlyStopped(request->trial_name())
                                    : observations.status());
  }

  grpc::Status ValidateEarlyStoppingSettings(
      grpc::ServerContext* context, const katib::ValidateEarlyStoppingSettingsRequest* request,
      katib::ValidateEarlyStoppingSettingsReply*) override {
    const Status allowed =
        access_(*context, "EarlyStopping/ValidateEarlyStoppingSettings").status();
    if (!allowed.ok()) return ToGrpc(allowed);
    const Status good = CheckMessage(*request);
    if (!good.ok()) return ToGrpc(good);
    return ToGrpc(ReadRule(request->early_stopping(), /*maximize=*/false).status());
  }

 private:
  using Request = katib::GetEarlyStoppingRulesRequest;
  using Reply = katib::GetEarlyStoppingRulesReply;

  Status Rules(const grpc::ServerContext& context, const Request& request, Reply& reply) {
    RETURN_IF_ERROR(access_(context, kRules).status());
    RETURN_IF_ERROR(CheckMessage(request));
    const katib::ExperimentSpec& spec = request.experiment().spec();
    const katib::ObjectiveSpec& objective = spec.objective();
    if (objective.type() == katib::UNKNOWN || objective.objective_metric_name().empty()) {
      return absl::InvalidArgumentError(
          "spec.objective needs a type, minimize or maximize, and an objectiveMetricName");
    }
    ASSIGN_OR_RETURN(const Rule rule,
                     ReadRule(spec.early_stopping(), objective.type() == katib::MAXIMIZE));
    if (rule.info->name == "threshold") return AddBound(rule, objective, reply);
    if (rule.info->name != "medianstop" && rule.info->name != "percentile") {
      return absl::UnimplementedError(absl::StrCat(
          "spec.earlyStopping.algorithmName: ", rule.info->name,
          " decides again at each report, which Katib's rules cannot say; use medianstop, "
          "percentile or threshold, or run the experiment under Shirabe"));
    }
    ASSIGN_OR_RETURN(const Values values, ValuesFor(context, request));
    return AddComparison(rule, request, values, reply);
  }

  // Where the values of trials are read.
  using Values = std::function<StatusOr<std::vector<KatibObservation>>(const std::string& trial)>;
  StatusOr<Values> ValuesFor(const grpc::ServerContext& context, const Request& request) {
    ASSIGN_OR_RETURN(auto here, access_(context, kRules));
    const std::string& address = request.db_manager_address();
    const std::string metric = request.experiment().spec().objective().objective_metric_name();
    if (!address.empty()) {
      RETURN_IF_ERROR(Prefix("db_manager_address", suggestion::CheckRemoteAddress(address)));
      const auto elsewhere = std::make_shared<Elsewhere>(address);  // shared: a function is copied
      return Values(
          [elsewhere, metric](const std::string& trial) { return elsewhere->Read(trial, metric); });
    }
    const std::shared_ptr<KatibObservationStore> own = std::move(here);  // shared: as above
    return Values([own, metric](const std::string& trial) { return own->Read(trial, metric); });
  }

  static void Add(const katib::ObjectiveSpec& objective, katib::ComparisonType comparison,
                  double value, Reply& reply) {
    katib::EarlyStoppingRule& rule = *reply.add_early_stopping_rules();
    rule.set_name(objective.objective_metric_name());
    rule.set_value(FormatNumber(value));
    rule.set_comparison(comparison);
  }

  static void SetStart(const Rule& rule, Reply& reply) {
    const double start = std::min(rule.Number("start_step").value_or(1), 0x1p30);
    for (auto& one : *reply.mutable_early_stopping_rules()) {
      one.set_start_step(static_cast<int32_t>(start));
    }
  }

  // All rules of an answer must hold for a trial to stop, so that two bounds would never stop any.
  static Status AddBound(const Rule& rule, const katib::ObjectiveSpec& objective, Reply& reply) {
    const auto lower = rule.Number("lower"), upper = rule.Number("upper");
    if (upper && (!rule.maximize || !lower)) {
      Add(objective, katib::GREATER, *upper, reply);
    } else if (lower) {
      Add(objective, katib::LESS, *lower, reply);
    }
    SetStart(rule, reply);
    return absl::OkStatus();
  }

  static Status AddComparison(const Rule& rule, const Request& request, const Values& values,
                              Reply& reply) {
    const bool median = rule.info->name == "medianstop";
    ASSIGN_OR_RETURN(const std::vector<double> peers, Peers(rule, request, values));
    const double quantile = median ? 0.5 : *rule.Number("percentile") / 100;
    if (peers.empty() || static_cast<double>(peers.size()) < *rule.Number("min_trials_required")) {
      return absl::OkStatus();
    }
    const double limit = Quantile(peers, quantile);
    if (std::isinf(limit)) return absl::OkStatus();  // nothing is worse than that
    Add(request.experiment().spec().objective(), rule.maximize ? katib::LESS : katib::GREATER,
        rule.maximize ? -limit : limit, reply);
    SetStart(rule, reply);
    return absl::OkStatus();
  }

  // One loss for each trial that has succeeded and reported.
  static StatusOr<std::vector<double>> Peers(const Rule& rule, const Request& request,
                                             const Values& values) {
    const auto first = static_cast<size_t>(std::min(*rule.Number("start_step"), 0x1p30));
    std::vector<double> peers;
    for (const katib::Trial& trial : request.trials()) {
      if (trial.status().condition() != katib::TrialStatus::SUCCEEDED) continue;
      if (IsCancelled()) return absl::CancelledError("the caller has gone");
      const auto rows = values(trial.name());
      if (absl::IsNotFound(rows.status())) continue;
      if (!rows.ok()) return rows.status();
      std::vector<double> losses;
      for (size_t i = 0; i < std::min(first, rows->size()); ++i) {
        const double loss = rule.maximize ? -(*rows)[i].value : (*rows)[i].value;
        losses.push_back(std::isfinite(loss) ? loss : kWorst);
      }
      if (!losses.empty()) peers.push_back(Summary(losses, rule.info->name == "medianstop"));
    }
    return peers;
  }

  const KatibAccess access_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeKatibEarlyStopping(KatibAccess access) {
  return std::make_unique<KatibEarlyStopping>(std::move(access));
}

}  // namespace shirabe::service
