// What calls that wait do at each look (waits.h), the same for both doors: asking for a trial, and
// deleting an experiment. Made by a handler for one call, with the client of its caller, which it
// owns; used by one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/client.h"

namespace shirabe::service {

// So often a deletion is looked at without a change of the store: files go after the records.
inline constexpr absl::Duration kDeletionPoll = absl::Milliseconds(100);

class WaitingAsk {
 public:
  WaitingAsk(std::unique_ptr<client::Client> client, ExperimentKey key, std::string caller)
      : client_(std::move(client)), key_(std::move(key)), caller_(std::move(caller)) {}
  // Asks; what it gives may still be pending.
  StatusOr<client::Asked> Begin() { return client_->Ask(key_, caller_, absl::ZeroDuration()); }
  // A trial, or why there is none; nothing while it is pending, unless it is the last look.
  std::optional<StatusOr<client::Asked>> Look(bool last);

  client::Client& client() { return *client_; }
  const ExperimentKey& key() const { return key_; }

 private:
  std::unique_ptr<client::Client> client_;
  ExperimentKey key_;
  std::string caller_;
};

class WaitingDeletion {
 public:
  WaitingDeletion(std::unique_ptr<client::Client> client, ExperimentKey key)
      : client_(std::move(client)), key_(std::move(key)) {}
  // Asks for it; kDeadlineExceeded while it is under way.
  Status Begin();
  // OK when nothing of it is left, or an error; nothing while it is under way, unless it is the
  // last look.
  std::optional<Status> Look(bool last);

  const ExperimentKey& key() const { return key_; }

 private:
  std::unique_ptr<client::Client> client_;
  ExperimentKey key_;
};

}  // namespace shirabe::service
