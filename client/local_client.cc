#include "client/local_client.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "client/import_batch.h"
#include "client/leftover_files.h"
#include "client/method_table.h"
#include "client/place_check.h"
#include "client/records/namespace_guard.h"
#include "client/records/stored_records.h"
#include "client/schedule_calls.h"
#include "client/store_analyses.h"
#include "client/store_reads.h"
#include "client/suggestion_preview.h"
#include "client/trial_files.h"
#include "client/wire_format.h"
#include "experiment/conditions.h"
#include "experiment/observation_ingest.h"
#include "experiment/submission.h"
#include "trial/file_layout.h"

namespace shirabe::client {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// How long a new experiment waits for the files of one of its name that was deleted.
constexpr absl::Duration kLeaving = absl::Seconds(3);
constexpr absl::Duration kReportTimeout = absl::Seconds(20);

// A Wait that no user interrupts.
bool Sleep(absl::Duration time) {
  Pause(time);
  return true;
}

// Who runs an experiment while something is asked of it: the attached controller, one of our own
// for that time, or (null) another process.
struct Owner {
  std::unique_ptr<experiment::Controller> own;
  experiment::Controller* controller = nullptr;
};

class StoreClient : public LocalClient {
 public:
  StoreClient(std::unique_ptr<db::Store> store, LocalOptions options)
      : store_(std::move(store)), options_(std::move(options)), layout_(options_.place.home) {
    reads_.AddTo(methods_);
    charts_.AddTo(methods_);
    analyses_.AddTo(methods_);
    files_.AddTo(methods_);
    schedules_.AddTo(methods_);
    methods_.Add("Suggest", this, &StoreClient::Suggest);
    methods_.Add("SubmitExperiment", this, &StoreClient::SubmitExperiment);
    methods_.Add("ImportExperiment", this, &StoreClient::ImportExperiment);
    methods_.Add("SendIntent", this, &StoreClient::SendIntent);
    methods_.Add("DeleteExperiment", this, &StoreClient::DeleteUninterrupted);
    methods_.Add("Ask", this, &StoreClient::Ask);
    methods_.Add("Tell", this, &StoreClient::Tell);
  }

  Status Call(const Method& method, const google::protobuf::Message& request,
              const Sink& sink) override {
    return methods_.Call(method, request, sink);
  }
  std::string LogLocation(const AttemptKey& key) override { return layout_.Paths(key).log; }
  Status DeleteExperiment(const v1::DeleteRequest& request, const Wait& wait) override;
  Status CheckToken(const TrialKey& key, const std::string& token) override;
  void Attach(experiment::Controller* controller) override { controller_ = controller; }
  db::Store& store() override { return *store_; }
  decltype(LocalOptions::stores) stores() const override { return options_.stores; }
  schedule::ScheduleRecords& schedules() override { return schedules_.records(); }
  void SetNamespaces(NamespaceUid uid) override { namespaces_.Set(std::move(uid)); }

  StatusOr<std::unique_ptr<experiment::Controller>> MakeController(ExecutionOptions machines,
                                                                   int workers) override {
    place_.cluster = machines.pods.client;
    place_.host_paths = machines.host_paths;
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
                              .pods = std::make_shared<trial::PodOptions>(std::move(machines.pods)),
                              .stores = options_.stores,
                              .status_handlers = experiment::TrainerStatusHandlers()},
         .workers = workers,
         .working_dir = std::move(machines.working_dir),
         .limits = machines.limits});
  }

 private:
  StatusOr<v1::SuggestReply> Suggest(const v1::SuggestRequest& request);
  StatusOr<v1::SubmitReply> SubmitExperiment(const v1::SubmitRequest& request);
  StatusOr<v1::ImportReply> ImportExperiment(const v1::ImportRequest& request);
  StatusOr<v1::Done> SendIntent(const v1::Intent& intent);
  StatusOr<v1::Done> DeleteUninterrupted(const v1::DeleteRequest& request);
  StatusOr<v1::AskReply> Ask(const v1::AskRequest& request);
  StatusOr<v1::AskReply> AskOwner(const Owner& owner, const ExperimentKey& key,
                                  const std::string& caller);
  StatusOr<v1::AskReply> ReplyWith(std::optional<experiment::GivenTrial> given,
                                   const ExperimentKey& key, const std::string& caller);
  StatusOr<v1::TellReply> Tell(const v1::TellRequest& request);
  Status CheckMayStore(const v1::Experiment& experiment);
  Status CheckScale(const ExperimentKey& key, const v1::Intent& intent);
  StatusOr<Owner> MayOwn();
  StatusOr<Owner> FindOwner(const ExperimentKey& key);

  std::unique_ptr<db::Store> store_;
  const LocalOptions options_;
  const trial::FileLayout layout_;
  const LeftoverFiles leftover_files_{store_.get(), &layout_, options_.clock};
  experiment::Controller* controller_ = nullptr;
  NamespaceGuard namespaces_{store_.get(), options_.clock, [this](const ExperimentKey& key) {
                               if (controller_ != nullptr) controller_->NotifyIntent(key);
                             }};
  PlaceCheck place_{.stores = options_.stores};
  int64_t most_experiments_ = 0;  // of a namespace; 0 = any number
  StoreReads reads_{store_.get(), options_.clock, &layout_, &namespaces_};
  ChartReads charts_{store_.get(), options_.clock, &namespaces_};
  StoreAnalyses analyses_{store_.get(), &namespaces_};
  TrialFiles files_{{store_.get(), &layout_, &namespaces_, options_.stores,
                     [this] { return place_.cluster != nullptr; }}};
  ScheduleCalls schedules_{
      {.store = store_.get(), .clock = options_.clock, .actor = options_.actor},
      &namespaces_,
      [this](const v1::Experiment& made) { return CheckMayStore(made); }};
  MethodTable methods_;
};

StatusOr<v1::SuggestReply> StoreClient::Suggest(const v1::SuggestRequest& request) {
  // Who asks for no points wants to know whether there could be any.
  if (request.count() == 0) RETURN_IF_ERROR(place_.Check(request.experiment()));
  return SuggestNext(*store_, request.experiment(), request.count());
}

StatusOr<v1::SubmitReply> StoreClient::SubmitExperiment(const v1::SubmitRequest& request) {
  // A server may just be removing the files of one of its name.
  const ExperimentKey key = experiment::KeyOf(request.experiment());
  const absl::Duration patience = controller_ == nullptr ? absl::ZeroDuration() : kLeaving;
  RETURN_IF_ERROR(leftover_files_.AwaitRemoved(key, options_.clock->Monotonic() + patience, Sleep));
  RETURN_IF_ERROR(place_.Check(request.experiment()));
  RETURN_IF_ERROR(namespaces_.CheckNotBeingRemoved(key));
  v1::Experiment wanted = WithActor(options_.actor, request.experiment());
  wanted.mutable_status()->mutable_shirabe()->set_namespace_uid(namespaces_.UidOf(key.ns));
  RETURN_IF_ERROR(experiment::CheckMayCreate(*store_, key, most_experiments_));
  ASSIGN_OR_RETURN(const experiment::Submitted submitted,
                   experiment::Submit(*store_, *options_.clock, wanted,
                                      {.absent = request.absent(),
                                       .present = request.present(),
                                       .generation = request.generation()}));
  v1::SubmitReply reply;
  reply.set_created(submitted.created);
  reply.set_changed(submitted.changed);
  return reply;
}

StatusOr<v1::Done> StoreClient::SendIntent(const v1::Intent& intent) {
  const ExperimentKey key = ExperimentKeyOf(intent);
  RETURN_IF_ERROR(namespaces_.CheckReadable(key));
  RETURN_IF_ERROR(CheckScale(key, intent));
  RETURN_IF_ERROR(
      experiment::Send(*store_, *options_.clock, key, WithActor(options_.actor, intent)));
  if (controller_ != nullptr) controller_->NotifyIntent(key);
  return v1::Done();
}

// Of one that a schedule starts: what is looked at of one that is submitted.
Status StoreClient::CheckMayStore(const v1::Experiment& experiment) {
  const ExperimentKey key = experiment::KeyOf(experiment);
  RETURN_IF_ERROR(leftover_files_.Check(key));
  RETURN_IF_ERROR(place_.Check(experiment));
  return experiment::CheckMayCreate(*store_, key, most_experiments_);
}

// More at the same time may be more than there is room for.
Status StoreClient::CheckScale(const ExperimentKey& key, const v1::Intent& intent) {
  if (place_.cluster == nullptr || intent.verb() != v1::Intent::SCALE ||
      !intent.has_parallel_trial_count()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(auto stored, store_->GetExperiment(key));
  stored.record.mutable_spec()->set_parallel_trial_count(intent.parallel_trial_count());
  return place_.Check(stored.record);
}

// The owner of the experiment carries the deletion out. Where it has none, we do it in the same
// way, since processes of it may still be running after their owner died.
Status StoreClient::DeleteExperiment(const v1::DeleteRequest& request, const Wait& wait) {
  const ExperimentKey key = FromWire(request.experiment());
  const absl::Duration patience = FromWire(request.patience());
  v1::Intent intent;
  intent.set_verb(v1::Intent::DELETE);
  *intent.mutable_actor() = request.actor();
  Status sent = Send(key, intent);
  // Asked for before; its files may still be on their way.
  const bool going =
      absl::IsNotFound(sent) && controller_ != nullptr && controller_->Owns(key) &&
      (!controller_->Await(key, absl::ZeroDuration()).ok() || !leftover_files_.Check(key).ok());
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

StatusOr<v1::Done> StoreClient::DeleteUninterrupted(const v1::DeleteRequest& request) {
  RETURN_IF_ERROR(DeleteExperiment(request, Sleep));
  return v1::Done();
}

StatusOr<v1::ImportReply> StoreClient::ImportExperiment(const v1::ImportRequest& request) {
  const ExperimentKey key{request.namespace_(), request.name()};
  RETURN_IF_ERROR(leftover_files_.Check(key));
  RETURN_IF_ERROR(experiment::CheckMayCreate(*store_, key, most_experiments_));
  const Status found = store_->GetExperiment(key).status();
  if (found.ok()) return NameTaken(key);
  if (!absl::IsNotFound(found)) return found;
  ASSIGN_OR_RETURN(Imported imported, FromWire(request));
  if (imported.actor.name().empty()) imported.actor = options_.actor;
  imported.namespace_uid = namespaces_.UidOf(key.ns);
  ASSIGN_OR_RETURN(const db::Batch batch, MakeBatch(key.ns, imported, options_.clock->Now()));
  const Status committed = store_->Commit(batch).status();
  if (absl::IsAborted(committed)) return NameTaken(key);  // in between
  RETURN_IF_ERROR(committed);
  v1::ImportReply reply;
  reply.mutable_notes()->Assign(imported.notes.begin(), imported.notes.end());
  return reply;
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

// The trial that the pass has given, else what the store says.
StatusOr<v1::AskReply> StoreClient::ReplyWith(std::optional<experiment::GivenTrial> given,
                                              const ExperimentKey& key, const std::string& caller) {
  if (!given) return FindAskReply(*store_, key, caller, controller_);
  v1::AskReply reply;
  *reply.mutable_trial() = std::move(given->trial);
  reply.set_attempt(given->attempt);
  reply.set_token(std::move(given->token));
  return reply;
}

// Where this process owns the experiment, its next pass hears of it, and nothing is stored but the
// trial; another owner is told by an intent.
StatusOr<v1::AskReply> StoreClient::AskOwner(const Owner& owner, const ExperimentKey& key,
                                             const std::string& caller) {
  if (owner.controller != nullptr) {
    auto told =
        owner.controller->Tell({.trial = {.experiment = key}, .next_for = caller}, kReportTimeout);
    // What is not known to be there may still come.
    if (absl::IsUnavailable(told.status())) return FindAskReply(*store_, key, caller, controller_);
    if (told.ok()) return ReplyWith(std::move(told->next), key, caller);
    if (!absl::IsFailedPrecondition(told.status())) return told.status();  // it was just lost
  }
  v1::Intent intent;
  intent.set_verb(v1::Intent::ASK);
  intent.set_caller(caller);
  RETURN_IF_ERROR(Send(key, intent));
  return FindAskReply(*store_, key, caller, controller_);
}

StatusOr<v1::AskReply> StoreClient::Ask(const v1::AskRequest& request) {
  const ExperimentKey key = FromWire(request.experiment());
  const std::string& caller = request.caller();
  RETURN_IF_ERROR(experiment::CheckCaller(caller));
  RETURN_IF_ERROR(namespaces_.CheckReadable(key));
  if (request.check_only()) return FindAskReply(*store_, key, caller, controller_);
  ASSIGN_OR_RETURN(const auto experiment, store_->GetExperiment(key));
  RETURN_IF_ERROR(experiment::CheckAsked(experiment.record));
  ASSIGN_OR_RETURN(int64_t revision, store_->Revision());
  ASSIGN_OR_RETURN(v1::AskReply reply, FindAskReply(*store_, key, caller, controller_));
  if (!reply.pending()) return reply;
  const absl::Duration deadline = options_.clock->Monotonic() + FromWire(request.patience());
  ASSIGN_OR_RETURN(const Owner owner, FindOwner(key));
  ASSIGN_OR_RETURN(reply, AskOwner(owner, key, caller));
  while (reply.pending() && options_.clock->Monotonic() < deadline) {
    ASSIGN_OR_RETURN(revision,
                     store_->AwaitChange(revision, deadline - options_.clock->Monotonic()));
    ASSIGN_OR_RETURN(reply, FindAskReply(*store_, key, caller, controller_));
  }
  return reply;
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

StatusOr<v1::TellReply> StoreClient::Tell(const v1::TellRequest& request) {
  const ExperimentKey key = ExperimentKeyOf(request.trial());
  const std::string& caller = request.next_for();
  if (!caller.empty()) RETURN_IF_ERROR(experiment::CheckCaller(caller));
  RETURN_IF_ERROR(namespaces_.CheckReadable(key));
  ASSIGN_OR_RETURN(const auto experiment, store_->GetExperiment(key));
  if (controller_ == nullptr && !experiment.record.spec().shirabe().ask_and_tell()) {
    return absl::FailedPreconditionError(
        absl::StrCat("experiment ", ToString(key),
                     " runs its trials itself: its programs report "
                     "through $SHIRABE_METRICS_FILE, or to the server that runs it"));
  }
  if (!caller.empty()) RETURN_IF_ERROR(experiment::CheckAsked(experiment.record));
  ASSIGN_OR_RETURN(const Owner owner, FindOwner(key));
  if (owner.controller == nullptr) {
    return absl::UnavailableError(absl::StrCat(Holder(key).value_or("another process"), " runs ",
                                               ToString(key), ": report it there"));
  }
  ASSIGN_OR_RETURN(auto told, owner.controller->Tell(FromWire(request), kReportTimeout));
  v1::TellReply reply;
  reply.set_stop(std::move(told.stop));
  reply.set_ignored(told.ignored);
  if (caller.empty()) return reply;
  // What was told is stored: that there is no answer to the rest does not take it back.
  auto next = ReplyWith(std::move(told.next), key, caller);
  if (next.ok()) *reply.mutable_next() = *std::move(next);
  return reply;
}

}  // namespace

StatusOr<std::unique_ptr<LocalClient>> LocalClient::Open(LocalOptions options) {
  const bool empty = options.read_only && IsDefaultStoreMissing(options.place);
  if (!options.read_only) trial::FileLayout(options.place.home).KeepPrivate();
  ASSIGN_OR_RETURN(auto store, db::Open(empty ? "memory:" : options.place.db, options.read_only));
  return std::make_unique<StoreClient>(std::move(store), std::move(options));
}

}  // namespace shirabe::client
