#include "service/server.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/file_io.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "service/common/authorization.h"
#include "service/common/change_hub.h"
#include "service/common/long_polls.h"
#include "service/common/server_metrics.h"
#include "service/common/store_metrics.h"
#include "service/common/suggestion_scheduler.h"
#include "service/experiment_owner.h"
#include "service/grpc/authorized_service.h"
#include "service/grpc/grpc_listener.h"
#include "service/grpc/pods_service.h"
#include "service/grpc/shirabe_service.h"
#include "service/grpc/tls_memory.h"
#include "service/http/grpc_web.h"
#include "service/http/http_server.h"
#include "service/katib/katib_codec.h"
#include "service/katib/katib_db_manager.h"
#include "service/katib/katib_early_stopping.h"
#include "service/katib/katib_suggestion.h"
#include "service/periodic_tasks.h"

namespace shirabe::service {
namespace {

// Experiments that are reconciled at the same time. Where starting a trial is a call over the
// network a worker mostly waits, and experiments would wait for the trials of others to be started.
constexpr int kWorkers = 4;
constexpr int kClusterWorkers = 16;
constexpr int kThreads = 1024;           // calls under way, waiting ones included
constexpr int kStreams = 100;            // calls of one connection at the same time
constexpr size_t kCallMemory = 1 << 29;  // bytes of all that is being received and sent
// Calls that wait begin here, and take turns.
constexpr Workers::Limits kWaitWorkers{
    .threads = 16, .queue = 8192, .caller_threads = 4, .caller_queue = 1024};
constexpr absl::Duration kDrain = absl::Seconds(5);

// As the table of rights has a method of Katib's.
std::string FullName(const std::string& method) {
  return absl::StartsWith(method, "api.") ? method : "api.v1.beta1." + method;
}

using google::protobuf::ServiceDescriptor;

// Of a service that protoc made.
template <class Described>
const ServiceDescriptor& DescriptorOf() {
  const auto* found = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      Described::service_full_name());
  CHECK(found != nullptr);
  return *found;
}

StatusOr<std::string> ReadPem(const std::string& option, const std::string& path) {
  auto text = ReadFile(path, 1 << 20);
  if (!text.ok()) return absl::InvalidArgumentError(option + ": " + Message(text.status()));
  if (absl::StrContains(*text, "-----BEGIN ")) return text;
  return absl::InvalidArgumentError(option + ": " + path + " is not a PEM file");
}

using Credentials = std::shared_ptr<grpc::ServerCredentials>;  // shared: gRPC's own

StatusOr<Credentials> CredentialsFor(const TlsFiles& tls) {
  if (tls.certificate.empty()) return grpc::InsecureServerCredentials();
  ASSIGN_OR_RETURN(const std::string certificate, ReadPem("--tls-cert", tls.certificate));
  ASSIGN_OR_RETURN(const std::string key, ReadPem("--tls-key", tls.key));
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({key, certificate});
  if (!tls.client_ca.empty()) {
    ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem("--client-ca", tls.client_ca));
    options.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(options);
}

// So that no caller holds the others up: connections whose other end is gone are noticed, those
// that are not used are closed, and what a caller sends, which is as much as over HTTP, and asks at
// the same time has a limit.
void LimitCalls(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 2 * 60'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, 2 * 3600'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 5 * 60'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreams);
  builder.AddChannelArgument(GRPC_ARG_TSI_MAX_FRAME_SIZE, kTlsRecordBytes);
  builder.SetMaxReceiveMessageSize(static_cast<int>(HttpLimits().body_bytes));
  builder.SetResourceQuota(
      grpc::ResourceQuota("calls").SetMaxThreads(kThreads).Resize(kCallMemory));
}

class ListeningServer : public Server {
 public:
  explicit ListeningServer(ServerOptions options)
      : options_(std::move(options)),
        limiter_({.requests_per_second = options_.requests_per_second,
                  .burst = 2 * options_.requests_per_second},
                 options_.clock),
        turns_(SuggestionLimits::Default(), options_.clock),
        service_context_{.client = options_.client,
                         .tokens = &options_.tokens,
                         .rights = {.in_cluster = trial::RunsInCluster(options_.machines.executor),
                                    .turns = &turns_},
                         .clock = options_.clock,
                         .workers = &workers_,
                         .quotas = &quotas_,
                         .limiter = &limiter_} {}

  Status Init() {
    RETURN_IF_ERROR(CheckOpenness("--grpc", options_.grpc));
    RETURN_IF_ERROR(CheckOpenness("--http", options_.http));
    const bool far = options_.machines.pods.client != nullptr;
    ASSIGN_OR_RETURN(controller_, options_.client->MakeController(
                                      options_.machines, far ? kClusterWorkers : kWorkers));
    options_.client->Attach(controller_.get());
    experiment_owner_ =
        std::make_unique<ExperimentOwner>(options_.client, controller_.get(), options_.clock);
    periodic_tasks_.push_back(
        StartDeletingLogs(options_.client, options_.home, options_.log_bytes));
    schedule_runner_ =
        std::make_unique<ScheduleRunner>(&options_.client->schedules(), options_.clock);
    periodic_tasks_.push_back(
        StartThinning(options_.client, options_.keep_observations, options_.clock));
    periodic_tasks_.push_back(StartDeletingCopies(options_.client, options_.clock));
    hub_ = std::make_unique<ChangeHub>(*options_.client);
    store_metrics_ = std::make_unique<StoreMetrics>(
        StoreMetrics::Options{.client = options_.client,
                              .hub = hub_.get(),
                              .metrics = &metrics_,
                              .clock = options_.clock,
                              .refresh = [this](Metrics& metrics) { SetMetrics(metrics); }});
    long_polls_ = std::make_unique<LongPollQueue>(hub_.get(), options_.clock);
    service_context_.hub = hub_.get();
    service_context_.long_polls = long_polls_.get();
    hub_->Start();
    while (!experiment_owner_->Ready() && experiment_owner_->LastError().empty())
      Pause(absl::Milliseconds(1));
    RETURN_IF_ERROR(OpenGrpc());
    RETURN_IF_ERROR(OpenKatib());
    return OpenHttp();
  }

  ~ListeningServer() override {
    if (long_polls_ != nullptr) long_polls_->End();
    for (auto* listener : {grpc_listener_.get(), katib_listener_.get()}) {
      if (listener != nullptr) listener->Stop();
    }
    const auto deadline = absl::ToChronoTime(options_.clock->Now() + kDrain);
    if (grpc_ != nullptr) grpc_->Shutdown(deadline);
    if (katib_ != nullptr) katib_->Shutdown(deadline);
    http_ = nullptr;
    store_metrics_ = nullptr;
    grpc_web_ = nullptr;
    grpc_ = nullptr;
    long_polls_ = nullptr;
    hub_ = nullptr;
    periodic_tasks_.clear();
    schedule_runner_ = nullptr;
    experiment_owner_ = nullptr;
    options_.client->Attach(nullptr);
    controller_ = nullptr;
  }

  std::string grpc_address() const override {
    return absl::StrCat(HostOf(options_.grpc), ":", grpc_listener_->port());
  }
  std::string http_address() const override { return http_->address(); }
  std::string katib_address() const override {
    if (katib_ == nullptr) return "";
    return absl::StrCat(HostOf(options_.katib_listen), ":", katib_listener_->port());
  }

 private:
  // Without TLS a token can be read on the wire, and without a token any caller may run programs.
  Status CheckOpenness(const std::string& option, const std::string& address) const {
    const bool open = options_.tokens.open();
    if (IsLoopback(HostOf(address)) || (!open && !options_.tls.certificate.empty())) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", address, " can be reached from the network: ",
                     open ? "leave --insecure out" : "give --tls-cert and --tls-key",
                     ", or listen on 127.0.0.1"));
  }

  Status OpenGrpc() {
    ASSIGN_OR_RETURN(const Credentials credentials, CredentialsFor(options_.tls));
    MakeServices();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    ASSIGN_OR_RETURN(grpc_listener_, ListenAt("--grpc", options_.grpc));
    ASSIGN_OR_RETURN(grpc_, Build(builder, *grpc_listener_, credentials, services_));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);  // our own replies
    grpc_web_ = std::make_unique<GrpcWeb>(grpc_->InProcessChannel(arguments));
    return absl::OkStatus();
  }

  ConnectionShares Shares() const {
    return ShareConnections(RaiseFileLimit(), trial::RunsInCluster(options_.machines.executor),
                            options_.katib_listen.empty() ? 1 : 2);
  }

  StatusOr<std::unique_ptr<GrpcListener>> ListenAt(const std::string& option,
                                                   const std::string& address) {
    const ConnectionTable::Limits limits{
        .all = std::min(ConnectionTable::Limits().all, Shares().grpc),
        .address = static_cast<size_t>(options_.connections_per_address),
        .reserve = 0};
    return GrpcListener::Open(
        {.option = option, .address = address, .limits = limits, .metrics = &metrics_});
  }

  using Services = std::vector<std::unique_ptr<grpc::Service>>;

  StatusOr<std::unique_ptr<grpc::Server>> Build(grpc::ServerBuilder& builder,
                                                GrpcListener& listener,
                                                const Credentials& credentials,
                                                const Services& services) {
    listener.AddTo(builder, credentials);
    LimitCalls(builder);
    CountCalls(builder, {.metrics = &metrics_, .bounds = &bounds_, .listener = &listener});
    for (const auto& service : services) builder.RegisterService(service.get());
    auto server = builder.BuildAndStart();
    if (server == nullptr) return absl::InternalError("gRPC cannot be started");
    listener.Start();
    return server;
  }

  // Ours, and Katib's three.
  void MakeServices() {
    AddService(*client::MethodOf("GetExperiment").service(), MakeShirabeService(service_context_),
               WaitingMethods());
    auto suggestion = MakeKatibSuggestion(
        [this](const auto& context, const std::string& method) -> StatusOr<std::string> {
          ASSIGN_OR_RETURN(const Principal caller, KatibCallerOf(context, method));
          return caller.name;
        },
        &turns_);
    AddService(DescriptorOf<katib::Suggestion>(), std::move(suggestion));
    const KatibAccess access = [this](const auto& context, const std::string& method) {
      return Observe(KatibCallerOf(context, method));
    };
    AddService(DescriptorOf<katib::EarlyStopping>(), MakeKatibEarlyStopping(access));
    AddService(DescriptorOf<katib::DBManager>(), MakeKatibDbManager(access, options_.clock));
    AddService(DescriptorOf<v1::Pods>(), MakePodsService(controller_.get()));
  }

  void AddService(const ServiceDescriptor& descriptor, std::unique_ptr<grpc::Service> service,
                  const std::set<std::string>& waiting = {}) {
    services_.push_back(Checked(
        std::move(service), descriptor,
        [this](const auto& context, const std::string& method) {
          return CheckCaller(context, method, service_context_);
        },
        waiting));
  }

  // By the caller's token.
  StatusOr<Principal> KatibCallerOf(const grpc::ServerContext& context, const std::string& method) {
    ASSIGN_OR_RETURN(Principal caller, CallerOf(context, service_context_));
    caller.listener = "katib";
    RETURN_IF_ERROR(CheckMethodAccess(caller, RightsOf(FullName(method))));
    return caller;
  }

  // By the address that the caller has: a user of the namespace that it is in.
  StatusOr<Principal> KatibCallerAt(const grpc::ServerContext& context, const std::string& method) {
    const std::string address = AddressOfPeer(context.peer());
    RETURN_IF_ERROR(limiter_.Acquire(address));
    if (options_.namespace_of == nullptr) {
      return absl::PermissionDeniedError("nothing says which namespace a caller here is of");
    }
    ASSIGN_OR_RETURN(const std::string ns, options_.namespace_of(address));
    const Principal caller{.role = Principal::Role::kUser,
                           .ns = ns,
                           .name = absl::StrCat(address, " of ", ns),
                           .listener = "katib"};
    RETURN_IF_ERROR(CheckMethodAccess(caller, RightsOf(FullName(method))));
    return caller;
  }

  StatusOr<std::unique_ptr<KatibObservationStore>> Observe(const StatusOr<Principal>& caller) {
    RETURN_IF_ERROR(caller.status());
    return MakeClientObservations(Guard(*options_.client, *caller, service_context_.rights),
                                  caller->ns);
  }

  // Katib's own clients have no token.
  Status OpenKatib() {
    if (options_.katib_listen.empty()) return absl::OkStatus();
    const CallCheck check = [this](const auto& context, const std::string& method) {
      return KatibCallerAt(context, method).status();
    };
    auto suggestion = MakeKatibSuggestion(
        [this](const auto& context, const std::string& method) -> StatusOr<std::string> {
          ASSIGN_OR_RETURN(const Principal caller, KatibCallerAt(context, method));
          return "user of " + caller.ns;  // the share of its namespace
        },
        &turns_);
    auto db_manager = MakeKatibDbManager(
        [this](const auto& context, const std::string& method) {
          return Observe(KatibCallerAt(context, method));
        },
        options_.clock);
    katib_services_.push_back(
        Checked(std::move(suggestion), DescriptorOf<katib::Suggestion>(), check));
    katib_services_.push_back(
        Checked(std::move(db_manager), DescriptorOf<katib::DBManager>(), check));
    grpc::ServerBuilder builder;
    ASSIGN_OR_RETURN(katib_listener_, ListenAt("--katib-listen", options_.katib_listen));
    ASSIGN_OR_RETURN(katib_, Build(builder, *katib_listener_, grpc::InsecureServerCredentials(),
                                   katib_services_));
    return absl::OkStatus();
  }

  void SetMetrics(Metrics& metrics) const {
    metrics.Set("shirabe_ready", {"store"}, experiment_owner_->LastError().empty() ? 1 : 0);
    if (options_.refresh_metrics) options_.refresh_metrics(metrics);
  }

  Status OpenHttp() {
    HttpOptions http{.address = options_.http, .tls = &options_.tls};
    http.limits.connections = std::min(http.limits.connections, static_cast<int>(Shares().http));
    http.limits.connections_per_address = options_.connections_per_address;
    http.context = {.client = options_.client,
                    .tokens = &options_.tokens,
                    .rights = service_context_.rights,
                    .clock = options_.clock,
                    .hub = hub_.get(),
                    .metrics = &metrics_,
                    .limiter = &limiter_,
                    .quotas = &quotas_,
                    .grpc_web = grpc_web_.get(),
                    .checks = {{"experiments", [this] { return experiment_owner_->LastError(); }}},
                    .base_path = options_.base_path,
                    .loopback_only = options_.tokens.open()};
    ASSIGN_OR_RETURN(http_, HttpServer::Start(std::move(http)));
    return absl::OkStatus();
  }

  const ServerOptions options_;
  RateLimiter limiter_;
  SuggestionScheduler turns_;
  Quotas quotas_;
  CallBounds bounds_;
  Workers workers_{kWaitWorkers};
  ServiceContext service_context_;
  Metrics metrics_;
  std::unique_ptr<experiment::Controller> controller_;
  Services services_;
  std::unique_ptr<GrpcListener> grpc_listener_;  // outlives its server
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<GrpcWeb> grpc_web_;
  Services katib_services_;
  std::unique_ptr<GrpcListener> katib_listener_;
  std::unique_ptr<grpc::Server> katib_;
  std::unique_ptr<ExperimentOwner> experiment_owner_;
  std::unique_ptr<ScheduleRunner> schedule_runner_;
  std::vector<PeriodicTaskPtr> periodic_tasks_;
  std::unique_ptr<ChangeHub> hub_;
  std::unique_ptr<LongPollQueue> long_polls_;
  std::unique_ptr<StoreMetrics> store_metrics_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto server = std::make_unique<ListeningServer>(std::move(options));
  RETURN_IF_ERROR(server->Init());
  return server;
}

}  // namespace shirabe::service
