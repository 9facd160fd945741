#include "client/local_client.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/process_id.h"
#include "client/enum_words.h"
#include "client/import_batch.h"
#include "client/leftover_files.h"
#include "client/namespace_guard.h"
#include "client/strip_revisions.h"
#include "client/suggestion_preview.h"
#include "client/with_actor.h"
#include "trial/file_layout.h"
#include "trial/host_paths.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "trial/log_file.h"

namespace shirabe::client {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// How long a new experiment waits for the files of one of its name that was deleted.
constexpr absl::Duration kLeaving = absl::Seconds(3);
constexpr absl::Duration kReportTimeout = absl::Seconds(20);

// Who runs an experiment while something is asked of it: the attached controller, one of our own
// for that time, or (null) another process.
struct Owner {
  std::unique_ptr<experiment::Controller> own;
  experiment::Controller* controller = nullptr;
};

class StoreClient : public LocalClient {
 public:
  StoreClient(std::unique_ptr<db::Store> store, LocalOptions options)
      : store_(std::move(store)), options_(std::move(options)), layout_(options_.place.home) {}

  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) override {
    auto experiment = OneRecord(store_->GetExperiment(key));
    if (experiment.ok()) RETURN_IF_ERROR(namespaces_.CheckNamespaceExists(*experiment));
    return experiment;
  }
  StatusOr<std::vector<v1::Experiment>> ListExperiments(const std::string& ns) override {
    ASSIGN_OR_RETURN(auto experiments, Records(store_->ListExperiments(ns)));
    std::erase_if(experiments,
                  [&](const auto& one) { return !namespaces_.CheckNamespaceExists(one).ok(); });
    return experiments;
  }
  StatusOr<v1::Trial> GetTrial(const TrialKey& key) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(key.experiment));
    return OneRecord(store_->GetTrial(key));
  }
  StatusOr<std::vector<v1::Trial>> ListTrials(const db::TrialQuery& query) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(query.experiment));
    return Records(store_->ListTrials(query));
  }
  StatusOr<std::vector<v1::Attempt>> ListAttempts(const db::AttemptQuery& query) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(query.experiment));
    auto attempts = Records(store_->ListAttempts(query));
    if (!attempts.ok()) return attempts;
    for (v1::Attempt& attempt : *attempts) attempt.clear_token();
    return attempts;
  }
  StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const TrialKey& key) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(key.experiment));
    return Records(store_->ListCheckpoints(key));
  }
  StatusOr<std::vector<db::StoredObservation>> ListObservations(
      const db::ObservationQuery& query) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(query.trial.experiment));
    return store_->ListObservations(query);
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(query.experiment));
    return store_->ListEvents(query);
  }
  StatusOr<int64_t> Revision() override { return store_->Revision(); }
  StatusOr<std::vector<db::Change>> Changes(int64_t after) override {
    return store_->Changes(after, -1);
  }
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    return store_->AwaitChange(after, timeout);
  }

  // A lease that has run out, or whose process is gone, is as good as none.
  StatusOr<std::string> Holder(const ExperimentKey& key) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(key));
    ASSIGN_OR_RETURN(const v1::Lease lease, store_->GetLease(key));
    if (lease.holder().empty() || FromProto(lease.expiry()) <= options_.clock->Now()) return "";
    const auto process = ParseProcessId(lease.holder());
    if (process && !MayBeAlive(*process)) return "";
    return HolderWords(lease.holder());
  }

  StatusOr<LogChunk> ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(key.trial.experiment));
    ASSIGN_OR_RETURN(trial::LogPiece piece,
                     trial::ReadLog(LogLocation(key), offset, max_bytes, layout_.home()));
    return LogChunk{.text = std::move(piece.text), .next = piece.next, .at_end = piece.at_end};
  }
  std::string LogLocation(const AttemptKey& key) override { return layout_.Paths(key).log; }

  StatusOr<Candidates> Suggest(const v1::Experiment& experiment, int count) override {
    // Who asks for no points wants to know whether there could be any.
    if (count == 0) RETURN_IF_ERROR(CheckFits(experiment));
    return SuggestNext(*store_, experiment, count);
  }

  StatusOr<experiment::Submitted> Submit(const v1::Experiment& experiment,
                                         const experiment::Precondition& precondition) override {
    // A server may just be removing them.
    const ExperimentKey key = experiment::KeyOf(experiment);
    const absl::Duration patience = controller_ == nullptr ? absl::ZeroDuration() : kLeaving;
    RETURN_IF_ERROR(leftover_files_.AwaitRemoved(key, options_.clock->Monotonic() + patience,
                                                 [](absl::Duration time) {
                                                   Pause(time);
                                                   return true;
                                                 }));
    RETURN_IF_ERROR(CheckFits(experiment));
    RETURN_IF_ERROR(namespaces_.CheckNotBeingRemoved(key));
    v1::Experiment wanted = experiment;
    wanted.mutable_status()->mutable_shirabe()->set_namespace_uid(namespaces_.UidOf(key.ns));
    RETURN_IF_ERROR(experiment::CheckMayCreate(*store_, key, most_experiments_));
    return experiment::Submit(*store_, *options_.clock, WithActor(options_.actor, wanted),
                              precondition);
  }
  StatusOr<std::vector<std::string>> Import(const std::string& ns,
                                            const Imported& imported) override;
  Status Send(const ExperimentKey& key, const v1::Intent& intent) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(key));
    RETURN_IF_ERROR(CheckScale(key, intent));
    RETURN_IF_ERROR(
        experiment::Send(*store_, *options_.clock, key, WithActor(options_.actor, intent)));
    if (controller_ != nullptr) controller_->NotifyIntent(key);
    return absl::OkStatus();
  }
  Status DeleteFor(const v1::Actor& actor, const ExperimentKey& key, absl::Duration patience,
                   const Wait& wait) override;
  StatusOr<Asked> Ask(const ExperimentKey& key, const std::string& caller,
                      absl::Duration patience) override;
  StatusOr<Asked> FindAskReply(const ExperimentKey& key, const std::string& caller) override {
    RETURN_IF_ERROR(namespaces_.CheckReadable(key));
    return client::FindAskReply(*store_, key, caller);
  }
  StatusOr<experiment::ReportReply> Tell(const experiment::Report& report) override;

  Status CheckToken(const TrialKey& key, const std::string& token) override;
  void Attach(experiment::Controller* controller) override { controller_ = controller; }
  void SetNamespaces(NamespaceUid uid) override { namespaces_.Set(std::move(uid)); }
  Status CheckPresent(const ExperimentKey& key) override { return GetExperiment(key).status(); }

  StatusOr<std::unique_ptr<experiment::Controller>> MakeController(ExecutionOptions machines,
                                                                   int workers) override {
    cluster_ = machines.pods.client;
    host_paths_ = machines.host_paths;
    machines.pods.host_paths = machines.host_paths.value_or(std::vector<std::string>());
    most_experiments_ = machines.limits.experiments;
    return experiment::Controller::Create(
        {.store = store_.get(),
         .clock = options_.clock,
         .executor = std::move(machines.executor),
         .executor_options = {.home = options_.place.home,
                              .clock = options_.clock,
                              .devices = std::move(machines.devices),
                              .pools = std::move(machines.pools),
                              .pods = std::move(machines.pods)},
         .workers = workers,
         .working_dir = std::move(machines.working_dir),
         .limits = machines.limits});
  }

 private:
  Status CheckFits(const v1::Experiment& experiment);
  Status CheckScale(const ExperimentKey& key, const v1::Intent& intent);
  StatusOr<Owner> MayOwn();
  StatusOr<Owner> FindOwner(const ExperimentKey& key);

  std::unique_ptr<db::Store> store_;
  const LocalOptions options_;
  const trial::Layout layout_;
  const LeftoverFiles leftover_files_{store_.get(), &layout_, options_.clock};
  experiment::Controller* controller_ = nullptr;
  NamespaceGuard namespaces_{store_.get(), options_.clock, [this](const ExperimentKey& key) {
                               if (controller_ != nullptr) controller_->NotifyIntent(key);
                             }};
  kube::Client* cluster_ = nullptr;  // where its trials run; null = here
  std::optional<std::vector<std::string>> host_paths_;
  int64_t most_experiments_ = 0;  // of a namespace; 0 = any number
};

// Only a process that runs experiments in a cluster knows what is there. What cannot be found out,
// and what may still come, is no reason to refuse it: its trials wait, and say why.
Status StoreClient::CheckFits(const v1::Experiment& experiment) {
  if (host_paths_) {
    RETURN_IF_ERROR(
        trial::CheckHostPath(experiment.spec().shirabe().checkpoint().volume(), *host_paths_));
  }
  if (cluster_ == nullptr || experiment.spec().shirabe().ask_and_tell()) return absl::OkStatus();
  const Status fits =
      trial::CheckSharedClaim(*cluster_, experiment::KeyOf(experiment), experiment.spec());
  return absl::IsInvalidArgument(fits) ? fits : absl::OkStatus();
}

// More at the same time may be more than there is room for.
Status StoreClient::CheckScale(const ExperimentKey& key, const v1::Intent& intent) {
  if (cluster_ == nullptr || intent.verb() != v1::Intent::SCALE ||
      !intent.has_parallel_trial_count()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(auto stored, store_->GetExperiment(key));
  stored.record.mutable_spec()->set_parallel_trial_count(intent.parallel_trial_count());
  return CheckFits(stored.record);
}

// The owner of the experiment carries the deletion out. Where it has none, we do it in the same
// way, since processes of it may still be running after their owner died.
Status StoreClient::DeleteFor(const v1::Actor& actor, const ExperimentKey& key,
                              absl::Duration patience, const Wait& wait) {
  v1::Intent intent;
  intent.set_verb(v1::Intent::DELETE);
  *intent.mutable_actor() = actor;
  Status sent = Send(key, intent);
  // Asked for before; its files may still be on their way.
  const bool going = absl::IsNotFound(sent) && controller_ != nullptr && controller_->Owns(key);
  if (!sent.ok() && !going) return sent;
  ASSIGN_OR_RETURN(const Owner owner, MayOwn());
  const absl::Duration deadline = options_.clock->Monotonic() + patience;
  bool owned = false;
  for (;;) {
    const Status gone = store_->GetExperiment(key).status();
    if (absl::IsNotFound(gone)) break;
    RETURN_IF_ERROR(gone);
    if (!owned) {
      Status own = owner.controller->Own(key);
      owned = own.ok();
      if (!owned && !absl::IsAlreadyExists(own) && !absl::IsNotFound(own)) return own;
    }
    if (options_.clock->Monotonic() > deadline) {
      const std::string holder = Holder(key).value_or("");
      return absl::DeadlineExceededError(absl::StrCat(
          "experiment ", ToString(key), " is not deleted after ", absl::FormatDuration(patience),
          holder.empty() ? "" : ": " + holder + " runs it and has been asked to",
          "; wait longer with --timeout"));
    }
    if (!wait(kPollInterval))
      return absl::CancelledError("interrupted; the deletion has been asked for");
  }
  // The records go first, then the files; by us, or by its owner until now.
  const absl::Duration left = deadline - options_.clock->Monotonic();
  RETURN_IF_ERROR(owner.controller->Await(key, std::max(left, absl::ZeroDuration())));
  const Status none = leftover_files_.AwaitRemoved(key, deadline, wait);
  if (!absl::IsAlreadyExists(none)) return none;
  return absl::DeadlineExceededError(
      absl::StrCat("experiment ", ToString(key), " is deleted, but its files in ",
                   layout_.ExperimentDir(key), " are still being removed"));
}

Status NameTaken(const ExperimentKey& key) {
  return absl::AlreadyExistsError("experiment " + ToString(key) +
                                  " exists: give this one another name (--name)");
}

StatusOr<std::vector<std::string>> StoreClient::Import(const std::string& ns,
                                                       const Imported& imported) {
  const ExperimentKey key{ns, imported.name};
  RETURN_IF_ERROR(leftover_files_.Check(key));
  RETURN_IF_ERROR(experiment::CheckMayCreate(*store_, key, most_experiments_));
  const Status found = store_->GetExperiment(key).status();
  if (found.ok()) return NameTaken(key);
  if (!absl::IsNotFound(found)) return found;
  Imported stored = imported;
  if (stored.actor.name().empty()) stored.actor = options_.actor;
  stored.namespace_uid = namespaces_.UidOf(ns);
  ASSIGN_OR_RETURN(const db::Batch batch, MakeBatch(ns, stored, options_.clock->Now()));
  const Status committed = store_->Commit(batch).status();
  if (absl::IsAborted(committed)) return NameTaken(key);  // in between
  RETURN_IF_ERROR(committed);
  return std::vector<std::string>(stored.notes.begin() + imported.notes.size(), stored.notes.end());
}

// ---- ask and tell ------------------------------------------------------------------------------

// One that owns nothing yet.
StatusOr<Owner> StoreClient::MayOwn() {
  Owner owner{.controller = controller_};
  if (controller_ == nullptr) {
    ASSIGN_OR_RETURN(owner.own, MakeController({}, 1));
    owner.controller = owner.own.get();
  }
  return owner;
}

StatusOr<Owner> StoreClient::FindOwner(const ExperimentKey& key) {
  ASSIGN_OR_RETURN(Owner owner, MayOwn());
  const Status own = owner.controller->Own(key);
  if (absl::IsAlreadyExists(own)) owner.controller = nullptr;
  if (!own.ok() && !absl::IsAlreadyExists(own)) return own;
  return owner;
}

StatusOr<Asked> StoreClient::Ask(const ExperimentKey& key, const std::string& caller,
                                 absl::Duration patience) {
  if (caller.empty()) return absl::InvalidArgumentError("who asks must have a name");
  RETURN_IF_ERROR(namespaces_.CheckReadable(key));
  ASSIGN_OR_RETURN(const auto experiment, store_->GetExperiment(key));
  if (!experiment.record.spec().shirabe().ask_and_tell()) {
    return absl::FailedPreconditionError(
        absl::StrCat("experiment ", ToString(key),
                     " runs its trials itself: only one with "
                     "spec.shirabe.askAndTell: true is asked for them"));
  }
  ASSIGN_OR_RETURN(int64_t revision, store_->Revision());
  ASSIGN_OR_RETURN(Asked asked, FindAskReply(key, caller));
  if (!asked.pending) return asked;
  v1::Intent intent;
  intent.set_verb(v1::Intent::ASK);
  intent.set_caller(caller);
  RETURN_IF_ERROR(Send(key, intent));
  const absl::Duration deadline = options_.clock->Monotonic() + patience;
  ASSIGN_OR_RETURN(const Owner owner, FindOwner(key));
  while (asked.pending && options_.clock->Monotonic() < deadline) {
    ASSIGN_OR_RETURN(revision, AwaitChange(revision, deadline - options_.clock->Monotonic()));
    ASSIGN_OR_RETURN(asked, FindAskReply(key, caller));
  }
  return asked;
}

Status StoreClient::CheckToken(const TrialKey& key, const std::string& token) {
  RETURN_IF_ERROR(namespaces_.CheckReadable(key.experiment));
  ASSIGN_OR_RETURN(const auto attempts,
                   store_->ListAttempts({.experiment = key.experiment, .trial = key.number}));
  const bool known = std::any_of(attempts.begin(), attempts.end(), [&](const auto& attempt) {
    return !token.empty() && attempt.record.token() == token;
  });
  if (known) return absl::OkStatus();
  return absl::PermissionDeniedError("this token is not that of an attempt of trial " +
                                     TrialName(key));
}

StatusOr<experiment::ReportReply> StoreClient::Tell(const experiment::Report& report) {
  const ExperimentKey& key = report.trial.experiment;
  RETURN_IF_ERROR(namespaces_.CheckReadable(key));
  ASSIGN_OR_RETURN(const auto experiment, store_->GetExperiment(key));
  if (controller_ == nullptr && !experiment.record.spec().shirabe().ask_and_tell()) {
    return absl::FailedPreconditionError(
        absl::StrCat("experiment ", ToString(key),
                     " runs its trials itself: its programs report "
                     "through $SHIRABE_METRICS_FILE, or to the server that runs it"));
  }
  ASSIGN_OR_RETURN(const Owner owner, FindOwner(key));
  if (owner.controller != nullptr) return owner.controller->Tell(report, kReportTimeout);
  return absl::UnavailableError(absl::StrCat(Holder(key).value_or("another process"), " runs ",
                                             ToString(key), ": report it there"));
}

}  // namespace

StatusOr<std::unique_ptr<LocalClient>> LocalClient::Open(LocalOptions options) {
  const bool empty = options.read_only && IsDefaultStoreMissing(options.place);
  if (!options.read_only) trial::Layout(options.place.home).KeepPrivate();
  ASSIGN_OR_RETURN(auto store, db::Open(empty ? "memory:" : options.place.db, options.read_only));
  return std::make_unique<StoreClient>(std::move(store), std::move(options));
}

}  // namespace shirabe::client
