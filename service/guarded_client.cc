#include "service/guarded_client.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "experiment/runnable.h"
#include "experiment/spec.h"

namespace shirabe::service {
namespace {

using client::Asked;
using client::Candidates;
using client::LogChunk;

// With defaults; kInvalidArgument, with every mistake, if it is no valid specification, or one
// whose trials cannot run here.
StatusOr<v1::Experiment> Admit(v1::Experiment experiment, const Rights& rights) {
  experiment::SetDefaults(experiment);
  std::vector<std::string> errors;
  for (const experiment::Finding& finding : experiment::Validate(experiment)) {
    if (!finding.warning) errors.push_back(experiment::FormatFinding(finding, ""));
  }
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  RETURN_IF_ERROR(rights.in_cluster ? experiment::CheckVariants(experiment)
                                    : experiment::CheckRunnable(experiment));
  return experiment;
}

Act ActOf(const v1::Intent& intent) {
  return intent.verb() == v1::Intent::DELETE ? Act::kDelete : Act::kChange;
}

class GuardedClient : public client::Client {
 public:
  GuardedClient(client::LocalClient& client, Principal principal, Rights rights)
      : client_(client), principal_(std::move(principal)), rights_(rights) {}

  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) override {
    RETURN_IF_ERROR(principal_.MayUse(key.ns));
    return client_.GetExperiment(key);
  }
  StatusOr<std::vector<v1::Experiment>> ListExperiments(const std::string& ns) override {
    RETURN_IF_ERROR(principal_.MayUse(ns));
    return client_.ListExperiments(ns);
  }
  StatusOr<v1::Trial> GetTrial(const TrialKey& key) override {
    RETURN_IF_ERROR(MayRead(key));
    return client_.GetTrial(key);
  }
  StatusOr<std::vector<v1::Trial>> ListTrials(const db::TrialQuery& query) override {
    RETURN_IF_ERROR(principal_.MayUse(query.experiment.ns));
    return client_.ListTrials(query);
  }
  StatusOr<std::vector<v1::Attempt>> ListAttempts(const db::AttemptQuery& query) override {
    RETURN_IF_ERROR(principal_.MayUse(query.experiment.ns));
    return client_.ListAttempts(query);
  }
  StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const TrialKey& key) override {
    RETURN_IF_ERROR(MayRead(key));
    return client_.ListCheckpoints(key);
  }
  StatusOr<std::vector<db::ObservationRow>> ListObservations(
      const db::ObservationQuery& query) override {
    RETURN_IF_ERROR(MayRead(query.trial));
    return client_.ListObservations(query);
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) override {
    RETURN_IF_ERROR(principal_.MayUse(query.experiment.ns));
    return client_.ListEvents(query);
  }

  StatusOr<int64_t> Revision() override {
    RETURN_IF_ERROR(MustBePerson());
    return client_.Revision();
  }
  StatusOr<std::vector<db::Change>> Changes(int64_t after) override {
    RETURN_IF_ERROR(MustBePerson());
    ASSIGN_OR_RETURN(auto changes, client_.Changes(after));
    std::vector<db::Change> seen;
    for (db::Change& change : changes) {
      ASSIGN_OR_RETURN(const bool sees, principal_.Sees(change.experiment.ns));
      if (sees) seen.push_back(std::move(change));
    }
    return seen;
  }
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    RETURN_IF_ERROR(MustBePerson());
    return client_.AwaitChange(after, timeout);
  }
  StatusOr<std::string> Holder(const ExperimentKey& key) override {
    RETURN_IF_ERROR(principal_.MayUse(key.ns));
    return client_.Holder(key);
  }

  StatusOr<LogChunk> ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes) override {
    RETURN_IF_ERROR(principal_.MayUse(key.trial.experiment.ns));
    return client_.ReadLog(key, offset, max_bytes);
  }
  std::string LogPlace(const AttemptKey& key) override { return client_.LogPlace(key); }

  StatusOr<Candidates> Suggest(const v1::Experiment& experiment, int count) override {
    RETURN_IF_ERROR(principal_.MayUse(experiment::KeyOf(experiment).ns));
    RETURN_IF_ERROR(MayLearnFrom(experiment));
    return client_.Suggest(experiment, count);
  }

  StatusOr<experiment::Submitted> Submit(const v1::Experiment& experiment,
                                         int64_t generation) override {
    const ExperimentKey key = experiment::KeyOf(experiment);
    RETURN_IF_ERROR(principal_.May(Act::kCreate, key.ns));
    RETURN_IF_ERROR(MayLearnFrom(experiment));
    if (!rights_.in_cluster && !experiment.spec().shirabe().ask_and_tell()) {
      RETURN_IF_ERROR(principal_.MustBeAdmin(
          "an experiment whose trials are processes of the server's own machine"));
    }
    ASSIGN_OR_RETURN(const v1::Experiment valid, Admit(experiment, rights_));
    return client_.Submit(valid, generation);
  }
  StatusOr<std::vector<std::string>> Import(const std::string& ns,
                                            const client::Imported& imported) override {
    RETURN_IF_ERROR(principal_.May(Act::kCreate, ns));
    return client_.Import(ns, imported);
  }
  Status Send(const ExperimentKey& key, const v1::Intent& intent) override {
    RETURN_IF_ERROR(principal_.May(ActOf(intent), key.ns));
    return client_.Send(key, intent);
  }
  Status Delete(const ExperimentKey& key, absl::Duration patience,
                const client::Wait& wait) override {
    RETURN_IF_ERROR(principal_.May(Act::kDelete, key.ns));
    return client_.Delete(key, patience, wait);
  }
  StatusOr<Asked> Ask(const ExperimentKey& key, const std::string& caller,
                      absl::Duration patience) override {
    RETURN_IF_ERROR(principal_.May(Act::kChange, key.ns));
    return client_.Ask(key, caller, patience);
  }
  // A trial's own token is proved where the report is committed.
  StatusOr<experiment::Reported> Tell(const experiment::Report& report) override {
    if (principal_.role != Principal::Role::kTrial) {
      RETURN_IF_ERROR(principal_.May(Act::kChange, report.trial.experiment.ns));
      return client_.Tell(report);
    }
    RETURN_IF_ERROR(client_.CheckToken(report.trial, principal_.token));
    experiment::Report signed_report = report;
    signed_report.token = principal_.token;
    return client_.Tell(signed_report);
  }

 private:
  Status MustBePerson() const {
    return principal_.role == Principal::Role::kTrial ? principal_.MayUse("") : absl::OkStatus();
  }
  Status MayRead(const TrialKey& key) const {
    if (principal_.role != Principal::Role::kTrial) return principal_.MayUse(key.experiment.ns);
    return client_.CheckToken(key, principal_.token);
  }
  // Experiments to learn from are of the same namespace, unless their names say another.
  Status MayLearnFrom(const v1::Experiment& experiment) const {
    for (const std::string& name : experiment.spec().shirabe().warm_start().experiments()) {
      const size_t slash = name.find('/');
      if (slash == std::string::npos) continue;
      RETURN_IF_ERROR(principal_.MayUse(name.substr(0, slash)));
    }
    return absl::OkStatus();
  }

  client::LocalClient& client_;
  const Principal principal_;
  const Rights rights_;
};

}  // namespace

std::unique_ptr<client::Client> Guard(client::LocalClient& client, Principal principal,
                                      Rights rights) {
  return std::make_unique<GuardedClient>(client, std::move(principal), rights);
}

}  // namespace shirabe::service
