// What a webhook is sent of an experiment, and one attempt to send it.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "experiment/state/algorithm_workers.h"
#include "notify/webhook.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

// One attempt to deliver one notification, away from the reconciler: a ticket of AlgorithmWorkers
// with a lane for each endpoint, so that one which hangs delays no other. What it says is
// looked up in the store when it is made (experiment/pass_notify.cc).
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

// What there is to tell.
struct Occurrence {
  v1::NotificationCause cause = v1::NOTIFICATION_CAUSE_UNSPECIFIED;
  std::string reason;   // one word
  std::string message;  // for people
  absl::Time time;
  double spent = 0;  // by running attempts as well
};

// The same for each attempt to deliver it, and for no other.
std::string NotificationId(const v1::Experiment& experiment, int64_t number);

// As JSON: the same for each endpoint, of a bounded size, and nothing that its users may not see.
// Its fields are described in docs/design/formats.md. Pure.
std::string NotificationBody(const v1::Experiment& experiment, const Occurrence& what,
                             int64_t number);

}  // namespace shirabe::experiment
