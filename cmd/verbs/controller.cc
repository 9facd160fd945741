// controller: everything of `serve`, with trials as Jobs of a cluster and experiments as its custom
// resources. One of several replicas leads; the others wait, alive.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/process_id.h"
#include "base/registry.h"
#include "client/state_location.h"
#include "cmd/controller_options.h"
#include "cmd/listen_options.h"
#include "cmd/server_identity.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "crd/cluster_sync.h"
#include "crd/optimization_sync.h"
#include "crd/schedule_sync.h"
#include "kube/json_access.h"
#include "kube/leader_election.h"
#include "kube/namespace_cache.h"
#include "service/common/server_metrics.h"
#include "service/http/http_server.h"
#include "suggestion/accelerator/program_gpu.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(200);
// After `renew` of an election until `lease` of it: see kube::ElectionOptions.
constexpr absl::Duration kResume = absl::Seconds(5);
constexpr absl::Duration kHasty = absl::Seconds(3);
constexpr absl::Duration kStepDown = absl::Seconds(30);
constexpr char kLease[] = "shirabe-controller";

std::string Variable(const char* name) { return client::ProcessEnvironment()(name).value_or(""); }

// The containers beside a trial are of the same image as we are.
StatusOr<kube::Json> OwnContainer(kube::Client& client, const std::string& namespace_name) {
  const std::string pod_name = Variable("POD_NAME");
  if (pod_name.empty()) {
    return UsageError(
        "--image IMAGE is missing: outside of a pod nothing says which image holds this program");
  }
  const std::string ns =
      Variable("POD_NAMESPACE").empty() ? namespace_name : Variable("POD_NAMESPACE");
  const kube::Ref ref{{"", "v1", "pods", "Pod"}, ns, pod_name};
  ASSIGN_OR_RETURN(const kube::Json pod, client.Get(ref));
  const kube::Json* containers = FindAt(pod, {"spec", "containers"});
  if (containers == nullptr || containers->empty()) {
    return absl::InternalError("pod " + pod_name + " has no container");
  }
  return (*containers)[0];
}

// Why leading ended.
enum class Ended { kBySignal, kLeadLost, kPoolsChanged };

class ControllerProcess {
 public:
  ControllerProcess(ControllerFlags flags, Globals globals)
      : flags_(std::move(flags)), globals_(std::move(globals)) {}

  Status Open();
  // Until a signal comes. Leadership that is lost is waited for again.
  StatusOr<int> Run(Interrupts& interrupts);

 private:
  Status OpenIdentity();
  Status FillMachines();
  Status OpenStandby();
  bool MayWrite() const;
  StatusOr<bool> AwaitLead(Interrupts& interrupts);
  Status Lead();
  void SetMetrics(service::Metrics& metrics) const;
  StatusOr<Ended> StayInLead(Interrupts& interrupts);
  bool LeadsAsBefore() const;
  bool MayResume() const;
  void StepDown(Ended why);
  std::string WhyNotReady() const;

  const ControllerFlags flags_;
  const Globals globals_;
  kube::Config config_;
  kube::RequestMetrics requests_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<kube::Client> trial_client_;  // writes as --trial-account, if there is one
  std::unique_ptr<kube::Client> election_client_;
  std::unique_ptr<kube::Client> hasty_client_;  // of who would rather have no answer than wait
  std::unique_ptr<kube::NamespaceCache> namespaces_;
  LocalSession session_;
  std::string token_file_;
  std::unique_ptr<kube::TokenReviewer> reviewer_;
  std::unique_ptr<kube::PodFinder> pods_;
  std::optional<service::Tokens> tokens_;
  service::TlsFiles tls_;
  std::string ca_;
  absl::Time renew_at_ = absl::InfiniteFuture();
  client::ExecutionOptions machines_;
  std::optional<PoolsFile> pools_;
  std::string identity_;  // among the replicas
  std::unique_ptr<kube::Election> election_;
  // Of the lease, while we lead; it grows when the lease changes hands. -1 = we do not lead.
  std::atomic<int64_t> term_ = -1;
  std::atomic<bool> watches_ = true;  // as sync_ said last
  std::unique_ptr<service::HttpServer> standby_;
  std::unique_ptr<service::Server> server_;
  std::unique_ptr<crd::ClusterSync> sync_;
  std::unique_ptr<crd::ScheduleSync> schedule_sync_;
  std::unique_ptr<crd::OptimizationSync> optimization_sync_;
};

Status ControllerProcess::Open() {
  ASSIGN_OR_RETURN(config_, kube::FindConfig(flags_.kubeconfig, flags_.kube_context));
  kube::ClientOptions writes{.counts = &requests_};
  writes.may_write = [this] { return MayWrite(); };
  ASSIGN_OR_RETURN(client_, kube::Client::Create(config_, RealClock(), writes));
  kube::ClientOptions as_account = writes;
  as_account.act_as = flags_.trial_account;
  ASSIGN_OR_RETURN(trial_client_, kube::Client::Create(config_, RealClock(), as_account));
  ASSIGN_OR_RETURN(session_, OpenLocal(globals_, /*read_only=*/false));
  kube::ClientOptions hasty{.counts = &requests_};
  hasty.connect = hasty.answer = kHasty;
  hasty.tries = 1;
  ASSIGN_OR_RETURN(hasty_client_, kube::Client::Create(config_, RealClock(), hasty));
  namespaces_ = std::make_unique<kube::NamespaceCache>(hasty_client_.get(), RealClock());
  session_.client->SetNamespaces([this](const std::string& ns) { return namespaces_->Uid(ns); });
  token_file_ = TokenFile(globals_, session_.place);
  ASSIGN_OR_RETURN(tokens_, service::Tokens::Load(token_file_));
  reviewer_ = std::make_unique<kube::TokenReviewer>(
      client_.get(), RealClock(),
      kube::ReviewOptions{.audience = kAudience, .only_namespace = globals_.ns});
  tokens_->SetCluster(ClusterUserIntrospection(reviewer_.get()));
  pods_ = std::make_unique<kube::PodFinder>(client_.get(), RealClock());
  RETURN_IF_ERROR(OpenIdentity());
  RETURN_IF_ERROR(FillMachines());
  if (flags_.lease_namespace.empty()) return absl::OkStatus();
  const std::string pod = Variable("POD_NAME");
  identity_ = pod.empty() ? ToString(ThisProcess()) : pod;
  kube::ElectionOptions election{.clock = RealClock(),
                                 .namespace_name = flags_.lease_namespace,
                                 .name = kLease,
                                 .identity = identity_};
  kube::ClientOptions soon{.counts = &requests_};
  soon.connect = soon.answer = election.renew / 2;
  soon.tries = 1;
  ASSIGN_OR_RETURN(election_client_, kube::Client::Create(config_, RealClock(), soon));
  election.client = election_client_.get();
  election_ = kube::Election::Start(std::move(election));
  return OpenStandby();
}

// A process that was stopped for a while, or waited to be heard, may be about to write what another
// one has decided meanwhile, also if it has come to lead again since. The database refuses that by
// its epoch; the cluster knows none.
bool ControllerProcess::MayWrite() const { return election_ == nullptr || LeadsAsBefore(); }

bool ControllerProcess::LeadsAsBefore() const {
  return election_->leads() && election_->transitions() == term_;
}

Status ControllerProcess::OpenIdentity() {
  tls_ = flags_.listen_options.tls;
  if (!tls_.certificate.empty()) {
    ASSIGN_OR_RETURN(ca_, ReadFile(flags_.tls_ca, 1 << 20));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Identity identity, LoadIdentity({.client = client_.get(),
                                                    .namespace_name = flags_.lease_namespace,
                                                    .home = session_.place.home,
                                                    .names = NamesOfServer(flags_.advertise),
                                                    .clock = RealClock()}));
  tls_.certificate = identity.files.certificate;
  tls_.key = identity.files.key;
  ca_ = std::move(identity.ca);
  renew_at_ = identity.renew_at;
  return absl::OkStatus();
}

Status ControllerProcess::FillMachines() {
  machines_.executor = "kubernetes";
  machines_.host_paths = flags_.listen_options.host_paths;
  machines_.limits = LimitsOf(flags_.listen_options);
  machines_.pods = {
      .client = trial_client_.get(), .image = flags_.image, .server = flags_.advertise, .ca = ca_};
  machines_.pods.only_namespace = globals_.ns;
  machines_.pods.storage_class = flags_.pod_storage_class;
  machines_.pods.storage_size = flags_.pod_storage_size;
  if (flags_.image.empty()) {
    ASSIGN_OR_RETURN(const kube::Json container, OwnContainer(*client_, config_.namespace_name));
    machines_.pods.image = Text(container, {"image"});
    machines_.pods.image_pull_policy = Text(container, {"imagePullPolicy"});
  }
  ASSIGN_OR_RETURN(pools_, PoolsFile::Open(flags_.nodes, session_.place.home + "/pools.yaml"));
  return absl::OkStatus();
}

std::string ControllerProcess::WhyNotReady() const {
  const std::string holder = election_->holder();
  const std::string last_error = election_->LastError();
  if (!last_error.empty()) return last_error;
  if (holder == identity_) return "taking the lead";
  return holder.empty() ? "there is no leader yet" : "another replica leads: " + holder;
}

// Alive, and not ready: the leader answers.
Status ControllerProcess::OpenStandby() {
  service::HttpOptions http{.address = flags_.listen_options.http, .tls = &tls_};
  http.context = {.client = session_.client.get(),
                  .tokens = &*tokens_,
                  .clock = RealClock(),
                  .checks = {{"leader", [this] { return WhyNotReady(); }}},
                  .counts_store = false};
  ASSIGN_OR_RETURN(standby_, service::HttpServer::Start(std::move(http)));
  return absl::OkStatus();
}

StatusOr<bool> ControllerProcess::AwaitLead(Interrupts& interrupts) {
  if (election_ == nullptr) return true;
  std::string said;
  while (!election_->leads()) {
    if (interrupts.Wait(kPollInterval) > 0) return false;
    ReloadOnHangup(interrupts, *tokens_);
    const std::string why = WhyNotReady();
    if (why != said) Log(LogLevel::kInfo, "waiting to lead", {{"because", why}});
    said = why;
  }
  return true;
}

Status ControllerProcess::Lead() {
  if (election_ != nullptr) term_ = election_->transitions();
  standby_ = nullptr;  // its port is needed
  service::ServerOptions options = ServerOptionsOf(flags_.listen_options, session_);
  machines_.pools = pools_->pools();
  options.machines = machines_;
  options.namespace_of = [this](const auto& address) { return pods_->NamespaceOf(address); };
  options.tls = tls_;
  options.tokens = *tokens_;
  options.refresh_metrics = [this](auto& metrics) { SetMetrics(metrics); };
  ASSIGN_OR_RETURN(server_, service::Server::Start(std::move(options)));
  sync_ = crd::ClusterSync::Start({.kube = client_.get(),
                                   .store = session_.client.get(),
                                   .clock = RealClock(),
                                   .namespace_name = globals_.ns,
                                   .namespaces = namespaces_.get(),
                                   .adopt_all = flags_.adopt_all,
                                   .instance = Variable("POD_NAME")});
  schedule_sync_ = crd::ScheduleSync::Start({.kube = client_.get(),
                                             .clock = RealClock(),
                                             .namespace_name = globals_.ns,
                                             .instance = Variable("POD_NAME")});
  optimization_sync_ = crd::OptimizationSync::Start({.kube = client_.get(),
                                                     .clock = RealClock(),
                                                     .namespace_name = globals_.ns,
                                                     .instance = Variable("POD_NAME")});
  Log(LogLevel::kInfo, "leading",
      {{"database", client::ShownDatabase(session_.place)},
       {"grpc", server_->grpc_address()},
       {"http", server_->http_address()},
       {"cluster", config_.server},
       {"image", machines_.pods.image}});
  if (flags_.listen_options.ready_file.empty()) return absl::OkStatus();
  return WriteReadyFile(flags_.listen_options, *server_, token_file_);
}

void ControllerProcess::SetMetrics(service::Metrics& metrics) const {
  for (const auto& [kind, count] : requests_.All()) {
    metrics.Set("shirabe_kube_requests_total", {kind.verb, kind.resource, kind.code},
                static_cast<double>(count));
  }
  metrics.Set("shirabe_ready", {"cluster"}, watches_ ? 1 : 0);
}

// Whether no other replica can have come to lead: for as long as the lease is promised to us we
// only write nothing, and go on where we stood once the API server answers again.
bool ControllerProcess::MayResume() const {
  return election_->transitions() == term_ && election_->holder() == identity_;
}

// All that acts ends here, and nothing of it writes while it does. Where it does not end, the
// process does: it is started again.
void ControllerProcess::StepDown(Ended why) {
  if (why == Ended::kPoolsChanged) {
    Log(LogLevel::kInfo, "the pools of --nodes have changed: starting again with them",
        {{"file", flags_.nodes}});
  } else {
    Log(LogLevel::kWarning, "leadership was lost: waiting to lead again",
        {{"holder", election_->holder()}, {"trouble", election_->LastError()}});
  }
  term_ = -1;
  std::jthread watchdog([](const std::stop_token& stop) {
    const absl::Duration deadline = RealClock()->Monotonic() + kStepDown;
    while (!stop.stop_requested()) {
      if (RealClock()->Monotonic() > deadline) {
        Log(LogLevel::kError, "the controllers do not stop: exiting, to be restarted", {});
        std::_Exit(kUnreachable);
      }
      shirabe::Pause(kPollInterval);
    }
  });
  optimization_sync_ = nullptr;
  schedule_sync_ = nullptr;
  sync_ = nullptr;
  server_ = nullptr;
}

// Until leadership is lost for good, or there is another reason to end.
StatusOr<Ended> ControllerProcess::StayInLead(Interrupts& interrupts) {
  std::optional<absl::Duration> lost;
  while (interrupts.Wait(kPollInterval) == 0) {
    ReloadOnHangup(interrupts, *tokens_);
    watches_ = sync_->LastError().empty();
    if (election_ != nullptr && !LeadsAsBefore()) {
      const absl::Duration now = RealClock()->Monotonic();
      if (!lost) {
        const std::string trouble = election_->LastError();
        Log(LogLevel::kWarning, "failed to renew the lease: nothing is written until it is renewed",
            {{"trouble", trouble.empty() ? "the API server does not answer" : trouble}});
      }
      lost = lost.value_or(now);
      if (!MayResume() || now - *lost > kResume) return Ended::kLeadLost;
      continue;
    }
    if (lost) Log(LogLevel::kInfo, "the lease was renewed: continuing", {});
    lost.reset();
    if (pools_->Reload(RealClock()->Monotonic())) return Ended::kPoolsChanged;
    if (RealClock()->Now() < renew_at_) continue;
    return absl::UnavailableError(
        "the certificate ends within 30 days: ending, to be started again with a new one");
  }
  return Ended::kBySignal;
}

StatusOr<int> ControllerProcess::Run(Interrupts& interrupts) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool leads, AwaitLead(interrupts));
    if (!leads) return kOk;
    RETURN_IF_ERROR(Lead());
    ASSIGN_OR_RETURN(const Ended ended, StayInLead(interrupts));
    if (ended == Ended::kBySignal) break;
    StepDown(ended);
    if (election_ != nullptr) RETURN_IF_ERROR(OpenStandby());
  }
  Log(LogLevel::kInfo, "stopping: trials that run are left to the next controller");
  // In this order: nothing is led any more when the lease is given up.
  optimization_sync_ = nullptr;
  schedule_sync_ = nullptr;
  sync_ = nullptr;
  server_ = nullptr;
  election_ = nullptr;
  return kOk;
}

}  // namespace

StatusOr<int> Controller(const Arguments& arguments) {
  Globals globals;
  ControllerFlags flags;
  Options options("controller --advertise HOST:PORT",
                  "Runs in a cluster: Experiments of kubeflow.org/v1beta1 are taken up as they are "
                  "applied, their trials run as Jobs, and the commands that are given --server are "
                  "answered. With -n only that namespace is looked at. Tokens of the cluster for "
                  "the audience shirabe may do here what RBAC lets them do to Experiments; the "
                  "token file (made where it is missing) has an administrator's token, and lines "
                  "`user NAMESPACE TOKEN` and `metrics TOKEN`; it is read at the start and, "
                  "where there is no terminal, on SIGHUP.");
  AddControllerFlags(options, &flags);
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  AddStores(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  RETURN_IF_ERROR(CheckControllerFlags(flags));
  RETURN_IF_ERROR(SetOutgoing(flags.listen_options));
  suggestion::accelerator::UseGpuOfServer();
  if (!globals.verbose) SetLogLevel(LogLevel::kInfo);
  // Before anything starts a thread: the signals are to reach none of them.
  Interrupts interrupts(Interrupts::Hangup::kReloads);
  ControllerProcess process(std::move(flags), std::move(globals));
  RETURN_IF_ERROR(process.Open());
  return process.Run(interrupts);
}

SHIRABE_REGISTER(Verb, {.name = "controller",
                        .group = VerbGroup::kServe,
                        .summary = "run experiments of a Kubernetes cluster, trials as its Jobs",
                        .run = Controller});

}  // namespace shirabe::cmd
