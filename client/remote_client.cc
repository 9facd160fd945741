#include "client/remote_client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/timestamp.h"
#include "proto/shirabe/v1/rights.pb.h"

namespace shirabe::client {
namespace {

using google::protobuf::MessageFactory;
using google::protobuf::MessageLite;
using google::protobuf::MethodOptions;
using grpc::internal::RpcMethod;

constexpr absl::Duration kCallTimeout = absl::Seconds(30);
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Milliseconds(1600);
constexpr absl::Duration kDeadlineSlack =
    absl::Seconds(10);  // beyond what the server was asked to wait
constexpr int kMaxMessage = 64 << 20;

// What the request asks the server to wait.
absl::Duration PatienceOf(const google::protobuf::Message& request) {
  const auto* field = request.GetDescriptor()->FindFieldByName("patience");
  if (field == nullptr) return absl::ZeroDuration();
  return FromProto(static_cast<const google::protobuf::Duration&>(
      request.GetReflection()->GetMessage(request, field)));
}

absl::Duration TimeoutOf(const Method& method, const google::protobuf::Message& request) {
  const int32_t own = method.options().GetExtension(v1::timeout_seconds);
  return (own > 0 ? absl::Seconds(own) : kCallTimeout) + kDeadlineSlack + PatienceOf(request);
}

class RemoteClient : public Client {
 public:
  RemoteClient(RemoteOptions options, std::shared_ptr<grpc::Channel> channel)  // shared: gRPC's
      : options_(std::move(options)), channel_(std::move(channel)) {}

  // Calls that change something are made once: where the answer was lost, a second try would say
  // "exists" of the first.
  Status Call(const Method& method, const google::protobuf::Message& request,
              const Sink& sink) override {
    const auto once = [&] { return CallOnce(method, request, sink); };
    const bool again = method.options().idempotency_level() != MethodOptions::IDEMPOTENCY_UNKNOWN;
    return again ? Persist(once) : once();
  }
  // On another machine: the command that shows it.
  std::string LogLocation(const AttemptKey& key) override {
    return absl::StrCat("shirabe logs ", TrialName(key.trial), " --attempt ", key.number);
  }
  Status DeleteExperiment(const v1::DeleteRequest& request, const Wait& wait) override;

 private:
  void Prepare(grpc::ClientContext& context, absl::Duration timeout) const {
    context.set_deadline(absl::ToChronoTime(options_.clock->Now() + timeout));
    if (!options_.token.empty()) context.AddMetadata("authorization", "Bearer " + options_.token);
  }

  // Why a server may hang up before it was asked anything; it cannot say so itself.
  std::string Hint(const std::string& message) const {
    const bool hung_up = absl::StrContains(message, "Socket closed") ||
                         absl::StrContains(message, "Connection reset");
    if (reached_ || options_.channel != nullptr || !hung_up) return "";
    if (!options_.tls) return "; if it speaks TLS, write tls://" + options_.server;
    if (!options_.certificate.empty()) return "; it may not trust the certificate that we show";
    return "; if it asks its callers for a certificate, give one: shirabe config set-context NAME "
           "--client-certificate FILE --client-key FILE";
  }

  Status FromGrpc(const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    std::string message = status.error_message();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      message = status.error_details().empty()  // then gRPC says so, not the server
                    ? absl::StrCat("cannot reach the server ", options_.server, ": ", message,
                                   Hint(message))
                    : absl::StrCat("the server ", options_.server, " answers: ", message);
    } else if (absl::StrContains(message, "larger than max")) {  // gRPC's words
      message = absl::StrCat("the server takes no message of this size (", message,
                             "): send less at a time, or use the store itself, without --server");
    }
    return Status(static_cast<absl::StatusCode>(status.error_code()), message);
  }

  // What is sent on by `sink` cannot be taken back: of a stream only what came whole is.
  Status CallOnce(const Method& method, const google::protobuf::Message& request,
                  const Sink& sink) {
    grpc::ClientContext context;
    Prepare(context, TimeoutOf(method, request));
    const std::string path = absl::StrCat("/", method.service()->full_name(), "/", method.name());
    const std::unique_ptr<google::protobuf::Message> prototype(
        MessageFactory::generated_factory()->GetPrototype(method.output_type())->New());
    if (!method.server_streaming()) {
      const RpcMethod rpc(path.c_str(), RpcMethod::NORMAL_RPC, channel_);
      RETURN_IF_ERROR(FromGrpc(grpc::internal::BlockingUnaryCall<MessageLite, MessageLite>(
          channel_.get(), rpc, &context, request, prototype.get())));
      return sink(*prototype);
    }
    const RpcMethod rpc(path.c_str(), RpcMethod::SERVER_STREAMING, channel_);
    const std::unique_ptr<grpc::ClientReader<MessageLite>> reader(
        grpc::internal::ClientReaderFactory<MessageLite>::Create<MessageLite>(channel_.get(), rpc,
                                                                              &context, request));
    std::vector<std::unique_ptr<google::protobuf::Message>> replies;
    for (;;) {
      std::unique_ptr<google::protobuf::Message> reply(prototype->New());
      if (!reader->Read(reply.get())) break;
      replies.push_back(std::move(reply));
    }
    RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    for (const auto& reply : replies) RETURN_IF_ERROR(sink(*reply));
    return absl::OkStatus();
  }

  // Until it works, fails for another reason than a lost connection, or has been lost for long.
  template <class Call>
  Status Persist(const Call& call) {
    Status status = call();
    if (absl::IsUnavailable(status) && reached_) status = CallAgain(call, std::move(status));
    if (!absl::IsUnavailable(status)) reached_ = true;
    return status;
  }

  template <class Call>
  Status CallAgain(const Call& call, Status status) {
    const absl::Duration deadline = options_.clock->Monotonic() + options_.retry_period;
    auto on_lost = options_.on_lost;
    for (absl::Duration pause = kFirstPause; absl::IsUnavailable(status);
         pause = std::min(2 * pause, kLongestPause)) {
      if (options_.clock->Monotonic() + pause > deadline) break;
      // What is over in a moment need not be said, and the rest only once.
      if (pause == kLongestPause && on_lost) std::exchange(on_lost, nullptr)(Message(status));
      Pause(pause);
      status = call();
    }
    return status;
  }

  const RemoteOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;  // shared: gRPC's own
  std::atomic<bool> reached_ = false;             // a server that was never there is not waited for
};

// In pieces that an interrupt can come between.
Status RemoteClient::DeleteExperiment(const v1::DeleteRequest& request, const Wait& wait) {
  const absl::Duration deadline = options_.clock->Monotonic() + FromProto(request.patience());
  v1::DeleteRequest piece = request;
  for (bool asked = false;;) {
    const absl::Duration left = deadline - options_.clock->Monotonic();
    *piece.mutable_patience() =
        ToProto(std::clamp(left, absl::ZeroDuration(), absl::Milliseconds(500)));
    const Status status = Get<v1::Done>("DeleteExperiment", piece).status();
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
  if (absl::StrContains(server, "://")) {
    return absl::InvalidArgumentError("the server \"" + server +
                                      "\" is a URL: write HOST:PORT, of its --grpc (--server)");
  }
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
