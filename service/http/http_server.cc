#include "service/http/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/log.h"
#include "service/common/change_hub.h"
#include "service/common/connection_table.h"
#include "service/common/long_polls.h"
#include "service/common/server_metrics.h"
#include "service/common/store_metrics.h"
#include "service/common/suggestion_scheduler.h"
#include "service/common/update_feeds.h"
#include "service/common/worker_threads.h"
#include "service/http/http_message.h"
#include "service/http/http_router.h"
#include "service/http/http_session.h"
#include "service/http/http_task.h"
#include "service/http/session_host.h"

namespace shirabe::service {
namespace {

using asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<tcp, AnyStream::executor_type>;

constexpr absl::Duration kAcceptAgain = absl::Milliseconds(100);
// Of the threads and of what waits for them, one caller gets a part.
constexpr size_t kQueue = 16'384;
constexpr size_t kCallerQueue = 4096;  // all of their streams wake at once
constexpr int kCallerParts = 4;

std::unique_ptr<Workers> MakeWorkers(int threads) {
  return std::make_unique<Workers>(
      Workers::Limits{.threads = threads,
                      .queue = kQueue,
                      .caller_threads = std::max(1, threads / kCallerParts),
                      .caller_queue = kCallerQueue});
}

Status LoadTls(const TlsFiles& files, asio::ssl::context& context) {
  using Context = asio::ssl::context;
  IoError error;
  const auto bad = [&](const char* option, const std::string& path) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", path, " cannot be used: ", error.message()));
  };
  context.set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 |
                          Context::no_tlsv1 | Context::no_tlsv1_1,
                      error);
  if (context.use_certificate_chain_file(files.certificate, error)) {
    return bad("--tls-cert", files.certificate);
  }
  if (context.use_private_key_file(files.key, Context::pem, error)) {
    return bad("--tls-key", files.key);
  }
  if (files.client_ca.empty()) return absl::OkStatus();
  if (context.load_verify_file(files.client_ca, error)) {
    return bad("--client-ca", files.client_ca);
  }
  context.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  return absl::OkStatus();
}

class BeastServer : public HttpServer {
 public:
  explicit BeastServer(HttpOptions options)
      : options_(std::move(options)),
        acceptor_(io_.get_executor()),
        again_(io_.get_executor()),
        deadline_(io_.get_executor()),
        tls_(asio::ssl::context::tls_server) {}
  ~BeastServer() override;

  Status Listen();
  void Run();
  // What the options did not bring.
  void MakeDependents();

  std::string address() const override { return address_; }
  int port() const override { return port_; }

 private:
  Task<void> Accept();  // until the server ends
  void Admit(AnyStream::Socket socket);
  void RejectConnection(AnyStream::Socket socket);
  void Drain();
  void WakeStreams();

  HttpOptions options_;
  std::unique_ptr<Metrics> own_metrics_;
  std::unique_ptr<ChangeHub> own_hub_;
  std::unique_ptr<UpdateFeeds> own_updates_;
  std::unique_ptr<StoreMetrics> own_store_metrics_;
  asio::io_context io_{1};
  Acceptor acceptor_;
  IoTimer again_;
  IoTimer deadline_;
  asio::ssl::context tls_;
  bool with_tls_ = false;
  std::string address_;
  int port_ = 0;
  ShutdownWait shutdown_wait_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Quotas> own_quotas_;
  std::unique_ptr<ConnectionTable> table_;
  SessionHost host_;
  std::atomic<bool> wake_posted_ = false;
  int listener_ = 0;  // at the hub
  std::unique_ptr<Workers> quick_;
  std::unique_ptr<Workers> slow_;
  std::unique_ptr<LongPollQueue> long_polls_;
  std::thread thread_;
};

Status BeastServer::Listen() {
  with_tls_ = options_.tls != nullptr && !options_.tls->certificate.empty();
  if (with_tls_) RETURN_IF_ERROR(LoadTls(*options_.tls, tls_));
  ASSIGN_OR_RETURN(ListeningSocket socket, service::Listen("--http", options_.address));
  port_ = socket.port;
  IoError error;
  acceptor_.assign(socket.family == AF_INET6 ? tcp::v6() : tcp::v4(), socket.fd.get(), error);
  if (error) return absl::UnavailableError(absl::StrCat("--http: ", error.message()));
  socket.fd.release();
  address_ = absl::StrCat(options_.address.substr(0, options_.address.rfind(':')), ":", port_);
  return absl::OkStatus();
}

void BeastServer::MakeDependents() {
  HttpContext& context = options_.context;
  context.shutdown_wait = &shutdown_wait_;
  if (context.quotas == nullptr) {
    own_quotas_ = std::make_unique<Quotas>();
    context.quotas = own_quotas_.get();
  }
  if (context.hub == nullptr) {
    own_hub_ = std::make_unique<ChangeHub>(*context.client);
    context.hub = own_hub_.get();
  }
  if (context.updates == nullptr) {
    own_updates_ = std::make_unique<UpdateFeeds>(context.client, context.clock);
    context.updates = own_updates_.get();
  }
  if (context.metrics == nullptr) {
    own_metrics_ = std::make_unique<Metrics>();
    context.metrics = own_metrics_.get();
    own_store_metrics_ = std::make_unique<StoreMetrics>(
        StoreMetrics::Options{.client = context.client,
                              .hub = context.hub,
                              .metrics = context.metrics,
                              .clock = context.clock,
                              .process_only = !context.counts_store});
  }
}

void BeastServer::Run() {
  const size_t most = ShareConnections(RaiseFileLimit(), /*in_cluster=*/false, 1).http;
  MakeDependents();
  const HttpLimits& limits = options_.limits;
  router_ = std::make_unique<Router>(options_.context);
  quick_ = MakeWorkers(limits.workers);
  slow_ = MakeWorkers(limits.slow_workers);
  long_polls_ = std::make_unique<LongPollQueue>(options_.context.hub, options_.context.clock);
  table_ = std::make_unique<ConnectionTable>(
      ConnectionTable::Limits{.all = std::min(static_cast<size_t>(limits.connections), most),
                              .address = static_cast<size_t>(limits.connections_per_address)});
  host_ = {.limits = limits,
           .tls = with_tls_ ? &tls_ : nullptr,
           .router = router_.get(),
           .quick = quick_.get(),
           .slow = slow_.get(),
           .long_polls = long_polls_.get(),
           .quotas = options_.context.quotas,
           .table = table_.get(),
           .metrics = options_.context.metrics,
           .clock = options_.context.clock};
  listener_ = options_.context.hub->Listen([this](const auto&) {
    if (!wake_posted_.exchange(true)) asio::post(io_, [this] { WakeStreams(); });
  });
  if (own_hub_ != nullptr) own_hub_->Start();
  asio::co_spawn(io_.get_executor(), Accept(), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);  // ends the process: it would accept no more
  });
  thread_ = std::thread([this] { io_.run(); });
}

Task<void> BeastServer::Accept() {
  while (!host_.draining) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwaited);
    if (host_.draining) co_return;
    if (!error) {
      Admit(std::move(socket));
      continue;
    }
    // No file is left for it, most likely: open connections are served, and some will end.
    Log(LogLevel::kWarning, "cannot accept a connection", {{"why", error.message()}});
    again_.expires_after(absl::ToChronoMilliseconds(kAcceptAgain));
    co_await again_.async_wait(kAwaited);
  }
}

void BeastServer::Admit(AnyStream::Socket socket) {
  IoError error;
  const std::string peer = AddressGroup(socket.remote_endpoint(error).address().to_string());
  const auto slot = table_->Find(peer);
  if (error || slot == ConnectionTable::ConnectionSlot::kNone) {
    return RejectConnection(std::move(socket));
  }
  socket.set_option(tcp::no_delay(true), error);
  std::make_shared<Session>(std::move(socket), host_, peer)->Start(slot);
}

// Said without waiting: what does not fit into the socket's buffer is not said.
void BeastServer::RejectConnection(AnyStream::Socket socket) {
  HttpReply reply = host_.RefuseConnection();
  if (host_.tls != nullptr) return;
  const std::string text = HeadOf(reply, {.keep_alive = false}) + reply.body;
  IoError ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void BeastServer::WakeStreams() {
  wake_posted_ = false;
  ++host_.wakes;
  for (const SessionPtr& session : host_.sessions) session->Wake();
}

void BeastServer::Drain() {
  host_.draining = true;
  IoError ignored;
  acceptor_.close(ignored);
  again_.cancel();
  host_.on_last_gone = [this] { deadline_.cancel(); };
  const std::set<SessionPtr> all = host_.sessions;
  for (const SessionPtr& session : all) session->Drain();
  if (host_.sessions.empty()) return;
  deadline_.expires_after(absl::ToChronoMilliseconds(options_.limits.drain));
  deadline_.async_wait([this](IoError error) {
    if (error) return;
    const std::set<SessionPtr> left = host_.sessions;
    for (const SessionPtr& session : left) session->Close();
  });
}

BeastServer::~BeastServer() {
  if (!thread_.joinable()) return;
  shutdown_wait_.End();
  options_.context.hub->Unlisten(listener_);
  long_polls_->End();
  asio::post(io_, [this] { Drain(); });
  thread_.join();
  // Handlers that still wait for the store end by themselves; their replies are dropped.
  quick_ = nullptr;
  slow_ = nullptr;
  long_polls_ = nullptr;
}

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpOptions options) {
  auto server = std::make_unique<BeastServer>(std::move(options));
  RETURN_IF_ERROR(server->Listen());
  server->Run();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace shirabe::service
