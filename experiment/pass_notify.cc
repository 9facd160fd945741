// What is told of an experiment, to whom, and what becomes of that.
#include "experiment/pass_steps.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/backoff.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/spec/field_rules.h"
#include "experiment/state/notification.h"

namespace shirabe::experiment {
namespace {

constexpr Backoff kDeliveryBackoff{absl::Seconds(1), absl::Hours(1)};
// Parts of budget.maxCost, in percent.
constexpr std::array kBudgetThresholds = {80, 100};
constexpr int64_t kEventPage = 500;

std::string CauseWord(v1::NotificationCause cause) {
  return WordOf(*v1::NotificationCause_descriptor(), cause);
}

const v1::Notification* FindWish(const v1::Experiment& experiment, const std::string& endpoint) {
  for (const v1::Notification& wish : experiment.spec().shirabe().notifications()) {
    if (wish.webhook().endpoint() == endpoint) return &wish;
  }
  return nullptr;
}

bool Wants(const v1::Notification* wish, v1::NotificationCause cause) {
  return wish != nullptr && absl::c_linear_search(wish->events(), cause);
}

v1::NotificationStatus& StatusOf(Delta& delta, const std::string& endpoint) {
  for (v1::NotificationStatus& one : *delta.mutable_shirabe().mutable_notifications()) {
    if (one.endpoint() == endpoint) return one;
  }
  v1::NotificationStatus& fresh = *delta.mutable_shirabe().add_notifications();
  fresh.set_endpoint(endpoint);
  return fresh;
}

// Finds what is new, and writes it down.
class Recorder {
 public:
  Recorder(const PassInput& in, Delta& delta) : in_(in), delta_(delta) {}

  void Best() {
    const v1::OptimalTrial& best = experiment().status().current_optimal_trial();
    if (!best.has_objective() || best.number() == memory().best_trial()) return;
    Remember().set_best_trial(best.number());
    Say(v1::ON_IMPROVED, "Improved",
        absl::StrCat("trial ", best.best_trial_name(), " is the best so far: ",
                     experiment().spec().objective().objective_metric_name(), " ",
                     FormatNumber(best.objective())));
  }

  void Budget(const BudgetState& money) {
    if (!money.cap || *money.cap <= 0) return;
    spent_ = money.spent;
    int reached = 0;
    for (const int percent : kBudgetThresholds) {
      if (money.spent >= *money.cap * percent / 100) reached = percent;
    }
    if (reached <= memory().budget_percent()) return;
    Remember().set_budget_percent(reached);
    const std::string& currency = experiment().spec().shirabe().budget().currency();
    Say(v1::ON_BUDGET_THRESHOLD, "BudgetThreshold",
        absl::StrFormat("%d %% of the budget are spent: %s of %s %s", reached,
                        FormatNumber(money.spent), FormatNumber(*money.cap),
                        currency.empty() ? "USD" : currency));
  }

  void End() {
    const bool ended = IsEnded(experiment());
    if (ended == memory().ended()) return;
    Remember().set_ended(ended);
    if (!ended) return;  // it goes on: its next end is told as well
    const v1::Condition condition = CurrentCondition(experiment());
    const bool succeeded = condition.type() == "Succeeded";
    Say(succeeded ? v1::ON_SUCCEEDED : v1::ON_FAILED, condition.reason(), condition.message());
  }

 private:
  const v1::Experiment& experiment() const { return delta_.experiment(); }
  const v1::NotificationMemory& memory() const {
    return experiment().status().shirabe().notified();
  }
  v1::NotificationMemory& Remember() { return *delta_.mutable_shirabe().mutable_notified(); }

  void Say(v1::NotificationCause cause, const std::string& reason, const std::string& message) {
    std::vector<std::string> endpoints;
    for (const v1::Notification& wish : experiment().spec().shirabe().notifications()) {
      if (Wants(&wish, cause)) endpoints.push_back(wish.webhook().endpoint());
    }
    if (endpoints.empty()) return;
    const int64_t number = memory().made() + 1;
    Remember().set_made(number);
    for (const std::string& endpoint : endpoints) {
      v1::NotificationStatus& status = StatusOf(delta_, endpoint);
      status.set_pending(status.pending() + 1);
    }
    v1::Event event;
    event.set_reason("NotificationQueued");
    event.set_message(
        absl::StrCat(CauseWord(cause), ", for ", absl::StrJoin(endpoints, ", "), ": ", message));
    v1::EventNotification& outgoing = *event.mutable_notification();
    outgoing.set_number(number);
    outgoing.set_cause(cause);
    outgoing.set_body(NotificationBody(
        experiment(),
        {.cause = cause, .reason = reason, .message = message, .time = in_.now, .spent = spent_},
        number));
    delta_.AddEvent(std::move(event));
  }

  const PassInput& in_;
  Delta& delta_;
  double spent_ = 0;
};

// Half of it to all of it: what failed at the same time does not come back at the same time.
absl::Duration DelayAfter(const notify::Notification& notification, int attempts) {
  Rng rng(Mix(Fingerprint(notification.id + notification.endpoint), attempts));
  return kDeliveryBackoff.Delay(attempts - 1) * (0.5 + 0.5 * rng.Uniform());
}

void FinishDelivery(const NotificationTicket& answered, v1::NotificationStatus& status) {
  status.set_done(answered.number);
  status.set_pending(std::max<int64_t>(0, status.pending() - 1));
  status.set_attempts(0);
  status.clear_not_before();
}

void FailDelivery(const PassInput& in, const NotificationTicket& answered, Delta& delta) {
  const std::string& endpoint = answered.notification.endpoint;
  v1::NotificationStatus& status = StatusOf(delta, endpoint);
  const std::string error = Message(answered.result->status);
  const bool first = status.error().empty();
  status.set_error(error);
  status.set_attempts(status.attempts() + 1);
  const std::string which =
      absl::StrCat(answered.cause, " (", answered.number, ") to ", endpoint, ": ", error);
  if (status.attempts() >= kMaxNotificationAttempts ||
      in.now - answered.made >= kMaxNotificationAge) {
    delta.AddEvent(true, "NotificationGivenUp",
                   absl::StrCat(which, "; given up after ", status.attempts(), " attempts"));
    status.set_given_up(status.given_up() + 1);
    return FinishDelivery(answered, status);
  }
  const absl::Duration delay =
      std::max(DelayAfter(answered.notification, status.attempts()), answered.result->retry_after);
  *status.mutable_not_before() = ToProto(in.now + delay);
  if (first) {
    delta.AddEvent(true, "NotificationFailed",
                   which + "; it is tried again for a day, ever less often");
  }
}

}  // namespace

Delta RecordNotifications(const PassInput& in, const BudgetState& money) {
  Delta delta(in.state, in.now);
  if (in.state.experiment().spec().shirabe().notifications().empty()) return delta;
  Recorder recorder(in, delta);
  recorder.Best();
  recorder.Budget(money);
  recorder.End();
  return delta;
}

Delta ApplyDelivery(const PassInput& in, const NotificationTicket& answered) {
  Delta delta(in.state, in.now);
  if (!answered.result->status.ok()) {
    FailDelivery(in, answered, delta);
    return delta;
  }
  v1::NotificationStatus& status = StatusOf(delta, answered.notification.endpoint);
  status.set_delivered(status.delivered() + 1);
  status.clear_error();
  *status.mutable_last_delivered() = ToProto(in.now);
  FinishDelivery(answered, status);
  delta.AddEvent(
      false, "NotificationDelivered",
      absl::StrCat(answered.cause, " (", answered.number, ") to ", answered.notification.endpoint));
  return delta;
}

absl::Duration UntilDelivery(const PassInput& in, const v1::NotificationStatus& endpoint) {
  if (endpoint.pending() == 0) return absl::InfiniteDuration();
  if (!endpoint.has_not_before()) return absl::ZeroDuration();
  const absl::Duration wait = FromProto(endpoint.not_before()) - in.now;
  // The clock was set back, else it could not be so long.
  if (wait > kDeliveryBackoff.max) return absl::ZeroDuration();
  return std::max(absl::ZeroDuration(), wait);
}

StatusOr<NotificationTicketPtr> NextDelivery(const PassInput& in,
                                             const v1::NotificationStatus& endpoint,
                                             int64_t& after) {
  const v1::Notification* const wish = FindWish(in.state.experiment(), endpoint.endpoint());
  for (;;) {
    ASSIGN_OR_RETURN(const auto events,
                     in.options.store->ListEvents(
                         {.experiment = in.state.key(), .after_id = after, .limit = kEventPage}));
    for (const v1::Event& event : events) {
      const v1::EventNotification& outgoing = event.notification();
      if (outgoing.number() <= endpoint.done() || !Wants(wish, outgoing.cause())) continue;
      auto ticket = std::make_shared<NotificationTicket>(  // shared with its worker
          notify::Notification{.endpoint = endpoint.endpoint(),
                               .ns = in.state.key().ns,
                               .id = NotificationId(in.state.experiment(), outgoing.number()),
                               .body = outgoing.body()});
      ticket->sender = in.options.sender;
      ticket->number = outgoing.number();
      ticket->cause = CauseWord(outgoing.cause());
      ticket->made = FromProto(event.time());
      after = event.id() - 1;  // it may have to be made again
      return ticket;
    }
    if (static_cast<int64_t>(events.size()) < kEventPage) return nullptr;
    after = events.back().id();
  }
}

Delta DropDeliveries(const PassInput& in, const std::string& endpoint) {
  Delta delta(in.state, in.now);
  v1::NotificationStatus& status = StatusOf(delta, endpoint);
  delta.AddEvent(true, "NotificationGivenUp",
                 absl::StrCat(status.pending(), " to ", endpoint, ": their events are gone"));
  status.set_given_up(status.given_up() + status.pending());
  status.set_pending(0);
  return delta;
}

}  // namespace shirabe::experiment
