#include "service/katib/katib_observations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"
#include "base/printable.h"

namespace shirabe::service {
namespace {

class ClientObservations : public KatibObservationStore {
 public:
  ClientObservations(client::Client& client, const std::string& ns,
                     std::unique_ptr<client::Client> own)
      : client_(client), ns_(ns), own_(std::move(own)) {}

  Status Report(const KatibReport& report) override {
    experiment::Report ours;
    ASSIGN_OR_RETURN(ours.trial, Find(report.trial));
    ours.attempt = report.attempt;
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
  StatusOr<TrialKey> Find(const std::string& name) const {
    const size_t slash = name.find('/');
    const std::string ns = slash == std::string::npos ? ns_ : name.substr(0, slash);
    if (slash != std::string::npos) RETURN_IF_ERROR(ValidateNamespace(ns));
    const auto key = ParseTrialName(slash == std::string::npos ? name : name.substr(slash + 1), ns);
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
