// A wire between a PostgreSQL client and its server that can be cut at the worst moment: after the
// server has carried a COMMIT out, before its answer arrives; or before the COMMIT arrives. For
// tests. Listens on a free port of the loopback; ends with its owner.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"

namespace shirabe::db {

class PostgresProxy {
 public:
  enum class Cut { kNone, kAnswer, kRequest };

  // To the server's Unix socket.
  explicit PostgresProxy(std::string upstream)
      : upstream_(std::move(upstream)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    auto* any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    CHECK(bind(listener_.get(), any, size) == 0 && listen(listener_.get(), 16) == 0);
    CHECK(getsockname(listener_.get(), any, &size) == 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~PostgresProxy() {
    stop_ = true;
    acceptor_.join();
    for (std::thread& thread : wires_) thread.join();
  }

  // As after "postgres:".
  std::string Address(const std::string& database) const {
    return absl::StrCat("host=127.0.0.1 port=", port_, " user=postgres sslmode=disable",
                        " gssencmode=disable dbname=", database);
  }
  // The next transaction on any connection that is open: its second round trip, that with COMMIT,
  // is cut before the request or before the answer. New connections work, unless `refuse`.
  void Arm(Cut cut) {
    answers_left_ = 1;
    cut_ = cut;
  }
  void Refuse(bool refuse) { refuse_ = refuse; }
  int cuts() const { return cuts_; }

 private:
  void Accept() {
    while (!stop_) {
      pollfd fd{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (poll(&fd, 1, 20) <= 0) continue;
      Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid() || refuse_) continue;
      wires_.emplace_back([this, client = client.release()] { Carry(Fd(client)); });
    }
  }

  Fd Connect() const {
    Fd server(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX};
    CHECK(upstream_.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, upstream_.c_str(), upstream_.size() + 1);
    const auto* any = reinterpret_cast<const sockaddr*>(&address);
    return connect(server.get(), any, sizeof address) == 0 ? std::move(server) : Fd();
  }

  void Carry(Fd client) {
    const Fd server = Connect();
    if (!server.valid()) return;
    std::string pending;  // a message of the server that is not complete
    bool begun = false;   // an answer has come, so it is a session
    while (!stop_) {
      pollfd fds[] = {{.fd = client.get(), .events = POLLIN, .revents = 0},
                      {.fd = server.get(), .events = POLLIN, .revents = 0}};
      if (poll(fds, 2, 20) <= 0) continue;
      std::string data;
      if (fds[0].revents != 0) {
        if (!Read(client, &data)) return;
        if (begun && cut_ == Cut::kRequest && answers_left_ == 0) return Sever();
        if (!Write(server, data)) return;
      }
      if (fds[1].revents == 0) continue;
      if (!Read(server, &data)) return;
      const int answers = Answers(data, &pending);
      if (begun && cut_ == Cut::kAnswer && answers_left_ == 0) {
        if (answers > 0) return Sever();
        continue;  // swallowed
      }
      if (begun && cut_ != Cut::kNone && answers > 0) answers_left_ = 0;
      begun = begun || answers > 0;
      if (!Write(client, data)) return;
    }
  }

  void Sever() {
    cut_ = Cut::kNone;
    ++cuts_;
  }

  // How often the server says that it is ready for the next request: 'Z' in its stream of messages,
  // each a letter and a length that counts itself.
  static int Answers(const std::string& data, std::string* pending) {
    *pending += data;
    int answers = 0;
    while (pending->size() >= 5) {
      uint32_t length = 0;
      std::memcpy(&length, pending->data() + 1, 4);
      length = ntohl(length) + 1;
      if (pending->size() < length) break;
      answers += (*pending)[0] == 'Z' ? 1 : 0;
      pending->erase(0, length);
    }
    return answers;
  }
  static bool Read(const Fd& fd, std::string* data) {
    data->resize(1 << 16);
    const ssize_t size = recv(fd.get(), data->data(), data->size(), 0);
    data->resize(size > 0 ? static_cast<size_t>(size) : 0);
    return size > 0;
  }
  static bool Write(const Fd& fd, const std::string& data) {
    size_t sent = 0;
    while (sent < data.size()) {
      const ssize_t size = send(fd.get(), data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) return false;
      sent += static_cast<size_t>(size);
    }
    return true;
  }

  const std::string upstream_;
  const Fd listener_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> refuse_ = false;
  std::atomic<Cut> cut_ = Cut::kNone;
  std::atomic<int> answers_left_ = 0;
  std::atomic<int> cuts_ = 0;
  std::vector<std::thread> wires_;  // the acceptor's, until it has ended
  std::thread acceptor_;
};

}  // namespace shirabe::db
