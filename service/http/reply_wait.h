// A reply that waits for the store, as a coroutine awaits it: nothing of it is in a thread until it
// is there, its time is up, or its caller has gone. Made by an exchange (http_exchange.h) for one
// reply; used in the io thread, but for the looks, which workers take one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "service/http/http_message.h"
#include "service/http/http_task.h"

namespace shirabe::service {

class LongPollQueue;
class Router;

class ReplyWait {
 public:
  // Both outlive it.
  ReplyWait(Router* router, LongPollQueue* queue) : router_(router), queue_(queue) {}

  // What the pending reply has come to; nothing if its caller has gone. Awaited once.
  Task<std::optional<HttpReply>> Run(std::unique_ptr<PendingReply> pending, std::string caller);
  // Its caller has gone: it is over soon.
  void Abandon();

 private:
  bool Check(bool last, const Resumption<std::optional<HttpReply>>& resume);

  Router* const router_;
  LongPollQueue* const queue_;
  std::unique_ptr<PendingReply> pending_;
  std::atomic<bool> gone_ = false;
  int64_t id_ = 0;  // in the queue; 0 = not there yet
};

}  // namespace shirabe::service
