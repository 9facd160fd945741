#include "client/remote_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/timestamp.h"
#include "client/wire_format.h"
#include "proto/shirabe/v1/api.grpc.pb.h"

namespace shirabe::client {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(30);
constexpr absl::Duration kImportTimeout = absl::Minutes(5);
constexpr absl::Duration kRetryPeriod = absl::Seconds(10);
constexpr absl::Duration kDeadlineSlack =
    absl::Seconds(10);  // beyond what the server was asked to wait
constexpr int kMaxMessage = 64 << 20;
constexpr int64_t kSecondsPerPoll = 50;  // of a wait that has no end of its own

class RemoteClient : public Client {
 public:
  RemoteClient(RemoteOptions options, std::shared_ptr<grpc::Channel> channel)  // shared: gRPC's
      : options_(std::move(options)), stub_(v1::Shirabe::NewStub(channel)) {}

  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) override {
    return Get<v1::Experiment>(&v1::Shirabe::Stub::GetExperiment, ToWire(key));
  }
  StatusOr<std::vector<v1::Experiment>> ListExperiments(const std::string& ns) override {
    return List<v1::Experiment>(&v1::Shirabe::Stub::ListExperiments, ToWire(ExperimentKey{ns, ""}));
  }
  StatusOr<v1::Trial> GetTrial(const TrialKey& key) override {
    return Get<v1::Trial>(&v1::Shirabe::Stub::GetTrial, ToWire(key));
  }
  StatusOr<std::vector<v1::Trial>> ListTrials(const db::TrialQuery& query) override {
    return List<v1::Trial>(&v1::Shirabe::Stub::ListTrials, ToWire(query));
  }
  StatusOr<std::vector<v1::Attempt>> ListAttempts(const db::AttemptQuery& query) override {
    return List<v1::Attempt>(&v1::Shirabe::Stub::ListAttempts, ToWire(query));
  }
  StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const TrialKey& key) override {
    return List<v1::Checkpoint>(&v1::Shirabe::Stub::ListCheckpoints, ToWire(key));
  }
  StatusOr<std::vector<db::StoredObservation>> ListObservations(
      const db::ObservationQuery& query) override {
    ASSIGN_OR_RETURN(const auto blocks, List<v1::ObservationBlock>(
                                            &v1::Shirabe::Stub::ListObservations, ToWire(query)));
    std::vector<db::StoredObservation> rows;
    for (const v1::ObservationBlock& block : blocks) {
      for (const v1::ObservationRecord& record : block.rows()) rows.push_back(FromWire(record));
    }
    return rows;
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) override {
    return List<v1::Event>(&v1::Shirabe::Stub::ListEvents, ToWire(query));
  }

  StatusOr<int64_t> Revision() override { return AwaitChange(-1, absl::ZeroDuration()); }
  StatusOr<std::vector<db::Change>> Changes(int64_t after) override {
    v1::Revision request;
    request.set_revision(after);
    ASSIGN_OR_RETURN(const auto records,
                     List<v1::ChangeRecord>(&v1::Shirabe::Stub::ListChanges, request));
    std::vector<db::Change> changes;
    for (const v1::ChangeRecord& record : records) changes.push_back(FromWire(record));
    return changes;
  }
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    const absl::Duration most = std::min(timeout, absl::Seconds(kSecondsPerPoll));
    v1::AwaitChangeRequest request;
    request.set_after(after);
    *request.mutable_patience() = ToProto(most);
    ASSIGN_OR_RETURN(const v1::Revision reply,
                     Get<v1::Revision>(&v1::Shirabe::Stub::AwaitChange, request, most));
    return reply.revision();
  }
  StatusOr<std::string> Holder(const ExperimentKey& key) override {
    ASSIGN_OR_RETURN(const v1::Text text,
                     Get<v1::Text>(&v1::Shirabe::Stub::GetHolder, ToWire(key)));
    return text.text();
  }

  StatusOr<LogChunk> ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes) override {
    v1::ReadLogRequest request;
    *request.mutable_trial() = ToWire(key.trial);
    request.set_attempt(key.number);
    request.set_offset(offset);
    request.set_max_bytes(max_bytes);
    ASSIGN_OR_RETURN(const v1::LogChunk chunk,
                     Get<v1::LogChunk>(&v1::Shirabe::Stub::ReadLog, request));
    return FromWire(chunk);
  }
  // On another machine: the command that shows it.
  std::string LogLocation(const AttemptKey& key) override {
    return absl::StrCat("shirabe logs ", TrialName(key.trial), " --attempt ", key.number);
  }

  StatusOr<Candidates> Suggest(const v1::Experiment& experiment, int count) override {
    v1::SuggestRequest request;
    *request.mutable_experiment() = experiment;
    request.set_count(count);
    ASSIGN_OR_RETURN(const v1::SuggestReply reply,
                     Get<v1::SuggestReply>(&v1::Shirabe::Stub::Suggest, request));
    return FromWire(reply);
  }

  // Not made again by itself: where the answer was lost, a second try says "exists" of the first.
  StatusOr<experiment::Submitted> Submit(const v1::Experiment& experiment,
                                         const experiment::Precondition& precondition) override {
    v1::SubmitRequest request;
    *request.mutable_experiment() = experiment;
    request.set_generation(precondition.generation);
    request.set_absent(precondition.absent);
    request.set_present(precondition.present);
    v1::SubmitReply reply;
    RETURN_IF_ERROR(Once(&v1::Shirabe::Stub::SubmitExperiment, request, kCallTimeout, &reply));
    return experiment::Submitted{.created = reply.created(), .changed = reply.changed()};
  }
  // Large ones take the server a while, and the way there as well.
  StatusOr<std::vector<std::string>> Import(const std::string& ns,
                                            const Imported& imported) override {
    v1::ImportRequest request = ToWire(imported);
    request.set_namespace_(ns);
    v1::ImportReply reply;
    RETURN_IF_ERROR(Once(&v1::Shirabe::Stub::ImportExperiment, request, kImportTimeout, &reply));
    return std::vector<std::string>(reply.notes().begin(), reply.notes().end());
  }
  Status Send(const ExperimentKey& key, const v1::Intent& intent) override {
    v1::Intent request = intent;
    request.set_namespace_(key.ns);
    request.set_experiment(key.name);
    v1::Done done;
    return Once(&v1::Shirabe::Stub::SendIntent, request, kCallTimeout, &done);
  }
  Status Delete(const ExperimentKey& key, absl::Duration patience, const Wait& wait) override;
  StatusOr<Asked> Ask(const ExperimentKey& key, const std::string& caller,
                      absl::Duration patience) override {
    v1::AskRequest request;
    *request.mutable_experiment() = ToWire(key);
    request.set_caller(caller);
    *request.mutable_patience() = ToProto(patience);
    ASSIGN_OR_RETURN(const v1::AskReply reply,
                     Get<v1::AskReply>(&v1::Shirabe::Stub::Ask, request, patience));
    return FromWire(reply);
  }
  // Asking again, at once, changes nothing.
  StatusOr<Asked> FindAskReply(const ExperimentKey& key, const std::string& caller) override {
    return Ask(key, caller, absl::ZeroDuration());
  }
  StatusOr<experiment::ReportReply> Tell(const experiment::Report& report) override {
    ASSIGN_OR_RETURN(const v1::TellReply reply,
                     Get<v1::TellReply>(&v1::Shirabe::Stub::Tell, ToWire(report)));
    return experiment::ReportReply{.stop = reply.stop()};
  }

 private:
  template <class Request, class Reply>
  using Method = grpc::Status (v1::Shirabe::Stub::*)(grpc::ClientContext*, const Request&, Reply*);
  template <class Request, class Reply>
  using Stream = std::unique_ptr<grpc::ClientReader<Reply>> (v1::Shirabe::Stub::*)(
      grpc::ClientContext*, const Request&);

  void Prepare(grpc::ClientContext& context, absl::Duration timeout) const {
    context.set_deadline(absl::ToChronoTime(options_.clock->Now() + timeout));
    if (!options_.token.empty()) context.AddMetadata("authorization", "Bearer " + options_.token);
  }

  // Why a server may hang up before it was asked anything; it cannot say so itself.
  std::string Hint(const std::string& message) const {
    if (reached_ || options_.channel != nullptr || !absl::StrContains(message, "Socket closed")) {
      return "";
    }
    if (!options_.tls) return "; if it speaks TLS, write tls://" + options_.server;
    if (!options_.certificate.empty()) return "; it may not trust the certificate that we show";
    return "; if it asks its callers for a certificate, give one: shirabe config set-context NAME "
           "--client-certificate FILE --client-key FILE";
  }

  Status FromGrpc(const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    std::string message = status.error_message();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      message =
          absl::StrCat("cannot reach the server ", options_.server, ": ", message, Hint(message));
    } else if (absl::StrContains(message, "larger than max")) {  // gRPC's words
      message = absl::StrCat("the server takes no message of this size (", message,
                             "): send less at a time, or use the store itself, without --server");
    }
    return Status(static_cast<absl::StatusCode>(status.error_code()), message);
  }

  template <class Request, class Reply>
  Status Once(Method<Request, Reply> method, const Request& request, absl::Duration timeout,
              Reply* reply) {
    grpc::ClientContext context;
    Prepare(context, timeout);
    return FromGrpc((stub_.get()->*method)(&context, request, reply));
  }

  // For calls that change nothing when they are made twice.
  template <class Reply, class Request>
  StatusOr<Reply> Get(Method<Request, Reply> method, const Request& request,
                      absl::Duration wait = absl::ZeroDuration()) {
    Reply reply;
    RETURN_IF_ERROR(Persist(
        [&] { return Once(method, request, kCallTimeout + kDeadlineSlack + wait, &reply); }));
    return reply;
  }

  template <class Reply, class Request>
  StatusOr<std::vector<Reply>> List(Stream<Request, Reply> method, const Request& request) {
    std::vector<Reply> items;
    RETURN_IF_ERROR(Persist([&] {
      items.clear();
      grpc::ClientContext context;
      Prepare(context, kCallTimeout);
      const auto reader = (stub_.get()->*method)(&context, request);
      Reply item;
      while (reader->Read(&item)) items.push_back(std::move(item));
      return FromGrpc(reader->Finish());
    }));
    return items;
  }

  // Until it works, fails for another reason than a lost connection, or has been lost for long.
  template <class Call>
  Status Persist(const Call& call) {
    const absl::Duration deadline =
        options_.clock->Monotonic() + (reached_ ? kRetryPeriod : absl::ZeroDuration());
    for (absl::Duration pause = absl::Milliseconds(100);; pause = 2 * pause) {
      const Status status = call();
      if (!absl::IsUnavailable(status)) {
        reached_ = true;
        return status;
      }
      if (options_.clock->Monotonic() + pause > deadline) return status;
      Pause(pause);
    }
  }

  const RemoteOptions options_;
  const std::unique_ptr<v1::Shirabe::Stub> stub_;
  std::atomic<bool> reached_ = false;  // a server that was never there is not waited for
};

// In pieces that an interrupt can come between.
Status RemoteClient::Delete(const ExperimentKey& key, absl::Duration patience, const Wait& wait) {
  const absl::Duration deadline = options_.clock->Monotonic() + patience;
  for (bool asked = false;;) {
    const absl::Duration left = deadline - options_.clock->Monotonic();
    v1::DeleteRequest request;
    *request.mutable_experiment() = ToWire(key);
    *request.mutable_patience() =
        ToProto(std::clamp(left, absl::ZeroDuration(), absl::Milliseconds(500)));
    v1::Done done;
    const Status status = Once(&v1::Shirabe::Stub::DeleteExperiment, request, kCallTimeout, &done);
    if (absl::IsNotFound(status) && asked) return absl::OkStatus();
    if (!absl::IsDeadlineExceeded(status) || left <= absl::ZeroDuration()) return status;
    asked = true;
    if (!wait(absl::ZeroDuration())) {
      return absl::CancelledError("interrupted; the deletion has been asked for");
    }
  }
}

Status CheckAddress(const std::string& server) {
  const size_t colon = server.rfind(':');
  int port = 0;
  const bool good = colon != 0 && colon != std::string::npos &&
                    absl::SimpleAtoi(server.substr(colon + 1), &port) && port > 0 && port < 65536;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError("the server \"" + server +
                                    "\" is not an address: write HOST:PORT (--server)");
}

}  // namespace

StatusOr<std::unique_ptr<Client>> Connect(const RemoteOptions& options) {
  if (options.channel != nullptr) return std::make_unique<RemoteClient>(options, options.channel);
  RETURN_IF_ERROR(CheckAddress(options.server));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessage);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const grpc::SslCredentialsOptions tls{options.ca, options.key, options.certificate};
  auto credentials = options.tls ? grpc::SslCredentials(tls) : grpc::InsecureChannelCredentials();
  auto channel = grpc::CreateCustomChannel(options.server, std::move(credentials), arguments);
  return std::make_unique<RemoteClient>(options, std::move(channel));
}

}  // namespace shirabe::client
