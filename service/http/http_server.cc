#include "service/http/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/log.h"
#include "service/common/change_hub.h"
#include "service/common/connection_table.h"
#include "service/common/server_metrics.h"
#include "service/common/store_metrics.h"
#include "service/http/http_message.h"
#include "service/http/http_session.h"

namespace shirabe::service {
namespace {

using asio::ip::tcp;
using Error = boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<tcp, AnyStream::executor_type>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>,
                                         AnyStream::executor_type>;

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
  Error error;
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
  void Accept();
  void OnAccept(Error error, AnyStream::Socket socket);
  void RejectConnection(AnyStream::Socket socket);
  void Drain();
  void WakeStreams();

  HttpOptions options_;
  std::unique_ptr<Metrics> own_metrics_;
  std::unique_ptr<ChangeHub> own_hub_;
  std::unique_ptr<StoreMetrics> own_store_metrics_;
  asio::io_context io_{1};
  Acceptor acceptor_;
  Timer again_;
  Timer deadline_;
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
  Error error;
  acceptor_.assign(socket.family == AF_INET6 ? tcp::v6() : tcp::v4(), socket.fd.get(), error);
  if (error) return absl::UnavailableError(absl::StrCat("--http: ", error.message()));
  socket.fd.release();
  address_ = absl::StrCat(options_.address.substr(0, options_.address.rfind(':')), ":", port_);
  return absl::OkStatus();
}

void BeastServer::MakeDependents() {
  HttpContext& context = options_.context;
  context.patience = &shutdown_wait_;
  if (context.quotas == nullptr) {
    own_quotas_ = std::make_unique<Quotas>();
    context.quotas = own_quotas_.get();
  }
  if (context.hub == nullptr) {
    own_hub_ = std::make_unique<ChangeHub>(*context.client);
    context.hub = own_hub_.get();
  }
  if (context.metrics == nullptr) {
    own_metrics_ = std::make_unique<Metrics>();
    context.metrics = own_metrics_.get();
    own_store_metrics_ =
        std::make_unique<StoreMetrics>(StoreMetrics::Options{.client = context.client,
                                                             .hub = context.hub,
                                                             .metrics = context.metrics,
                                                             .clock = context.clock});
  }
}

void BeastServer::Run() {
  const size_t most = RaiseFileLimit() * 5 / 8;  // the rest is for gRPC (server.cc)
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
           .io = &io_,
           .tls = with_tls_ ? &tls_ : nullptr,
           .router = router_.get(),
           .quick = quick_.get(),
           .slow = slow_.get(),
           .waits = long_polls_.get(),
           .quotas = options_.context.quotas,
           .table = table_.get(),
           .metrics = options_.context.metrics,
           .clock = options_.context.clock};
  listener_ = options_.context.hub->Listen([this](const auto&) {
    if (!wake_posted_.exchange(true)) asio::post(io_, [this] { WakeStreams(); });
  });
  if (own_hub_ != nullptr) own_hub_->Start();
  Accept();
  thread_ = std::thread([this] { io_.run(); });
}

void BeastServer::Accept() {
  acceptor_.async_accept(io_.get_executor(), [this](Error error, AnyStream::Socket socket) {
    OnAccept(error, std::move(socket));
  });
}

void BeastServer::OnAccept(Error error, AnyStream::Socket socket) {
  if (host_.draining) return;
  if (error) {
    // No file is left for it, most likely: those who are here are served, and may go.
    Log(LogLevel::kWarning, "cannot accept a connection", {{"why", error.message()}});
    again_.expires_after(absl::ToChronoMilliseconds(kAcceptAgain));
    return again_.async_wait([this](Error) {
      if (!host_.draining) Accept();
    });
  }
  const std::string peer = AddressGroup(socket.remote_endpoint(error).address().to_string());
  const auto slot = table_->Find(peer);
  if (error || slot == ConnectionTable::ConnectionSlot::kNone) {
    RejectConnection(std::move(socket));
  } else {
    socket.set_option(tcp::no_delay(true), error);
    std::make_shared<Session>(std::move(socket), host_, peer)->Start(slot);
  }
  Accept();
}

// Said without waiting: what does not fit into the socket's buffer is not said.
void BeastServer::RejectConnection(AnyStream::Socket socket) {
  if (host_.metrics != nullptr) host_.metrics->Add("shirabe_http_connections_refused_total", {});
  if (host_.tls != nullptr) return;
  HttpReply reply =
      ErrorReply(absl::UnavailableError("there are too many connections already: try again"));
  const std::string text = HeadOf(reply, {.keep_alive = false}) + reply.body;
  Error ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void BeastServer::WakeStreams() {
  wake_posted_ = false;
  ++host_.wakes;
  std::vector<SessionPtr> waiting;  // one that is woken may leave the set
  for (const SessionPtr& session : host_.sessions) {
    if (session->waits()) waiting.push_back(session);
  }
  for (const SessionPtr& session : waiting) session->Wake();
}

void BeastServer::Drain() {
  host_.draining = true;
  Error ignored;
  acceptor_.close(ignored);
  again_.cancel();
  host_.on_last_gone = [this] { deadline_.cancel(); };
  const std::set<SessionPtr> all = host_.sessions;
  for (const SessionPtr& session : all) session->Drain();
  if (host_.sessions.empty()) return;
  deadline_.expires_after(absl::ToChronoMilliseconds(options_.limits.drain));
  deadline_.async_wait([this](Error error) {
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
