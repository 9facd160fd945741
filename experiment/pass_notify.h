// What becomes of spec.shirabe.notifications: steps of a pass (pass_steps.h).
//
// The outbox is the list of events. What is to be told is an event with a number and a body, which
// is written in the Commit that holds what it tells; status.shirabe.notifications says how far each
// endpoint has come, and is written once an endpoint has answered. Only the owner of the experiment
// delivers, one after another to each endpoint, so that they come in order. A process that dies
// between answer and Commit leaves one that is delivered again, under the same id; none is lost.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "experiment/after_end.h"
#include "experiment/pass_steps.h"
#include "experiment/plan.h"
#include "experiment/state/notification_ticket.h"

namespace shirabe::experiment {

// How long an endpoint is asked to take one notification, and how often at most.
inline constexpr absl::Duration kMaxNotificationAge = absl::Hours(24);
inline constexpr int kMaxNotificationAttempts = 30;

// What has happened and no event has said yet.
Delta RecordNotifications(const PassInput& in, const BudgetState& money);

// An endpoint has answered, or has not.
Delta ApplyDelivery(const PassInput& in, const NotificationTicket& answered);

// The next attempt for this endpoint, if one is due: it is read from the store, after the event
// `after`, which moves on. Null where there is nothing to do now.
using NotificationTicketPtr = std::shared_ptr<NotificationTicket>;  // shared with its worker
StatusOr<NotificationTicketPtr> NextDelivery(const PassInput& in,
                                             const v1::NotificationStatus& endpoint,
                                             int64_t& after);
// Until it is; infinite where nothing waits.
absl::Duration UntilDelivery(const PassInput& in, const v1::NotificationStatus& endpoint);

// Its events are gone, in a way that none of ours takes: nothing is waited for any longer.
Delta DropDeliveries(const PassInput& in, const std::string& endpoint);

}  // namespace shirabe::experiment
