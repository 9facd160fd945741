// Calls that wait for something in the store and hold no thread while they do: one thread for all
// of them hears of changes from the hub, and has those looked at again whose experiment has
// changed, or whose time has come. Used by the HTTP and gRPC servers
// (service/http/http_exchange.cc, service/grpc/grpc_long_poll.cc), and made before them; the hub
// outlives it. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "client/client.h"
#include "service/common/change_hub.h"
#include "service/common/worker_threads.h"

namespace shirabe::service {

struct LongPoll {
  std::string caller;             // takes turns with others, as in Workers
  ExperimentKey experiment = {};  // whose changes matter; without a name: all of them
  absl::Duration patience = absl::ZeroDuration();
  absl::Duration poll = absl::InfiniteDuration();  // looks again so often without a change, too
  // Looks whether what is waited for is there, and then answers the call: true = that is done, and
  // it is not called again. With `last` it must be: time is up, or the server ends. In a thread of
  // a worker, never in two at the same time.
  std::function<bool(bool last)> check;
};

class LongPollQueue {
 public:
  LongPollQueue(ChangeHub* hub, Clock* clock);
  // All that wait are looked at for the last time.
  ~LongPollQueue();

  // Looks at once, so that no change is missed, and again as it says. The number that it returns is
  // for CheckNow.
  int64_t Add(LongPoll wait);
  // Looks soon, whatever has changed: its caller has gone. Nothing if it is over.
  void CheckNow(int64_t id);
  // From now on every look is the last, also of what is added later: a request may be on its way
  // here when the server ends, and it is answered.
  void End();

 private:
  // Mostly the first change is the answer; many changes of an experiment in a row are one.
  static constexpr absl::Duration kFirstBreath = absl::Milliseconds(1);
  static constexpr absl::Duration kLastBreath = absl::Milliseconds(20);

  struct Entry {
    LongPoll wait;
    absl::Duration deadline = absl::ZeroDuration();  // monotonic
    absl::Duration due = absl::ZeroDuration();
    absl::Duration looked = -absl::InfiniteDuration();
    absl::Duration breath = kFirstBreath;  // until the next look, whatever changes
    bool running = false;
    bool again = false;  // something has changed meanwhile
  };
  void Run();
  void OnChanges(const std::vector<db::Change>& changes);
  // Returns how long it is until the next is due.
  absl::Duration StartDue(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartCheck(int64_t id, Entry& entry, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnChecked(int64_t id, bool done);

  ChangeHub* const hub_;
  Clock* const clock_;
  int listener_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::map<int64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is added any more
  Workers workers_;
  std::thread thread_;  // the last member: it uses the others
};

// What calls that wait do at each look, the same over HTTP and gRPC: asking for a trial, and
// deleting an experiment. Made by a handler for one call, with the client of its caller, which it
// owns; used by one thread at a time.

// So often a deletion is looked at without a change of the store: files go after the records.
inline constexpr absl::Duration kDeletionPoll = absl::Milliseconds(100);

class PendingAskCheck {
 public:
  PendingAskCheck(std::unique_ptr<client::Client> client, ExperimentKey key, std::string caller)
      : client_(std::move(client)), key_(std::move(key)), caller_(std::move(caller)) {}
  // Asks; what it gives may still be pending.
  StatusOr<v1::AskReply> Begin() { return client_->Ask(key_, caller_, absl::ZeroDuration()); }
  // What has come of it by now.
  StatusOr<v1::AskReply> Check();
  // A trial, or why there is none; nothing while it is pending, unless it is the last look.
  std::optional<StatusOr<v1::AskReply>> TryAnswer(bool last);

  client::Client& client() { return *client_; }
  const ExperimentKey& key() const { return key_; }

 private:
  std::unique_ptr<client::Client> client_;
  ExperimentKey key_;
  std::string caller_;
};

class DeletionCheck {
 public:
  DeletionCheck(std::unique_ptr<client::Client> client, ExperimentKey key)
      : client_(std::move(client)), key_(std::move(key)) {}
  // Asks for it; kDeadlineExceeded while it is under way.
  Status Begin();
  // OK when nothing of it is left, or an error; nothing while it is under way, unless it is the
  // last look.
  std::optional<Status> TryAnswer(bool last);

  const ExperimentKey& key() const { return key_; }

 private:
  std::unique_ptr<client::Client> client_;
  ExperimentKey key_;
};

// What a call that waits says of its waiting, over HTTP (service/http/http_message.h) and gRPC
// (service/grpc/grpc_long_poll.h) alike. A plain value.
struct LongPollTerms {
  ExperimentKey experiment = {};  // whose changes may bring the answer; without a name: all
  absl::Duration patience = absl::ZeroDuration();
  absl::Duration poll = absl::InfiniteDuration();  // looked at so often without a change, too
};

}  // namespace shirabe::service
