#include "net/http_client.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "net/curl_library.h"
#include "net/transfer.h"

namespace shirabe::net {
namespace {

// Calls that share connections, and are driven by one thread (libcurl's multi interface). One
// thread at a time; Wake may come from any.
class TransferLoop {
 public:
  // Shared: with several calls at the same time.
  TransferLoop(const CurlLibrary& curl, bool shared);
  ~TransferLoop();
  TransferLoop(const TransferLoop&) = delete;
  TransferLoop& operator=(const TransferLoop&) = delete;

  void Add(Transfer* transfer);
  // Ends it, if it has not ended yet.
  void Cancel(Transfer* transfer);
  // Does what can be done now. Returns those that have come to an end.
  std::vector<Transfer*> Step();
  // Until there is something to do, or Wake.
  void Wait();
  void Wake();

 private:
  void Remove(Transfer* transfer);

  const CurlLibrary& curl_;
  const bool shared_;
  CURLM* const multi_;
  Sockets sockets_;
  std::set<Transfer*> active_;
};

// Of a client. What is closed and opened again costs both ends a handshake.
constexpr long kMaxConnections = 32;
// libcurl 7.88 may wait although there is an answer to read: curl_multi_perform drops what was due
// while it ran, where a call began in it, and so the calls that share its HTTP/2 connection.
constexpr absl::Duration kSharedPollInterval = absl::Milliseconds(5);

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

// A call that the client's thread makes for another one.
class SharedCall {
 public:
  SharedCall(const CurlLibrary& curl, const HttpCall& call)
      : transfer_(curl, call, nullptr, /*own=*/false) {}

  // Of the client's thread until the call has finished.
  Transfer& transfer() { return transfer_; }

  void Finish() {
    const MutexLock lock(mutex_);
    finished_ = true;
    changed_.NotifyAll();
  }
  // False if a stop was requested before.
  bool Await(const std::stop_token& stop) {
    MutexLock lock(mutex_);
    return changed_.Wait(lock, stop,
                         [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_; });
  }

 private:
  Transfer transfer_;
  Mutex mutex_;
  CondVar changed_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class CurlClient : public HttpClient {
 public:
  explicit CurlClient(const CurlLibrary& curl) : curl_(curl), loop_(curl, /*shared=*/true) {}
  ~CurlClient() override {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    loop_.Wake();
    thread_.join();
  }

  HttpExchange Do(const HttpCall& call, const BodyCallback* sink, std::stop_token stop) override {
    const bool own = sink != nullptr || call.may_connect;
    return own ? DoHere(call, sink, stop) : DoShared(call, stop);
  }

 private:
  using CallPtr = std::shared_ptr<SharedCall>;  // shared: of the caller and the thread

  HttpExchange DoHere(const HttpCall& call, const BodyCallback* sink, const std::stop_token& stop);
  HttpExchange DoShared(const HttpCall& call, const std::stop_token& stop);
  void Post(std::vector<CallPtr>& to, const CallPtr& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const std::stop_token& stop);

  const CurlLibrary& curl_;
  TransferLoop loop_;  // of the thread, but for Wake
  Mutex mutex_;
  std::vector<CallPtr> added_ ABSL_GUARDED_BY(mutex_);
  std::vector<CallPtr> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_ ABSL_GUARDED_BY(mutex_);  // last: it uses all of the above
};

HttpExchange CurlClient::DoHere(const HttpCall& call, const BodyCallback* sink,
                                const std::stop_token& stop) {
  TransferLoop loop(curl_, /*shared=*/false);
  Transfer transfer(curl_, call, sink, /*own=*/true);
  if (const Status status = transfer.Prepare(); !status.ok()) return {.status = status};
  loop.Add(&transfer);
  const std::stop_callback wake(stop, [&loop] { loop.Wake(); });
  while (!stop.stop_requested() && loop.Step().empty()) loop.Wait();
  loop.Cancel(&transfer);
  return std::move(transfer.exchange());
}

HttpExchange CurlClient::DoShared(const HttpCall& call, const std::stop_token& stop) {
  const auto shared = std::make_shared<SharedCall>(curl_, call);
  if (const Status status = shared->transfer().Prepare(); !status.ok()) return {.status = status};
  {
    const MutexLock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token end) { Run(end); });
    Post(added_, shared);
  }
  if (!shared->Await(stop)) {
    {
      const MutexLock lock(mutex_);
      Post(cancelled_, shared);
    }
    shared->Await({});
  }
  return std::move(shared->transfer().exchange());
}

void CurlClient::Post(std::vector<CallPtr>& to, const CallPtr& call) {
  to.push_back(call);
  loop_.Wake();
}

void CurlClient::Run(const std::stop_token& stop) {
  std::map<Transfer*, CallPtr> running;
  const auto end = [&running](Transfer* transfer) {
    const auto node = running.extract(transfer);
    if (!node.empty()) node.mapped()->Finish();
  };
  while (!stop.stop_requested()) {
    std::vector<CallPtr> added;
    std::vector<CallPtr> cancelled;
    {
      const MutexLock lock(mutex_);
      added.swap(added_);
      cancelled.swap(cancelled_);
    }
    for (const CallPtr& call : added) {
      running[&call->transfer()] = call;
      loop_.Add(&call->transfer());
    }
    for (const CallPtr& call : cancelled) {
      loop_.Cancel(&call->transfer());
      end(&call->transfer());
    }
    for (Transfer* transfer : loop_.Step()) end(transfer);
    loop_.Wait();
  }
}

}  // namespace

StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create() {
  ASSIGN_OR_RETURN(const CurlLibrary* curl, LoadCurlLibrary());
  return std::make_unique<CurlClient>(*curl);
}

}  // namespace shirabe::net
