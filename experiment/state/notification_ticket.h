// One attempt to deliver one notification, away from the reconciler: a ticket of AlgorithmWorkers
// with a lane for each endpoint, so that one which hangs delays no other. What it says is
// looked up in the store when it is made (experiment/pass_notify.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "experiment/state/algorithm_workers.h"
#include "notify/webhook.h"

namespace shirabe::experiment {

struct NotificationTicket : public Ticket {
  explicit NotificationTicket(notify::Notification what)
      : Ticket("webhook " + what.endpoint), notification(std::move(what)) {}

  const notify::Notification notification;
  notify::Sender* sender = nullptr;          // outlives the workers
  int64_t number = 0;                        // of the notification
  std::string cause;                         // its word
  absl::Time made;                           // when that happened which it tells
  std::optional<notify::SendResult> result;  // once it is done

 private:
  void Call() override { result = sender->Send(notification, stop_.get_token()); }
  void OnCancel() override { stop_.request_stop(); }

  std::stop_source stop_;
};

}  // namespace shirabe::experiment
