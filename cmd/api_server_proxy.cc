#include "cmd/api_server_proxy.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "base/names.h"
#include "base/text/grpc_web_frames.h"
#include "base/text/json_text.h"
#include "cmd/server_identity.h"
#include "kube/api_errors.h"
#include "kube/resource_path.h"
#include "kube/transport.h"
#include "service/http/grpc_web.h"

namespace shirabe::cmd {
namespace {

constexpr char kAdmin[] = "shirabe-admin";
constexpr char kAccount[] = "shirabe";
constexpr int kSeconds = 600;  // the least that a cluster grants
constexpr absl::Duration kUse = absl::Minutes(8);

bool IsMissing(const Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsNotFound(status);
}

}  // namespace

StatusOr<std::string> ClusterToken::Make(const std::string& ns, const std::string& account) {
  const std::string what = absl::StrCat("create a token of serviceaccount ", ns, "/", account);
  const kube::Json request = {
      {"apiVersion", "authentication.k8s.io/v1"},
      {"kind", "TokenRequest"},
      {"spec", {{"audiences", kube::Json::array({kAudience})}, {"expirationSeconds", kSeconds}}}};
  const kube::Resource accounts{"", "v1", "serviceaccounts", "ServiceAccount"};
  auto reply = transport_->Call({.method = "POST",
                                 .target = kube::PathOf(accounts, ns, account, "token"),
                                 .content_type = "application/json",
                                 .body = kube::Dump(request)},
                                kube::Idempotency::kIdempotent);
  RETURN_IF_ERROR(Prefix(what, reply.status()));
  if (reply->answer.status / 100 != 2) return kube::ToStatus(what, reply->answer);
  const kube::Json made = ParseServerJson(reply->answer.body);
  std::string token = Text(made, {"status", "token"});
  if (token.empty()) return absl::UnavailableError(what + ": the server's answer has no token");
  return token;
}

Status ClusterToken::NoShirabe() const {
  return absl::UnavailableError(absl::Substitute(
      "there is no Shirabe in namespace $0 of this cluster (nor an account $1/$2): kubectl apply "
      "--server-side -k deploy/kubernetes installs one; for another place give --server "
      "kube://NAMESPACE/SERVICE, for another cluster --context",
      accounts_.system, accounts_.ns, kAccount));
}

Status ClusterToken::NoToken(const Status& why) const {
  return absl::PermissionDeniedError(absl::Substitute(
      "you may make no token for Shirabe in this cluster ($0). Ask an administrator of namespace "
      "$1 for: kubectl -n $1 create serviceaccount $2 && kubectl -n $1 create rolebinding $2 "
      "--clusterrole=edit --serviceaccount=$1:$2; or give a token by --token-file",
      Message(why), accounts_.ns, kAccount));
}

StatusOr<std::string> ClusterToken::Get() {
  const MutexLock lock(mutex_);
  if (clock_->Monotonic() < renew_at_) return token_;
  auto token = Make(accounts_.system, kAdmin);
  const bool installed = !absl::IsNotFound(token.status());
  if (IsMissing(token.status())) token = Make(accounts_.ns, kAccount);
  if (IsMissing(token.status())) return installed ? NoToken(token.status()) : NoShirabe();
  RETURN_IF_ERROR(token.status());
  token_ = *std::move(token);
  renew_at_ = clock_->Monotonic() + kUse;
  return token_;
}

namespace {

constexpr int kCalls = 4;  // at the same time; those of a command come one after the other
constexpr absl::Duration kAnswer = absl::Seconds(100);  // longer than a server lets a caller wait

bool is_plugin = false;

struct Target {
  std::string ns;
  std::string service;
};

StatusOr<Target> ParseAddress(const std::string& address) {
  const std::vector<std::string> parts =
      absl::StrSplit(address.substr(sizeof kClusterScheme - 1), '/');
  if (parts.size() == 2 && ValidateNamespace(parts[0]).ok() && ValidateNamespace(parts[1]).ok()) {
    return Target{parts[0], parts[1]};
  }
  return absl::InvalidArgumentError(
      "the server \"" + address +
      "\" is not an address: write kube://NAMESPACE/SERVICE (--server)");
}

// ---- over the API server -----------------------------------------------------------------------

class ApiServerConnection {
 public:
  ApiServerConnection(ApiServerProxy proxy, Target target,
                      std::unique_ptr<kube::Transport> transport)
      : proxy_(std::move(proxy)),
        target_(std::move(target)),
        transport_(std::move(transport)),
        token_(transport_.get(), proxy_.clock, {.system = target_.ns, .ns = proxy_.ns}) {}

  // One call: what the server answered, or why it could not be asked.
  StatusOr<GrpcWebBody> Call(const std::string& method, const std::string& message,
                             std::stop_token stop) {
    std::string token = proxy_.token;
    if (token.empty()) {
      ASSIGN_OR_RETURN(token, token_.Get());
    }
    const net::HttpRequest request{
        .method = "POST",
        .target = absl::StrCat("/api/v1/namespaces/", target_.ns,
                               "/services/https:", target_.service, ":http/proxy", method),
        .content_type = kGrpcWebType,
        .body = MessageFrame(message),
        .headers = {{"X-Shirabe-Authorization", "Bearer " + token}}};
    std::string body;
    const net::BodyCallback sink = [&](std::string_view piece) {
      body += piece;
      return true;
    };
    ASSIGN_OR_RETURN(const auto answer, transport_->Stream(request, kAnswer, sink, stop));
    if (answer.status != 200) return Refusal(answer);
    const auto parsed = ParseFrames(body);
    if (parsed.ok() && parsed->complete) return parsed;
    return absl::UnavailableError("its answer broke off");
  }

 private:
  // What Shirabe itself says before it looks at a call, such as that it does not know the token;
  // not the API server, whose errors are of the kind Status.
  static std::optional<Status> OwnRefusal(const net::HttpResponse& answer) {
    const kube::Json said = ParseServerJson(answer.body);
    const std::string words = Text(said, {"message"});
    if (words.empty() || said.contains("kind") || !said.contains("details")) return std::nullopt;
    if (answer.status == 401) return absl::UnauthenticatedError(words);
    if (answer.status == 403) return absl::PermissionDeniedError(words);
    if (answer.status == 429) return absl::ResourceExhaustedError(words);
    return std::nullopt;
  }

  // The API server's words for what stands between us and the server, with what to do about it.
  Status Refusal(const net::HttpResponse& answer) const {
    if (const auto own = OwnRefusal(answer)) return *own;
    const std::string name = absl::StrCat(target_.ns, "/", target_.service);
    const std::string cluster =
        proxy_.config.context.empty() ? proxy_.config.server : "context " + proxy_.config.context;
    const std::string words = Message(kube::ToStatus("the API server", answer));
    if (answer.status == 404) {
      return absl::UnavailableError(absl::StrCat(
          "there is no Shirabe as Service ", name, " of the cluster (", cluster,
          "): kubectl apply --server-side -k deploy/kubernetes installs one; for another place ",
          "give --server kube://NAMESPACE/SERVICE, for another cluster --context (", words, ")"));
    }
    if (answer.status == 502 || answer.status == 503) {
      return absl::UnavailableError(
          absl::StrCat("no controller is ready behind Service ", name, " (", cluster,
                       "): kubectl -n ", target_.ns, " get pods, and kubectl -n ", target_.ns,
                       " logs deployment/shirabe-controller say why (", words, ")"));
    }
    if (answer.status == 401 || answer.status == 403) {
      return absl::PermissionDeniedError(
          absl::StrCat(words, ": the role shirabe-connect of namespace ", target_.ns,
                       " lets people through (deploy/kubernetes/controller/connect.yaml)"));
    }
    return absl::UnavailableError(words);
  }

  const ApiServerProxy proxy_;
  const Target target_;
  const std::unique_ptr<kube::Transport> transport_;
  ClusterToken token_;
};

// ---- in this process ---------------------------------------------------------------------------

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), Message(status)};
}

// A gRPC server without a port, whose every method is a call over the connection.
class GrpcWebBridge {
 public:
  explicit GrpcWebBridge(std::unique_ptr<ApiServerConnection> connection)
      : connection_(std::move(connection)) {
    grpc::ServerBuilder builder;
    builder.RegisterAsyncGenericService(&service_);
    builder.SetMaxReceiveMessageSize(-1);
    for (int i = 0; i < kCalls; ++i) queues_.push_back(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    for (const auto& queue : queues_) {
      threads_.emplace_back([this, &queue](std::stop_token stop) {
        while (ServeOne(*queue, stop)) continue;
        // In gRPC's order: the server first, and then the queues, which get no more calls.
        down_.wait(false);
        queue->Shutdown();
        void* tag = nullptr;
        for (bool ok = false; queue->Next(&tag, &ok);) continue;
      });
    }
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = server_->InProcessChannel(arguments);
  }
  ~GrpcWebBridge() {
    for (std::jthread& thread : threads_) thread.request_stop();
    channel_ = nullptr;
    server_->Shutdown(absl::ToChronoTime(absl::InfinitePast()));
    down_ = true;
    down_.notify_all();
    threads_.clear();
  }

  grpc::Channel* channel() { return channel_.get(); }

 private:
  using Stream = grpc::GenericServerAsyncReaderWriter;

  static bool Next(grpc::ServerCompletionQueue& queue) {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  }

  // False once the server ends.
  bool ServeOne(grpc::ServerCompletionQueue& queue, const std::stop_token& stop) {
    grpc::GenericServerContext context;
    Stream stream(&context);
    service_.RequestCall(&context, &stream, &queue, &queue, this);
    if (!Next(queue)) return false;
    const Status status = Answer(context, stream, queue, stop);
    stream.Finish(ToGrpc(status), this);
    Next(queue);
    return true;
  }

  Status Answer(const grpc::GenericServerContext& context, Stream& stream,
                grpc::ServerCompletionQueue& queue, const std::stop_token& stop) {
    grpc::ByteBuffer message;
    stream.Read(&message, this);
    if (!Next(queue)) return absl::CancelledError("the caller has gone");
    ASSIGN_OR_RETURN(const GrpcWebBody body,
                     connection_->Call(context.method(), service::BytesOf(message), stop));
    for (const std::string& reply : body.messages) {
      const grpc::Slice slice(reply);
      stream.Write(grpc::ByteBuffer(&slice, 1), this);
      if (!Next(queue)) return absl::CancelledError("the caller has gone");
    }
    return body.end;
  }

  const std::unique_ptr<ApiServerConnection> connection_;
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> down_ = false;
  std::vector<std::jthread> threads_;
  std::shared_ptr<grpc::Channel> channel_;  // shared: gRPC's own
};

}  // namespace

StatusOr<ChannelPtr> OpenApiServerProxy(ApiServerProxy proxy) {
  ASSIGN_OR_RETURN(Target target, ParseAddress(proxy.address));
  // One try: who calls again, and how long, the client above decides.
  ASSIGN_OR_RETURN(auto transport, kube::Transport::Create(proxy.config, proxy.clock,
                                                           {.answer = kAnswer, .tries = 2}));
  auto connection = std::make_unique<ApiServerConnection>(std::move(proxy), std::move(target),
                                                          std::move(transport));
  // Shared: a holder of the channel holds what is behind it.
  const auto bridge = std::make_shared<GrpcWebBridge>(std::move(connection));
  return std::shared_ptr<grpc::Channel>(bridge, bridge->channel());  // shared: the same
}

void SetPlugin(const std::string& called_as) {
  const std::string name = std::filesystem::path(called_as).filename().string();
  is_plugin = absl::StartsWith(name, "kubectl-") || absl::StartsWith(name, "kubectl_");
}

bool IsPlugin() { return is_plugin; }

}  // namespace shirabe::cmd
