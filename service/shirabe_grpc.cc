#include "service/shirabe_grpc.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "base/address.h"
#include "base/cancellation.h"
#include "client/wire.h"
#include "proto/shirabe/v1/api.grpc.pb.h"
#include "service/rights.h"
#include "trial/sha256.h"

namespace shirabe::service {
namespace {

using client::FromWire;
using client::ToWire;
using grpc::ServerContext;
using grpc::ServerWriter;

constexpr absl::Duration kLongestWait = absl::Minutes(1);
constexpr absl::Duration kPoll = absl::Milliseconds(250);  // for a caller who has gone
constexpr int64_t kPage = 256;                             // records in memory at once
constexpr int kBlock = 1000;                               // observations in a message
constexpr int64_t kMostLog = 1 << 20;
constexpr int kMostSuggestions = 10'000;

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), Message(status)};
}

class ShirabeService : public v1::Shirabe::Service {
 public:
  explicit ShirabeService(const Door& door) : door_(door) {}

  using Context = ServerContext*;

  grpc::Status GetExperiment(Context context, const v1::ExperimentRef* request,
                             v1::Experiment* reply) override {
    return Fetch(context, reply,
                 [&](client::Client& client) { return client.GetExperiment(FromWire(*request)); });
  }
  grpc::Status ListExperiments(Context context, const v1::ExperimentRef* request,
                               ServerWriter<v1::Experiment>* writer) override {
    return Stream(context, writer, [&](client::Client& client) {
      return client.ListExperiments(request->namespace_());
    });
  }
  grpc::Status SubmitExperiment(Context context, const v1::SubmitRequest* request,
                                v1::SubmitReply* reply) override {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const auto submitted,
                       client.Submit(request->experiment(), request->generation()));
      reply->set_created(submitted.created);
      reply->set_changed(submitted.changed);
      return absl::OkStatus();
    });
  }
  grpc::Status ImportExperiment(Context context, const v1::ImportRequest* request,
                                v1::ImportReply* reply) override {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const client::Imported imported, FromWire(*request));
      ASSIGN_OR_RETURN(const auto notes, client.Import(request->namespace_(), imported));
      for (const std::string& note : notes) reply->add_notes(note);
      return absl::OkStatus();
    });
  }
  grpc::Status SendIntent(Context context, const v1::Intent* request, v1::Done*) override {
    return Serve(context, [&](client::Client& client) {
      return client.Send({request->namespace_(), request->experiment()}, *request);
    });
  }
  grpc::Status DeleteExperiment(Context context, const v1::DeleteRequest* request,
                                v1::Done*) override {
    return Serve(context, [&](client::Client& client) {
      return client.Delete(FromWire(request->experiment()), Patience(request->patience()),
                           [&](absl::Duration time) { return Wait(context, time); });
    });
  }

  grpc::Status GetTrial(Context context, const v1::TrialRef* request, v1::Trial* reply) override {
    return Fetch(context, reply,
                 [&](client::Client& client) { return client.GetTrial(FromWire(*request)); });
  }
  grpc::Status ListTrials(Context context, const v1::ListTrialsRequest* request,
                          ServerWriter<v1::Trial>* writer) override;
  grpc::Status ListAttempts(Context context, const v1::ListAttemptsRequest* request,
                            ServerWriter<v1::Attempt>* writer) override {
    return Stream(context, writer,
                  [&](client::Client& client) { return client.ListAttempts(FromWire(*request)); });
  }
  grpc::Status ListCheckpoints(Context context, const v1::TrialRef* request,
                               ServerWriter<v1::Checkpoint>* writer) override {
    return Stream(context, writer, [&](client::Client& client) {
      return client.ListCheckpoints(FromWire(*request));
    });
  }
  grpc::Status ListObservations(Context context, const v1::ListObservationsRequest* request,
                                ServerWriter<v1::ObservationBlock>* writer) override;
  grpc::Status ListEvents(Context context, const v1::ListEventsRequest* request,
                          ServerWriter<v1::Event>* writer) override {
    return Stream(context, writer,
                  [&](client::Client& client) { return client.ListEvents(FromWire(*request)); });
  }

  grpc::Status AwaitChange(Context context, const v1::AwaitChangeRequest* request,
                           v1::Revision* reply) override;
  grpc::Status ListChanges(Context context, const v1::Revision* request,
                           ServerWriter<v1::ChangeRecord>* writer) override {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const auto changes, client.Changes(request->revision()));
      for (const db::Change& change : changes) {
        if (!writer->Write(ToWire(change))) return absl::CancelledError("the caller has gone");
      }
      return absl::OkStatus();
    });
  }
  grpc::Status GetHolder(Context context, const v1::ExperimentRef* request,
                         v1::Text* reply) override {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(*reply->mutable_text(), client.Holder(FromWire(*request)));
      return absl::OkStatus();
    });
  }
  grpc::Status ReadLog(Context context, const v1::ReadLogRequest* request,
                       v1::LogChunk* reply) override {
    return Serve(context, [&](client::Client& client) -> Status {
      if (request->offset() < 0) return absl::InvalidArgumentError("offset must be at least 0");
      const AttemptKey key{FromWire(request->trial()), request->attempt()};
      const int64_t most = std::clamp<int64_t>(request->max_bytes(), 1, kMostLog);
      ASSIGN_OR_RETURN(const auto chunk, client.ReadLog(key, request->offset(), most));
      *reply = ToWire(chunk);
      reply->set_place(client.LogPlace(key));
      return absl::OkStatus();
    });
  }

  grpc::Status Suggest(Context context, const v1::SuggestRequest* request,
                       v1::SuggestReply* reply) override {
    return Serve(context, [&](client::Client& client) -> Status {
      if (request->count() < 0 || request->count() > kMostSuggestions) {
        return absl::InvalidArgumentError("count must be from 0 to " +
                                          std::to_string(kMostSuggestions) + ", not " +
                                          std::to_string(request->count()));
      }
      const CancelScope scope([context] { return context->IsCancelled(); });
      ASSIGN_OR_RETURN(const auto points, client.Suggest(request->experiment(), request->count()));
      *reply = ToWire(points);
      return absl::OkStatus();
    });
  }
  grpc::Status Ask(Context context, const v1::AskRequest* request, v1::AskReply* reply) override {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const auto asked,
                       client.Ask(FromWire(request->experiment()), request->caller(),
                                  Patience(request->patience())));
      *reply = ToWire(asked);
      return absl::OkStatus();
    });
  }
  grpc::Status Tell(Context context, const v1::TellRequest* request,
                    v1::TellReply* reply) override {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const auto reported, client.Tell(FromWire(*request)));
      reply->set_stop(reported.stop);
      return absl::OkStatus();
    });
  }

 private:
  // Every call begins here: who is it, and what may he do?
  template <class Call>
  grpc::Status Serve(Context context, const Call& call) {
    const auto principal = CallerOf(*context, door_);
    if (!principal.ok()) return ToGrpc(principal.status());
    const auto client = Guard(*door_.client, *principal, door_.rights);
    return ToGrpc(call(*client));
  }

  template <class Record, class Get>
  grpc::Status Fetch(Context context, Record* reply, const Get& get) {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(*reply, get(client));
      return absl::OkStatus();
    });
  }

  template <class Record, class List>
  grpc::Status Stream(Context context, ServerWriter<Record>* writer, const List& list) {
    return Serve(context, [&](client::Client& client) -> Status {
      ASSIGN_OR_RETURN(const auto records, list(client));
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

  static absl::Duration Patience(const google::protobuf::Duration& asked) {
    return std::min(FromWire(asked), kLongestWait);
  }
  bool Wait(Context context, absl::Duration time) const {
    Pause(time);
    return !context->IsCancelled() && !*door_.closing;
  }

  const Door door_;
};

grpc::Status ShirabeService::ListTrials(Context context, const v1::ListTrialsRequest* request,
                                        ServerWriter<v1::Trial>* writer) {
  return Serve(context, [&](client::Client& client) -> Status {
    db::TrialQuery query = FromWire(*request);
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
  return Serve(context, [&](client::Client& client) -> Status {
    ASSIGN_OR_RETURN(const auto rows, client.ListObservations(FromWire(*request)));
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

// In pieces, so that a caller who has gone, or the end of the server, is noticed.
grpc::Status ShirabeService::AwaitChange(Context context, const v1::AwaitChangeRequest* request,
                                         v1::Revision* reply) {
  return Serve(context, [&](client::Client& client) -> Status {
    const absl::Duration deadline = door_.clock->Monotonic() + Patience(request->patience());
    for (;;) {
      const absl::Duration left = deadline - door_.clock->Monotonic();
      const absl::Duration piece = std::clamp(left, absl::ZeroDuration(), kPoll);
      ASSIGN_OR_RETURN(const int64_t revision, client.AwaitChange(request->after(), piece));
      reply->set_revision(revision);
      if (revision > request->after() || left <= kPoll) return absl::OkStatus();
      if (context->IsCancelled() || *door_.closing) return absl::OkStatus();
    }
  });
}

}  // namespace

namespace {

// The header of that name; "" = none.
std::string Shown(const ServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

}  // namespace

Status CheckCaller(const ServerContext& context, const std::string& method, const Door& door) {
  const Right::For whom = RightOf(method).whom;
  if (whom == Right::For::kAnyone || whom == Right::For::kPods) return absl::OkStatus();
  const auto principal = door.tokens->Check(Shown(context));
  if (principal.ok()) return CheckDoor(*principal, method);
  if (door.limiter != nullptr) RETURN_IF_ERROR(door.limiter->Take(HostOf(context.peer())));
  return principal.status();
}

StatusOr<Principal> CallerOf(const ServerContext& context, const Door& door) {
  const std::string shown = Shown(context);
  auto principal = door.tokens->Check(shown);
  if (principal.ok()) principal->door = "grpc";
  if (door.limiter == nullptr) return principal;
  // What is not known may be any text: those are told apart by their address.
  const bool known = principal.ok() && principal->role != Principal::Role::kTrial;
  const std::string peer = HostOf(context.peer());
  RETURN_IF_ERROR(door.limiter->Take(known && !shown.empty() ? trial::HexSha256(shown) : peer));
  return principal;
}

std::unique_ptr<grpc::Service> MakeShirabeService(const Door& door) {
  return std::make_unique<ShirabeService>(door);
}

}  // namespace shirabe::service
