// One call on its way through libcurl: what it is told of the call, and what it says of the answer.
// Driven by net/http_client.h. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "net/curl_library.h"
#include "net/http_call.h"

namespace shirabe::net {

// The sockets of the connections of one loop, which outlive the calls that opened them.
class Sockets {
 public:
  curl_socket_t Open(const curl_sockaddr& address);
  int Close(curl_socket_t socket);
  // Ends the connection with that port at our end, for all calls that use it.
  void ShutDown(int local_port) const;

 private:
  std::set<curl_socket_t> open_;
};

class Transfer {
 public:
  // All outlive it. One with a connection of its own is in a loop of its own.
  Transfer(const CurlLibrary& curl, const HttpCall& call, const BodyCallback* sink, bool own);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // What cannot be sent: kInvalidArgument.
  Status Prepare();
  // Before it is driven.
  void Use(Sockets* sockets);

  CURL* easy() const { return easy_; }
  absl::Duration deadline() const { return deadline_; }  // monotonic
  // It has not come to an end in time. Its connection goes as well: if it is dead, every later call
  // over it would wait as long.
  void Expire();
  void Cancel();
  // libcurl is done with it. What came of it is then in exchange().
  void Finish(CURLcode code);
  HttpExchange& exchange() { return exchange_; }

 private:
  template <class Value>
  void Set(CURLoption option, Value value);
  Status SetRequest();
  Status SetHeaders();
  void SetTls();
  void SetCallbacks();
  void AddHeader(const std::string& name, const std::string& value);
  void Fail(absl::StatusCode code, const std::string& words);
  void SetStatusOf(CURLcode code);
  // What libcurl calls. The return values are its own.
  curl_socket_t OnSocket(const curl_sockaddr& address);
  int OnConnected(int local_port);
  size_t OnHeader(std::string_view line);
  size_t OnBody(std::string_view piece);

  const CurlLibrary& curl_;
  const HttpCall& call_;
  const BodyCallback* const sink_;
  const bool own_;
  CURL* const easy_;
  CURLcode set_ = CURLE_OK;  // the first error of an option
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string authority_;  // HOST:PORT
  std::array<char, CURL_ERROR_SIZE> words_{};
  HttpExchange exchange_;
  bool failed_ = false;  // the exchange's status is our own word
  bool ended_ = false;   // the sink has had enough
  size_t header_bytes_ = 0;
  Sockets* sockets_ = nullptr;
  int local_port_ = 0;
  absl::Duration deadline_ = absl::InfiniteDuration();
};

}  // namespace shirabe::net
