#include "service/grpc/shirabe_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/address.h"
#include "base/cancellation.h"
#include "base/names.h"
#include "base/sha256.h"
#include "base/text/message_check.h"
#include "client/wire_format.h"
#include "experiment/conditions.h"
#include "proto/shirabe/v1/api.grpc.pb.h"
#include "service/common/authorization.h"
#include "service/common/change_hub.h"
#include "service/common/long_polls.h"
#include "service/common/suggestion_scheduler.h"
#include "service/grpc/grpc_caller.h"
#include "service/grpc/grpc_long_poll.h"

namespace shirabe::service {
namespace {

using client::FromWire;
using client::ToWire;
using grpc::ServerContext;
using grpc::ServerWriter;

constexpr absl::Duration kMaxWait = absl::Minutes(1);
constexpr int64_t kPage = 256;  // records in memory at once
constexpr int kBlock = 1000;    // observations in a message
constexpr int64_t kMaxLogBytes = 1 << 20;
constexpr int kMaxSuggestions = 10'000;

absl::Duration WaitTimeout(const google::protobuf::Duration& asked) {
  return std::clamp(FromWire(asked), absl::ZeroDuration(), kMaxWait);
}

// ---- calls that wait ---------------------------------------------------------------------------

class AwaitChangeCall : public WaitingCall {
 public:
  AwaitChangeCall(ChangeHub* hub, const v1::AwaitChangeRequest& request, v1::Revision* reply)
      : hub_(hub), after_(request.after()), reply_(reply) {
    valid = CheckMessage(request);
    patience = WaitTimeout(request.patience());
  }

  std::optional<Status> Begin(std::unique_ptr<client::Client> client) override {
    const auto revision = client->AwaitChange(after_, absl::ZeroDuration());
    if (!revision.ok()) return revision.status();
    reply_->set_revision(*revision);
    if (*revision > after_ || patience == absl::ZeroDuration()) return absl::OkStatus();
    return std::nullopt;
  }
  std::optional<Status> TryAnswer(bool last) override {
    reply_->set_revision(std::max(reply_->revision(), hub_->revision()));
    if (last || reply_->revision() > after_) return absl::OkStatus();
    return std::nullopt;
  }

 private:
  ChangeHub* const hub_;
  const int64_t after_;
  v1::Revision* const reply_;
};

class AskCall : public WaitingCall {
 public:
  AskCall(const v1::AskRequest& request, v1::AskReply* reply)
      : caller_(request.caller()), reply_(reply) {
    valid = CheckMessage(request);
    experiment = {request.experiment().namespace_(), request.experiment().name()};
    patience = WaitTimeout(request.patience());
  }

  std::optional<Status> Begin(std::unique_ptr<client::Client> client) override {
    if (const Status valid = ValidateKey(experiment); !valid.ok()) return valid;
    ask_.emplace(std::move(client), experiment, caller_);
    const auto asked = ask_->Begin();
    if (asked.ok() && asked->pending && patience > absl::ZeroDuration()) return std::nullopt;
    return Answer(asked);
  }
  std::optional<Status> TryAnswer(bool last) override {
    const auto asked = ask_->TryAnswer(last);
    return asked ? std::optional(Answer(*asked)) : std::nullopt;
  }

 private:
  Status Answer(const StatusOr<client::Asked>& asked) {
    if (asked.ok()) *reply_ = ToWire(*asked);
    return asked.status();
  }

  const std::string caller_;
  v1::AskReply* const reply_;
  std::optional<PendingAskCheck> ask_;
};

class DeleteCall : public WaitingCall {
 public:
  explicit DeleteCall(const v1::DeleteRequest& request) {
    valid = CheckMessage(request);
    experiment = {request.experiment().namespace_(), request.experiment().name()};
    patience = WaitTimeout(request.patience());
    poll = kDeletionPoll;
  }

  std::optional<Status> Begin(std::unique_ptr<client::Client> client) override {
    if (const Status valid = ValidateKey(experiment); !valid.ok()) return valid;
    deletion_.emplace(std::move(client), experiment);
    Status deleted = deletion_->Begin();
    const bool under_way = absl::IsDeadlineExceeded(deleted);
    if (under_way && patience > absl::ZeroDuration()) return std::nullopt;
    return deleted;
  }
  std::optional<Status> TryAnswer(bool last) override { return deletion_->TryAnswer(last); }

 private:
  std::optional<DeletionCheck> deletion_;
};

// ---- the service -------------------------------------------------------------------------------

// Those three are written for gRPC's callbacks, the others for a thread each.
using Base = v1::Shirabe::WithCallbackMethod_AwaitChange<v1::Shirabe::WithCallbackMethod_Ask<
    v1::Shirabe::WithCallbackMethod_DeleteExperiment<v1::Shirabe::Service>>>;

class ShirabeService : public Base {
 public:
  explicit ShirabeService(const ServiceContext& service_context)
      : service_context_(service_context) {}

  using Context = ServerContext*;
  using Waiting = grpc::ServerUnaryReactor*;
  using WaitingContext = grpc::CallbackServerContext*;

  grpc::Status GetExperiment(Context context, const v1::ExperimentRef* request,
                             v1::Experiment* reply) override {
    return Fetch(context, *request, reply, &client::Client::GetExperiment);
  }
  grpc::Status ListExperiments(Context context, const v1::ExperimentRef* request,
                               ServerWriter<v1::Experiment>* writer) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const std::string ns, client::NamespaceFromWire(request->namespace_()));
      ASSIGN_OR_RETURN(const auto experiments, client.ListExperiments(ns));
      return WriteAll(experiments, writer);
    });
  }
  grpc::Status SubmitExperiment(Context context, const v1::SubmitRequest* request,
                                v1::SubmitReply* reply) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const auto submitted,
                       client.Submit(request->experiment(), {.absent = request->absent(),
                                                             .present = request->present(),
                                                             .generation = request->generation()}));
      reply->set_created(submitted.created);
      reply->set_changed(submitted.changed);
      return absl::OkStatus();
    });
  }
  grpc::Status ImportExperiment(Context context, const v1::ImportRequest* request,
                                v1::ImportReply* reply) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const client::Imported imported, FromWire(*request));
      ASSIGN_OR_RETURN(const auto notes, client.Import(request->namespace_(), imported));
      for (const std::string& note : notes) reply->add_notes(note);
      return absl::OkStatus();
    });
  }
  grpc::Status SendIntent(Context context, const v1::Intent* request, v1::Done*) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const ExperimentKey key, FromWire(*request));
      return client.Send(key, *request);
    });
  }
  Waiting DeleteExperiment(WaitingContext context, const v1::DeleteRequest* request,
                           v1::Done*) override {
    return StartWaiting(context, service_context_, std::make_unique<DeleteCall>(*request));
  }

  grpc::Status GetTrial(Context context, const v1::TrialRef* request, v1::Trial* reply) override {
    return Fetch(context, *request, reply, &client::Client::GetTrial);
  }
  grpc::Status ListTrials(Context context, const v1::ListTrialsRequest* request,
                          ServerWriter<v1::Trial>* writer) override;
  grpc::Status ListAttempts(Context context, const v1::ListAttemptsRequest* request,
                            ServerWriter<v1::Attempt>* writer) override {
    return Stream(context, *request, writer, &client::Client::ListAttempts);
  }
  grpc::Status ListCheckpoints(Context context, const v1::TrialRef* request,
                               ServerWriter<v1::Checkpoint>* writer) override {
    return Stream(context, *request, writer, &client::Client::ListCheckpoints);
  }
  grpc::Status ListObservations(Context context, const v1::ListObservationsRequest* request,
                                ServerWriter<v1::ObservationBlock>* writer) override;
  grpc::Status ListEvents(Context context, const v1::ListEventsRequest* request,
                          ServerWriter<v1::Event>* writer) override {
    return Stream(context, *request, writer, &client::Client::ListEvents);
  }

  Waiting AwaitChange(WaitingContext context, const v1::AwaitChangeRequest* request,
                      v1::Revision* reply) override {
    return StartWaiting(context, service_context_,
                        std::make_unique<AwaitChangeCall>(service_context_.hub, *request, reply));
  }
  grpc::Status ListChanges(Context context, const v1::Revision* request,
                           ServerWriter<v1::ChangeRecord>* writer) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const auto changes, client.Changes(request->revision()));
      for (const db::Change& change : changes) {
        if (!writer->Write(ToWire(change))) return absl::CancelledError("the caller has gone");
      }
      return absl::OkStatus();
    });
  }
  grpc::Status GetHolder(Context context, const v1::ExperimentRef* request,
                         v1::Text* reply) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const ExperimentKey key, FromWire(*request));
      ASSIGN_OR_RETURN(*reply->mutable_text(), client.Holder(key));
      return absl::OkStatus();
    });
  }
  grpc::Status ReadLog(Context context, const v1::ReadLogRequest* request,
                       v1::LogChunk* reply) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      if (request->offset() < 0) return absl::InvalidArgumentError("offset must be at least 0");
      ASSIGN_OR_RETURN(const AttemptKey key, FromWire(*request));
      const int64_t most = std::clamp<int64_t>(request->max_bytes(), 1, kMaxLogBytes);
      ASSIGN_OR_RETURN(const auto chunk, client.ReadLog(key, request->offset(), most));
      *reply = ToWire(chunk);
      reply->set_place(client.LogLocation(key));
      return absl::OkStatus();
    });
  }

  grpc::Status Suggest(Context context, const v1::SuggestRequest* request,
                       v1::SuggestReply* reply) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      if (request->count() < 0 || request->count() > kMaxSuggestions) {
        return absl::InvalidArgumentError("count must be from 0 to " +
                                          std::to_string(kMaxSuggestions) + ", not " +
                                          std::to_string(request->count()));
      }
      RETURN_IF_ERROR(ValidateKey(experiment::KeyOf(request->experiment())));
      const CancelScope scope([context] { return context->IsCancelled(); });
      ASSIGN_OR_RETURN(const auto points, client.Suggest(request->experiment(), request->count()));
      *reply = ToWire(points);
      return absl::OkStatus();
    });
  }
  Waiting Ask(WaitingContext context, const v1::AskRequest* request, v1::AskReply* reply) override {
    return StartWaiting(context, service_context_, std::make_unique<AskCall>(*request, reply));
  }
  grpc::Status Tell(Context context, const v1::TellRequest* request,
                    v1::TellReply* reply) override {
    return Serve(context, *request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const experiment::Report report, FromWire(*request));
      ASSIGN_OR_RETURN(const auto reported, client.Tell(report));
      reply->set_stop(reported.stop);
      return absl::OkStatus();
    });
  }

 private:
  // Every call begins here: who is it, what may they do, and is it a message that can be believed?
  template <class Call>
  grpc::Status Serve(Context context, const google::protobuf::Message& request, const Call& call) {
    const auto principal = CallerOf(*context, service_context_);
    if (!principal.ok()) return ToGrpc(principal.status());
    const auto share =
        Quota::Acquire(&service_context_.quotas->calls, CallerId(*context, *principal));
    if (!share.ok()) return ToGrpc(share.status());
    const Status good = CheckMessage(request);
    if (!good.ok()) return ToGrpc(good);
    const auto client = Guard(*service_context_.client, *principal, service_context_.rights);
    return ToGrpc(call(*client));
  }

  // The record, or all records, of a key or a query that the request carries.
  template <class Request, class Record, class Key>
  grpc::Status Fetch(Context context, const Request& request, Record* reply,
                     StatusOr<Record> (client::Client::*get)(const Key&)) {
    return Serve(context, request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const Key key, FromWire(request));
      ASSIGN_OR_RETURN(*reply, (client.*get)(key));
      return absl::OkStatus();
    });
  }
  template <class Request, class Record, class Query>
  grpc::Status Stream(Context context, const Request& request, ServerWriter<Record>* writer,
                      StatusOr<std::vector<Record>> (client::Client::*list)(const Query&)) {
    return Serve(context, request, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const Query query, FromWire(request));
      ASSIGN_OR_RETURN(const auto records, (client.*list)(query));
      return WriteAll(records, writer);
    });
  }

  template <class Record>
  static Status WriteAll(const std::vector<Record>& records, ServerWriter<Record>* writer) {
    for (const Record& record : records) {
      if (!writer->Write(record)) return absl::CancelledError("the caller has gone");
    }
    return absl::OkStatus();
  }

  const ServiceContext service_context_;
};

grpc::Status ShirabeService::ListTrials(Context context, const v1::ListTrialsRequest* request,
                                        ServerWriter<v1::Trial>* writer) {
  return Serve(context, *request, [&](client::Client& client) -> Status {
    ASSIGN_OR_RETURN(db::TrialQuery query, FromWire(*request));
    for (int64_t left = query.limit; left != 0;) {
      query.limit = left < 0 ? kPage : std::min(left, kPage);
      ASSIGN_OR_RETURN(const auto page, client.ListTrials(query));
      RETURN_IF_ERROR(WriteAll(page, writer));
      if (static_cast<int64_t>(page.size()) < query.limit) break;
      query.after_number = page.back().number();
      if (left > 0) left -= static_cast<int64_t>(page.size());
    }
    return absl::OkStatus();
  });
}

grpc::Status ShirabeService::ListObservations(Context context,
                                              const v1::ListObservationsRequest* request,
                                              ServerWriter<v1::ObservationBlock>* writer) {
  return Serve(context, *request, [&](client::Client& client) -> Status {
    ASSIGN_OR_RETURN(const db::ObservationQuery query, FromWire(*request));
    ASSIGN_OR_RETURN(const auto rows, client.ListObservations(query));
    for (size_t begin = 0; begin < rows.size(); begin += kBlock) {
      v1::ObservationBlock block;
      for (size_t i = begin; i < std::min(rows.size(), begin + kBlock); ++i) {
        *block.add_rows() = ToWire(rows[i]);
      }
      if (!writer->Write(block)) return absl::CancelledError("the caller has gone");
    }
    return absl::OkStatus();
  });
}

}  // namespace

const std::set<std::string>& WaitingMethods() {
  static const std::set<std::string> methods = {"AwaitChange", "Ask", "DeleteExperiment"};
  return methods;
}

std::unique_ptr<grpc::Service> MakeShirabeService(const ServiceContext& service_context) {
  return std::make_unique<ShirabeService>(service_context);
}

}  // namespace shirabe::service
