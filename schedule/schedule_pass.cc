#include "schedule/schedule_pass.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/warm_start.h"
#include "experiment/submission.h"
#include "schedule/parse_schedule.h"

namespace shirabe::schedule {
namespace {

// Where what is due cannot be started, and for what runs: it is looked at again.
constexpr size_t kMaxEventBytes = 1000;
constexpr absl::Duration kRetry = absl::Seconds(30);
constexpr absl::Duration kLookAgain = absl::Seconds(2);

// Whole characters of it.
std::string Shortened(const std::string& text) {
  if (text.size() <= kMaxEventBytes) return text;
  size_t size = kMaxEventBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size) + "…";
}

ScheduleState StateOf(const v1::ScheduledExperiment& schedule) {
  ScheduleState state{.key = KeyOf(schedule),
                      .created = FromProto(schedule.metadata().creation_timestamp())};
  const v1::ScheduledExperimentStatus& status = schedule.status();
  if (status.has_last_schedule_time()) {
    state.last_scheduled = FromProto(status.last_schedule_time());
  }
  for (const v1::ScheduledStart& one : status.started()) {
    state.started.push_back({.name = one.name(),
                             .scheduled = FromProto(one.scheduled()),
                             .ended = one.ended(),
                             .succeeded = one.succeeded()});
  }
  return state;
}

class Pass {
 public:
  Pass(const RecordsOptions& options, ScheduleRow row)
      : options_(options),
        revision_(row.revision),
        schedule_(std::move(row.record)),
        before_(schedule_.status().SerializeAsString()),
        key_(KeyOf(schedule_)),
        now_(options.clock->Now()) {}

  StatusOr<absl::Time> Run() {
    RETURN_IF_ERROR(LookAtStarted());
    const auto rules = RulesOf(schedule_.spec());
    if (!rules.ok()) {  // the time zones of this machine are others
      Wait(Message(rules.status()));
      RETURN_IF_ERROR(Write());
      return now_ + kRetry;
    }
    const StartDecision decision = DecideStart(*rules, StateOf(schedule_), now_);
    SetNext(decision.wake);
    for (const std::string& name : decision.remove) RETURN_IF_ERROR(Remove(name));
    status().set_waiting(decision.waiting);
    if (decision.start) return Start(decision);
    RETURN_IF_ERROR(Write());
    const bool looks = !decision.waiting.empty() || status().active_size() > 0;
    return looks ? std::min(decision.wake, now_ + kLookAgain) : decision.wake;
  }

  StatusOr<std::string> StartByHand(const v1::Actor& actor) {
    RETURN_IF_ERROR(LookAtStarted());
    if (status().active_size() >= static_cast<int>(kMaxActive)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(status().active_size(), " experiments of schedule ", ToString(key_),
                       " run already, as many as may: cancel some first"));
    }
    const std::string name = ExperimentNameNow(key_.name, now_);
    v1::Experiment made = Make(name, now_);
    if (!actor.name().empty()) {
      *made.mutable_status()->mutable_shirabe()->mutable_created_by() = actor;
    }
    RETURN_IF_ERROR(CheckStart(made));
    Enter(name, now_, /*by_hand=*/true);
    AddEvent(schedule_, {.time = now_,
                         .reason = "ExperimentStarted",
                         .message = absl::StrCat("experiment ", name, " was started by hand"),
                         .actor = actor.name()});
    RETURN_IF_ERROR(Write(std::move(made)));
    return name;
  }

 private:
  v1::ScheduledExperimentStatus& status() { return *schedule_.mutable_status(); }

  // Those that were deleted are forgotten.
  Status LookAtStarted() {
    google::protobuf::RepeatedPtrField<v1::ScheduledStart> known;
    status().clear_active();
    for (v1::ScheduledStart& one : *status().mutable_started()) {
      if (!one.ended()) {
        const auto stored = options_.store->GetExperiment({key_.ns, one.name()});
        if (absl::IsNotFound(stored.status())) continue;
        RETURN_IF_ERROR(stored.status());
        LookAt(stored->record, one);
      } else if (!StillThere(one.name())) {
        continue;
      }
      if (!one.ended()) status().add_active(one.name());
      *known.Add() = one;
    }
    status().mutable_started()->Swap(&known);
    return absl::OkStatus();
  }

  bool StillThere(const std::string& name) const {
    return !absl::IsNotFound(options_.store->GetExperiment({key_.ns, name}).status());
  }

  void LookAt(const v1::Experiment& experiment, v1::ScheduledStart& one) {
    // What follows its success is a part of it.
    const bool ended =
        experiment::IsEnded(experiment) && !experiment::HasPendingFollowUp(experiment);
    if (!ended) return;
    one.set_ended(true);
    one.set_succeeded(experiment::CurrentCondition(experiment).type() == "Succeeded");
    if (!one.succeeded()) return;
    const google::protobuf::Timestamp& end = experiment.status().completion_time();
    if (FromProto(end) > FromProto(status().last_successful_time())) {
      *status().mutable_last_successful_time() = end;
    }
  }

  void SetNext(absl::Time next) {
    if (next == absl::InfiniteFuture()) return status().clear_next_schedule_time();
    *status().mutable_next_schedule_time() = ToProto(next);
  }

  void Wait(const std::string& why) {
    status().set_waiting(why);
    AddEvent(schedule_, {.time = now_, .reason = "StartFailed", .message = why, .warning = true});
  }

  v1::Intent IntentFor(v1::Intent::Verb verb) const {
    v1::Intent intent;
    intent.set_verb(verb);
    intent.mutable_actor()->set_name(absl::StrCat("schedule ", key_.name));
    return intent;
  }

  // By its owner. Asked once; a process that is killed before that is noted asks again.
  Status Remove(const std::string& name) {
    const Status sent = experiment::Send(*options_.store, *options_.clock, {key_.ns, name},
                                         IntentFor(v1::Intent::DELETE));
    if (!sent.ok() && !absl::IsNotFound(sent)) return sent;
    auto& started = *status().mutable_started();
    const auto gone = std::remove_if(started.begin(), started.end(),
                                     [&](const auto& one) { return one.name() == name; });
    started.erase(gone, started.end());
    return absl::OkStatus();
  }

  Status Cancel(const std::string& name) {
    const ExperimentKey key{key_.ns, name};
    const auto stored = options_.store->GetExperiment(key);
    if (absl::IsNotFound(stored.status())) return absl::OkStatus();
    RETURN_IF_ERROR(stored.status());
    if (stored->record.status().shirabe().stopping()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto asked, options_.store->ListIntents(key));
    for (const v1::Intent& intent : asked) {
      if (intent.verb() == v1::Intent::CANCEL) return absl::OkStatus();
    }
    return experiment::Send(*options_.store, *options_.clock, key, IntentFor(v1::Intent::CANCEL));
  }

  // The last one that has succeeded; "" if there is none.
  std::string LastSuccess() const {
    const v1::ScheduledStart* last = nullptr;
    for (const v1::ScheduledStart& one : schedule_.status().started()) {
      const bool later =
          last == nullptr || FromProto(last->scheduled()) < FromProto(one.scheduled());
      if (one.succeeded() && later) last = &one;
    }
    return last == nullptr ? "" : last->name();
  }

  v1::Experiment Make(const std::string& name, absl::Time scheduled) {
    const std::string last = schedule_.spec().warm_start_from_last() ? LastSuccess() : "";
    v1::Experiment made = ExperimentOf(schedule_, name, scheduled, last);
    // The template may be another one by now, whose space is not that of the last.
    const Status fits =
        last.empty() ? absl::OkStatus() : experiment::CheckWarmStart(*options_.store, made);
    if (!fits.ok()) {
      made = ExperimentOf(schedule_, name, scheduled, "");
      AddEvent(schedule_, {.time = now_,
                           .reason = "WarmStartLeftOut",
                           .message = absl::StrCat(name, " begins without the results of ", last,
                                                   ": ", Message(fits)),
                           .warning = true});
    }
    v1::ShirabeStatus& shirabe = *made.mutable_status()->mutable_shirabe();
    *shirabe.mutable_created_by() = schedule_.status().created_by();
    shirabe.set_namespace_uid(schedule_.status().namespace_uid());
    return made;
  }

  Status CheckStart(const v1::Experiment& made) const {
    for (const experiment::Finding& finding : experiment::Validate(made)) {
      if (!finding.warning) return absl::InvalidArgumentError(experiment::InWords(finding));
    }
    RETURN_IF_ERROR(experiment::CheckWarmStart(*options_.store, made));
    return options_.check ? options_.check(made) : absl::OkStatus();
  }

  void Enter(const std::string& name, absl::Time scheduled, bool by_hand) {
    v1::ScheduledStart& one = *status().add_started();
    one.set_name(name);
    *one.mutable_scheduled() = ToProto(scheduled);
    one.set_by_hand(by_hand);
    status().add_active(name);
    status().set_starts(status().starts() + 1);
    status().set_last_experiment(name);
  }

  // What a schedule does at its time. The mark that it did is in the same write.
  StatusOr<absl::Time> Start(const StartDecision& decision) {
    v1::Experiment made = Make(decision.name, *decision.start);
    const Status may = CheckStart(made);
    if (!may.ok()) {
      Wait(absl::StrCat("experiment ", decision.name, " cannot be started: ", Message(may)));
      RETURN_IF_ERROR(Write());
      return std::min(decision.wake, now_ + kRetry);
    }
    for (const std::string& name : decision.stop) RETURN_IF_ERROR(Cancel(name));
    *status().mutable_last_schedule_time() = ToProto(*decision.start);
    status().set_missed_starts(status().missed_starts() + decision.missed);
    SayMissed(decision.missed);
    v1::ScheduledExperiment unstarted = schedule_;
    Enter(decision.name, *decision.start, /*by_hand=*/false);
    AddEvent(schedule_, {.time = now_,
                         .reason = "ExperimentStarted",
                         .message = absl::StrCat("experiment ", decision.name, " was started for ",
                                                 FormatTime(ToProto(*decision.start)))});
    const Status written = Write(std::move(made));
    if (!absl::IsAborted(written) ||
        !options_.store->GetExperiment({key_.ns, decision.name}).ok()) {
      RETURN_IF_ERROR(written);
      Log(LogLevel::kInfo, "started an experiment of a schedule",
          {{"schedule", ToString(key_)}, {"experiment", decision.name}});
      return now_ + kLookAgain;
    }
    return PassOver(std::move(unstarted), decision.name);
  }

  // An experiment of that name is there: another process has just made it, and then this write is
  // refused; or it is not of this schedule.
  StatusOr<absl::Time> PassOver(v1::ScheduledExperiment unstarted, const std::string& name) {
    schedule_ = std::move(unstarted);
    status().set_missed_starts(status().missed_starts() + 1);
    AddEvent(schedule_, {.time = now_,
                         .reason = "NameTaken",
                         .message = absl::StrCat("experiment ", name,
                                                 " is there already, and was not started for this "
                                                 "schedule: this start is left out"),
                         .warning = true});
    RETURN_IF_ERROR(Write());
    return now_ + kLookAgain;
  }

  void SayMissed(int missed) {
    if (missed == 0) return;
    const bool many = missed >= kMaxMissed;
    AddEvent(schedule_,
             {.time = now_,
              .reason = many ? "TooManyMissedTimes" : "StartsMissed",
              .message = absl::StrCat(many ? "more than " : "", missed,
                                      " earlier starts were missed and are not made up for",
                                      many ? ": set or lower startingDeadlineSeconds, or look at "
                                             "the clock of the server"
                                           : ""),
              .warning = true});
  }

  Status Write(std::optional<v1::Experiment> start = std::nullopt) {
    if (!start && status().SerializeAsString() == before_) return absl::OkStatus();
    db::ScheduleWrite write{.key = key_, .expected = revision_, .put = schedule_};
    if (start) write.start = experiment::CreationOf(*options_.clock, *std::move(start));
    return db::SchedulesOf(*options_.store).WriteSchedule(write);
  }

  const RecordsOptions& options_;
  const int64_t revision_;
  v1::ScheduledExperiment schedule_;
  const std::string before_;  // its status, which is all that a pass changes
  const ExperimentKey key_;
  const absl::Time now_;
};

}  // namespace

void AddEvent(v1::ScheduledExperiment& schedule, const EventText& event) {
  auto& events = *schedule.mutable_status()->mutable_events();
  const std::string message = Shortened(event.message);
  const bool again = !events.empty() && events.rbegin()->reason() == event.reason &&
                     events.rbegin()->message() == message;
  // Of what is tried again and again the first time is kept, so that it need not be written.
  if (again && event.warning) return;
  v1::ScheduleEvent& added = *events.Add();
  *added.mutable_time() = ToProto(event.time);
  added.set_reason(event.reason);
  added.set_message(message);
  added.set_warning(event.warning);
  added.set_actor(event.actor);
  if (events.size() > kMaxEvents) events.DeleteSubrange(0, events.size() - kMaxEvents);
}

StatusOr<absl::Time> RunPass(const RecordsOptions& options, ScheduleRow row) {
  return Pass(options, std::move(row)).Run();
}

StatusOr<std::string> StartByHand(const RecordsOptions& options, ScheduleRow row,
                                  const v1::Actor& actor) {
  return Pass(options, std::move(row)).StartByHand(actor);
}

}  // namespace shirabe::schedule
