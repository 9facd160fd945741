#include "net/transfer_loop.h"

#include <algorithm>

#include "absl/time/time.h"
#include "base/clock.h"

namespace shirabe::net {
namespace {

// Of a client. What is closed and opened again costs both ends a handshake.
constexpr long kMaxConnections = 32;
// libcurl 7.88 may wait although there is an answer to read: curl_multi_perform drops what was due
// while it ran, where a call began in it, and so the calls that share its HTTP/2 connection.
constexpr absl::Duration kSharedPollInterval = absl::Milliseconds(5);

}  // namespace

TransferLoop::TransferLoop(const CurlLibrary& curl, bool shared)
    : curl_(curl), shared_(shared), multi_(curl.curl_multi_init()) {
  CHECK(multi_ != nullptr);
  (void)curl_.curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kMaxConnections);
}

TransferLoop::~TransferLoop() {
  while (!active_.empty()) Cancel(*active_.begin());
  (void)curl_.curl_multi_cleanup(multi_);
}

void TransferLoop::Add(Transfer* transfer) {
  active_.insert(transfer);
  transfer->Use(&sockets_);
  CHECK(curl_.curl_multi_add_handle(multi_, transfer->easy()) == CURLM_OK);
}

void TransferLoop::Remove(Transfer* transfer) {
  active_.erase(transfer);
  (void)curl_.curl_multi_remove_handle(multi_, transfer->easy());
}

void TransferLoop::Cancel(Transfer* transfer) {
  if (!active_.contains(transfer)) return;
  transfer->Cancel();
  Remove(transfer);
}

std::vector<Transfer*> TransferLoop::Step() {
  std::vector<Transfer*> ended;
  int left = 0;
  (void)curl_.curl_multi_perform(multi_, &left);
  while (const CURLMsg* message = curl_.curl_multi_info_read(multi_, &left)) {
    const CURLcode code = message->data.result;
    Transfer* transfer = nullptr;
    (void)curl_.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    transfer->Finish(code);
    Remove(transfer);
    ended.push_back(transfer);
  }
  const absl::Duration now = RealClock()->Monotonic();
  const std::set<Transfer*> waiting = active_;
  for (Transfer* transfer : waiting) {
    if (now < transfer->deadline()) continue;
    transfer->Expire();
    Remove(transfer);
    ended.push_back(transfer);
  }
  return ended;
}

void TransferLoop::Wait() {
  absl::Duration left = absl::Hours(1);
  const absl::Duration now = RealClock()->Monotonic();
  for (const Transfer* transfer : active_) left = std::min(left, transfer->deadline() - now);
  if (shared_ && !active_.empty()) left = std::min(left, kSharedPollInterval);
  // A deadline is over after it, not before.
  const int64_t wait_ms = std::max<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0);
  (void)curl_.curl_multi_poll(multi_, nullptr, 0, static_cast<int>(wait_ms), nullptr);
}

void TransferLoop::Wake() { (void)curl_.curl_multi_wakeup(multi_); }

}  // namespace shirabe::net
