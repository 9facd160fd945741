#include "service/common/connection_table.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace shirabe::service {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

StatusOr<Addresses> Resolve(const std::string& option, const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": \"", address, "\" is not HOST:PORT, such as 127.0.0.1:8080"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") host = "127.0.0.1";
  if (host.empty()) host = "0.0.0.0";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, ": \"", host, "\" is not an address of this machine: write its number"));
  }
  return Addresses(found, freeaddrinfo);
}

Status Problem(const std::string& option, const std::string& address) {
  const std::string text =
      absl::StrCat("cannot listen on ", option, " ", address, ": ", std::strerror(errno));
  return errno == EACCES ? absl::PermissionDeniedError(text) : absl::UnavailableError(text);
}

}  // namespace

StatusOr<ListeningSocket> Listen(const std::string& option, const std::string& address) {
  ASSIGN_OR_RETURN(const Addresses found, Resolve(option, address));
  Fd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return Problem(option, address);
  }
  sockaddr_in6 bound = {};  // the larger of the two; the port stands at the same place in both
  socklen_t size = sizeof bound;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Problem(option, address);
  }
  return ListeningSocket{std::move(fd), ntohs(bound.sin6_port), found->ai_family};
}

size_t RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<size_t>::max();
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  if (before != limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    Log(LogLevel::kWarning, "cannot raise the limit of open files");
    limit.rlim_cur = before;
  }
  return limit.rlim_cur / 5 * 4;
}

ConnectionShares ShareConnections(size_t files, bool in_cluster, size_t grpc_listeners) {
  const size_t http = in_cluster ? files / 4 : files / 8 * 5;
  return {http, (files - http) / 2 / grpc_listeners};
}

ConnectionTable::ConnectionSlot ConnectionTable::Find(const std::string& address) {
  const auto found = counts_.find(address);
  const Count count = found == counts_.end() ? Count{} : found->second;
  const bool too_many = limits_.address > 0 && count.table >= limits_.address;
  if (too_many) return FindReserve(count);
  if (entries_.size() - reserved_ < limits_.all || MakeRoom()) return ConnectionSlot::kTable;
  return FindReserve(count);
}

bool ConnectionTable::MakeRoom() {
  for (Queue* queue : {&unknown_, &idle_}) {
    if (queue->empty()) continue;
    queue->front()->Close();
    return entries_.size() - reserved_ < limits_.all;
  }
  return false;
}

ConnectionTable::ConnectionSlot ConnectionTable::FindReserve(const Count& count) {
  if (count.reserve >= limits_.reserve_address || limits_.reserve == 0)
    return ConnectionSlot::kNone;
  if (reserved_ >= limits_.reserve) reserve_.front()->Close();
  return ConnectionSlot::kReserve;
}

void ConnectionTable::Enter(TrackedConnection* connection, const std::string& address,
                            ConnectionSlot slot) {
  Count& count = counts_[address];
  ++(slot == ConnectionSlot::kReserve ? count.reserve : count.table);
  if (slot == ConnectionSlot::kReserve) ++reserved_;
  entries_[connection] = Entry{address, slot, nullptr, {}};
  SetConnectionState(connection, ConnectionState::kUnknown);
}

void ConnectionTable::SetConnectionState(TrackedConnection* connection, ConnectionState standing) {
  const auto found = entries_.find(connection);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const bool reserve = entry.slot == ConnectionSlot::kReserve;
  if (reserve && entry.queue != nullptr) return;  // it keeps its place: it is not to stay
  if (entry.queue != nullptr) entry.queue->erase(entry.place);
  entry.queue = reserve                                 ? &reserve_
                : standing == ConnectionState::kUnknown ? &unknown_
                : standing == ConnectionState::kIdle    ? &idle_
                                                        : nullptr;
  if (entry.queue != nullptr) entry.place = entry.queue->insert(entry.queue->end(), connection);
}

void ConnectionTable::Leave(TrackedConnection* connection) {
  const auto found = entries_.find(connection);
  if (found == entries_.end()) return;
  const Entry entry = std::move(found->second);
  entries_.erase(found);
  if (entry.queue != nullptr) entry.queue->erase(entry.place);
  const bool reserve = entry.slot == ConnectionSlot::kReserve;
  if (reserve) --reserved_;
  const auto count = counts_.find(entry.address);
  --(reserve ? count->second.reserve : count->second.table);
  if (count->second.table + count->second.reserve == 0) counts_.erase(count);
}

}  // namespace shirabe::service
