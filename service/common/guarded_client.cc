#include "service/common/guarded_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/import_batch.h"
#include "experiment/conditions.h"
#include "experiment/spec/local_support.h"
#include "experiment/spec/parse_spec.h"
#include "service/common/authorization.h"

namespace shirabe::service {
namespace {

using client::Asked;
using client::Candidates;
using client::LogChunk;

constexpr size_t kMaxErrors = 20;  // in one message

// With defaults; kInvalidArgument, with its mistakes, if it is no valid specification.
StatusOr<v1::Experiment> Valid(v1::Experiment experiment) {
  experiment::SetDefaults(experiment);
  std::vector<std::string> errors;
  for (const experiment::Finding& finding : experiment::Validate(experiment)) {
    if (!finding.warning) errors.push_back(experiment::FormatFinding(finding, ""));
  }
  if (errors.empty()) return experiment;
  const size_t more = errors.size() - std::min(errors.size(), kMaxErrors);
  if (more > 0) {
    errors.resize(kMaxErrors);
    errors.push_back(absl::StrCat("and ", more, " more"));
  }
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

// Also where it is valid, but its trials cannot run here.
StatusOr<v1::Experiment> Admit(const v1::Experiment& wanted, const GuardOptions& rights) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, Valid(wanted));
  RETURN_IF_ERROR(rights.in_cluster ? experiment::CheckVariants(experiment)
                                    : experiment::CheckRunnable(experiment));
  return experiment;
}

class GuardedClient : public client::Client {
 public:
  GuardedClient(client::LocalClient& client, Principal principal, GuardOptions rights)
      : client_(client), principal_(std::move(principal)), guard_options_(rights) {}

  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) override {
    RETURN_IF_ERROR(May("GetExperiment", key.ns));
    return client_.GetExperiment(key);
  }
  StatusOr<std::vector<v1::Experiment>> ListExperiments(const std::string& ns) override {
    RETURN_IF_ERROR(May("ListExperiments", ns));
    return client_.ListExperiments(ns);
  }
  StatusOr<v1::Trial> GetTrial(const TrialKey& key) override {
    RETURN_IF_ERROR(MayOf("GetTrial", key));
    return client_.GetTrial(key);
  }
  StatusOr<std::vector<v1::Trial>> ListTrials(const db::TrialQuery& query) override {
    RETURN_IF_ERROR(May("ListTrials", query.experiment.ns));
    return client_.ListTrials(query);
  }
  StatusOr<std::vector<v1::Attempt>> ListAttempts(const db::AttemptQuery& query) override {
    RETURN_IF_ERROR(May("ListAttempts", query.experiment.ns));
    return client_.ListAttempts(query);
  }
  StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const TrialKey& key) override {
    RETURN_IF_ERROR(MayOf("ListCheckpoints", key));
    return client_.ListCheckpoints(key);
  }
  StatusOr<std::vector<db::StoredObservation>> ListObservations(
      const db::ObservationQuery& query) override {
    RETURN_IF_ERROR(MayOf("ListObservations", query.trial));
    return client_.ListObservations(query);
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) override {
    RETURN_IF_ERROR(May("ListEvents", query.experiment.ns));
    return client_.ListEvents(query);
  }

  StatusOr<int64_t> Revision() override {
    RETURN_IF_ERROR(May("AwaitChange", ""));
    return client_.Revision();
  }
  StatusOr<std::vector<db::Change>> Changes(int64_t after) override {
    RETURN_IF_ERROR(May("ListChanges", ""));
    ASSIGN_OR_RETURN(auto changes, client_.Changes(after));
    std::vector<db::Change> seen;
    for (db::Change& change : changes) {
      ASSIGN_OR_RETURN(const bool sees, principal_.Sees(change.experiment.ns));
      if (sees) seen.push_back(std::move(change));
    }
    return seen;
  }
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    RETURN_IF_ERROR(May("AwaitChange", ""));
    return client_.AwaitChange(after, timeout);
  }
  StatusOr<std::string> Holder(const ExperimentKey& key) override {
    RETURN_IF_ERROR(May("GetHolder", key.ns));
    return client_.Holder(key);
  }

  StatusOr<LogChunk> ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes) override {
    RETURN_IF_ERROR(May("ReadLog", key.trial.experiment.ns));
    return client_.ReadLog(key, offset, max_bytes);
  }
  std::string LogLocation(const AttemptKey& key) override { return client_.LogLocation(key); }

  StatusOr<Candidates> Suggest(const v1::Experiment& experiment, int count) override {
    RETURN_IF_ERROR(May("Suggest", experiment::KeyOf(experiment).ns));
    RETURN_IF_ERROR(MayLearnFrom(experiment));
    // Of a stored one only the name counts.
    v1::Experiment asked = experiment;
    const Status stored = client_.GetExperiment(experiment::KeyOf(experiment)).status();
    if (absl::IsNotFound(stored)) {
      ASSIGN_OR_RETURN(asked, Valid(experiment));
    } else {
      RETURN_IF_ERROR(stored);
    }
    if (guard_options_.turns == nullptr) return client_.Suggest(asked, count);
    StatusOr<Candidates> candidates = absl::UnknownError("it was not asked");
    RETURN_IF_ERROR(guard_options_.turns->Run(principal_.name, asked.ByteSizeLong(), [&] {
      candidates = client_.Suggest(asked, count);
      return candidates.status();
    }));
    return candidates;
  }

  StatusOr<experiment::Submitted> Submit(const v1::Experiment& experiment,
                                         const experiment::Precondition& precondition) override {
    const ExperimentKey key = experiment::KeyOf(experiment);
    RETURN_IF_ERROR(May("SubmitExperiment", key.ns));
    RETURN_IF_ERROR(MayLearnFrom(experiment));
    // Of one that is there it changes the counts.
    if (client_.GetExperiment(key).ok())
      RETURN_IF_ERROR(principal_.May(Permission::kChange, key.ns));
    if (!guard_options_.in_cluster && !experiment.spec().shirabe().ask_and_tell()) {
      RETURN_IF_ERROR(principal_.MustBeAdmin(
          "an experiment whose trials are processes of the server's own machine"));
    }
    ASSIGN_OR_RETURN(v1::Experiment valid, Admit(experiment, guard_options_));
    *valid.mutable_status()->mutable_shirabe()->mutable_created_by() = principal_.Actor();
    return client_.Submit(valid, precondition);
  }
  StatusOr<std::vector<std::string>> Import(const std::string& ns,
                                            const client::Imported& imported) override {
    RETURN_IF_ERROR(May("ImportExperiment", ns));
    client::Imported own = imported;
    own.actor = principal_.Actor();
    return client_.Import(ns, own);
  }
  Status Send(const ExperimentKey& key, const v1::Intent& intent) override {
    RETURN_IF_ERROR(
        May(intent.verb() == v1::Intent::DELETE ? "DeleteExperiment" : "SendIntent", key.ns));
    if (intent.verb() == v1::Intent::ASK) {
      return absl::InvalidArgumentError("verb: ASK is a call of its own, Ask");
    }
    v1::Intent own = intent;
    *own.mutable_actor() = principal_.Actor();
    return client_.Send(key, own);
  }
  Status Delete(const ExperimentKey& key, absl::Duration patience,
                const client::Wait& wait) override {
    RETURN_IF_ERROR(May("DeleteExperiment", key.ns));
    return client_.DeleteFor(principal_.Actor(), key, patience, wait);
  }
  StatusOr<Asked> Ask(const ExperimentKey& key, const std::string& caller,
                      absl::Duration patience) override {
    RETURN_IF_ERROR(May("Ask", key.ns));
    return client_.Ask(key, caller, patience);
  }
  StatusOr<Asked> FindAskReply(const ExperimentKey& key, const std::string& caller) override {
    RETURN_IF_ERROR(May("Ask", key.ns));
    return client_.FindAskReply(key, caller);
  }
  // Whether a trial's own token is that of the current attempt is seen where the report is
  // committed.
  StatusOr<experiment::ReportReply> Tell(const experiment::Report& report) override {
    RETURN_IF_ERROR(MayOf("Tell", report.trial));
    if (principal_.role != Principal::Role::kTrial) return client_.Tell(report);
    experiment::Report signed_report = report;
    signed_report.token = principal_.token;
    return client_.Tell(signed_report);
  }

 private:
  Status May(const char* method, const std::string& ns) const {
    return CheckAccess(principal_, std::string("shirabe.v1.Shirabe/") + method, ns);
  }
  // A trial may where it is its own.
  Status MayOf(const char* method, const TrialKey& key) const {
    RETURN_IF_ERROR(May(method, key.experiment.ns));
    if (principal_.role != Principal::Role::kTrial) return absl::OkStatus();
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
  const GuardOptions guard_options_;
};

}  // namespace

std::unique_ptr<client::Client> Guard(client::LocalClient& client, Principal principal,
                                      GuardOptions rights) {
  return std::make_unique<GuardedClient>(client, std::move(principal), rights);
}

}  // namespace shirabe::service
