#include "net/http_client.h"

#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "net/transfer.h"
#include "net/transfer_loop.h"

namespace shirabe::net {
namespace {

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
