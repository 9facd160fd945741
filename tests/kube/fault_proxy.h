// A wire between a client and a real API server that plays the worst days of both: answers of an
// overloaded server, answers that are lost after the server has done what was asked, watches that
// break off, fall silent, or have become too old. Plain HTTP towards the client, whatever the
// configuration says towards the server. Used by tests; thread-safe; ends with its owner.
//
// A request is called by what it asks: "POST jobs", "PATCH experiments/status", "GET pods/log",
// "LIST pods", "WATCH pods".
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kube/transport.h"
#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {

enum class Fault {
  kNone,
  // The server does not hear of the request.
  kBusy,         // 429, with Retry-After
  kUnavailable,  // 503
  kBroken,       // 500
  kCut,          // the connection is reset
  // The server does it.
  kDoneBroken,   // and 500 is said
  kDoneTimeout,  // and 504 is said
  kDoneCut,      // and the connection is reset
  kSlow,         // and the answer comes late
  // Of lists and watches.
  kGone,   // 410 Expired: as the answer to a list, as an ERROR event of a watch
  kStall,  // a watch falls silent after a while, and stays
  kTorn,   // a watch is reset in the middle of a line
  kEnds,   // a watch ends in order, as it does by itself every few minutes
};

struct StormOptions {
  uint64_t seed = 1;
  double share = 0.3;   // of the requests
  bool stalls = false;  // a client of some minutes' patience is waited for so long
};

class FaultProxy {
 public:
  explicit FaultProxy(const Config& server);
  ~FaultProxy();

  Config config() const { return door_->config(); }

  // Faults are drawn from now on for all requests. What the nth request of a kind for an object
  // meets depends on the seed alone, not on what threads do meanwhile.
  void Storm(const StormOptions& options);
  void Calm();
  // The next `times` requests of that kind meet this.
  void Inject(Fault fault, const std::string& what, int times = 1);

  // The nth request of that kind from now on is kept waiting: before the server hears of it, or
  // once it has done it. One at a time.
  enum class When { kBefore, kAfter };
  void Hold(const std::string& what, When when, int nth = 1);
  bool AwaitHeld(absl::Duration patience = absl::Minutes(1));
  // It goes on, if the client is still there; what had not been heard of is lost with its client.
  void Release();

  // The names of the objects of requests of that kind that the server has done, in order.
  std::vector<std::string> Done(const std::string& what) const;
  // How many requests have reached the server that may change something.
  int writes() const;
  // The latest of what has happened, for the message of a failure.
  std::string Story() const;

 private:
  struct Asked {
    std::string what;
    std::string name;
    bool watch = false, list = false, write = false;
  };
  struct Held {
    std::string what;
    When when = When::kBefore;
    int left = 0;  // until it is this one; 0 = none is wanted
    bool here = false;
    bool released = false;
  };
  struct Injected {
    Fault fault = Fault::kNone;
    int left = 0;
  };

  static Asked Parse(const FakeRequest& request);
  void Handle(FakeExchange& exchange);
  Fault Draw(const Asked& asked);
  bool IsHeld(const Asked& asked, When when);
  bool Keep(FakeExchange& exchange);  // false if its client has gone
  void Refuse(FakeExchange& exchange, const Asked& asked, Fault fault);
  void Carry(FakeExchange& exchange, const Asked& asked, Fault fault);
  void CarryStream(FakeExchange& exchange, const Asked& asked, Fault fault);
  void Note(const Asked& asked, const std::string& how);

  const std::unique_ptr<Transport> server_;
  const absl::Duration began_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // These are guarded by mutex_.
  std::optional<StormOptions> storm_;
  std::map<std::string, Injected> injected_;
  std::map<std::string, uint64_t> drawn_;  // how often, by kind and object
  Held held_;
  std::map<std::string, std::vector<std::string>> done_;
  int writes_ = 0;
  std::deque<std::string> story_;

  std::unique_ptr<FakeApiServer> door_;  // last: its threads use all of the above
};

}  // namespace shirabe::kube
