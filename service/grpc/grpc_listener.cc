#include "service/grpc/grpc_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpc/support/log.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"

namespace shirabe::service {
namespace {

constexpr int kAcceptAgainMs = 100;
constexpr int kEvents = 64;
// As gRPC has it for its own listener with our keepalive: what is sent and not acknowledged for so
// long ends the connection.
constexpr unsigned kUserTimeoutMs = 20'000;

// gRPC writes a line of its own to stderr for each handshake that fails, and all who can connect
// can make them fail: ours is JSON, and comes once in kGrpcLog.
constexpr absl::Duration kGrpcLog = absl::Seconds(10);

void LogOfServer(gpr_log_func_args* line) {
  if (line->severity != GPR_LOG_SEVERITY_ERROR) {  // asked for, by GRPC_VERBOSITY
    return Log(LogLevel::kInfo, "gRPC", {{"says", Printable(line->message)}});
  }
  static std::atomic<int64_t> next = 0, omitted = 0;
  const int64_t now = absl::ToInt64Milliseconds(RealClock()->Monotonic());
  int64_t due = next;
  if (now < due || !next.compare_exchange_strong(due, now + absl::ToInt64Milliseconds(kGrpcLog))) {
    ++omitted;
    return;
  }
  Log(LogLevel::kWarning, "gRPC reports an error",
      {{"error", Printable(line->message)}, {"omitted", absl::StrCat(omitted.exchange(0))}});
}

// As gRPC names the other end: ipv4:10.0.0.7:80, ipv6:[fd00::7]:80.
std::string PeerOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(v6.sin6_port));
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return absl::StrCat("ipv6:[", text, "]:", ntohs(v6.sin6_port));
}

// However brackets are written.
std::string KeyOf(const std::string& peer) {
  return AddressOfPeer(peer) + peer.substr(peer.rfind(':') + 1).insert(0, " ");
}

Status Watch(const Fd& epoll, int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("epoll_ctl: ", std::strerror(errno)));
}

}  // namespace

// Our descriptor of a connection that gRPC has another one of: with it we see its end, and can
// bring it about, whatever gRPC's number means by then.
class GrpcListener::Accepted : public TrackedConnection {
 public:
  Accepted(GrpcListener* listener, Fd fd, std::string key)
      : listener_(listener), fd_(std::move(fd)), key_(std::move(key)) {}
  // The listener's table calls it, so its mutex is held, which clang cannot see through the base.
  // This object is gone afterwards.
  void Close() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    shutdown(fd_.get(), SHUT_RDWR);  // gRPC reads the end of it and closes its own
    listener_->Remove(fd_.get());
  }
  const std::string& key() const { return key_; }

 private:
  GrpcListener* const listener_;
  const Fd fd_;
  const std::string key_;
};

StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Open(Options options) {
  auto listener = std::make_unique<GrpcListener>(std::move(options));
  ASSIGN_OR_RETURN(listener->socket_,
                   Listen(listener->options_.option, listener->options_.address));
  listener->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  listener->stop_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->epoll_.valid() || !listener->stop_.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(listener->options_.option, ": no file is left: ", std::strerror(errno)));
  }
  RETURN_IF_ERROR(Watch(listener->epoll_, listener->socket_.fd.get(), EPOLLIN));
  RETURN_IF_ERROR(Watch(listener->epoll_, listener->stop_.get(), EPOLLIN));
  return listener;
}

GrpcListener::GrpcListener(Options options)
    : options_(std::move(options)), table_(options_.limits) {}

GrpcListener::~GrpcListener() { Stop(); }

void GrpcListener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) < 0) {
    Log(LogLevel::kWarning, "cannot stop a listener", {{"option", options_.option}});
  }
  thread_.join();
  socket_.fd = Fd();
}

void GrpcListener::AddTo(grpc::ServerBuilder& builder, const Credentials& credentials) {
  gpr_set_log_function(LogOfServer);
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  // Statistics of each connection and call, for a service that we do not have.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials);
}

void GrpcListener::Start() {
  thread_ = std::thread([this] { Run(); });
}

void GrpcListener::Run() {
  std::array<epoll_event, kEvents> events;
  while (true) {
    const int n = epoll_wait(epoll_.get(), events.data(), kEvents, -1);
    bool more = false;
    // Those that have ended first: a new connection may get the number of one of them.
    for (int i = 0; i < n; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) return;
      more = more || fd == socket_.fd.get();
      const MutexLock lock(mutex_);
      Remove(fd);
    }
    while (more) more = Accept();
  }
}

bool GrpcListener::Accept() {
  Fd fd(accept4(socket_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    const std::string peer = PeerOf(fd.get());
    if (!peer.empty()) Track(std::move(fd), peer);  // else it has gone already
    return true;
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    Log(LogLevel::kWarning, "cannot accept a connection", {{"why", std::strerror(errno)}});
    pollfd wait = {stop_.get(), POLLIN, 0};
    poll(&wait, 1, kAcceptAgainMs);
    return false;
  }
  return errno == EINTR || errno == ECONNABORTED;
}

void GrpcListener::Track(Fd fd, const std::string& peer) {
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof kUserTimeoutMs);
  Fd ours(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  const int number = ours.get();
  {
    const MutexLock lock(mutex_);
    const std::string address = AddressGroup(AddressOfPeer(peer));
    const auto slot = ours.valid() ? table_.Find(address) : ConnectionTable::ConnectionSlot::kNone;
    if (slot != ConnectionTable::ConnectionSlot::kTable || !Watch(epoll_, number, 0).ok()) {
      options_.metrics->Add("shirabe_grpc_connections_refused_total", {});
      return;
    }
    auto accepted = std::make_unique<Accepted>(this, std::move(ours), KeyOf(peer));
    table_.Enter(accepted.get(), address, slot);
    by_peer_[accepted->key()] = accepted.get();
    accepted_[number] = std::move(accepted);
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = socket_.fd.get();
  connection.fd = fd.release();
  acceptor_->HandleNewConnection(&connection);
}

void GrpcListener::Remove(int fd) {
  const auto found = accepted_.find(fd);
  if (found == accepted_.end()) return;
  // Or its end is told again and again, until gRPC has closed its own.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  Accepted* const accepted = found->second.get();
  table_.Leave(accepted);
  const auto peer = by_peer_.find(accepted->key());
  if (peer != by_peer_.end() && peer->second == accepted) by_peer_.erase(peer);
  accepted_.erase(found);
}

void GrpcListener::SetKnown(const std::string& peer) {
  const std::string key = KeyOf(peer);
  const MutexLock lock(mutex_);
  const auto found = by_peer_.find(key);
  if (found == by_peer_.end()) return;
  table_.SetConnectionState(found->second, ConnectionTable::ConnectionState::kIdle);
}

}  // namespace shirabe::service
