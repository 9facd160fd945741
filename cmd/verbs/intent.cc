// scale, pause, resume, stop, cancel, retry, try, note: requests to the owner of the experiment,
// which acts on them within a second, or when it is run again.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "experiment/spec/range_changes.h"
#include "experiment/submission.h"

namespace shirabe::cmd {
namespace {

Status Deliver(const Session& session, const ExperimentKey& key, const v1::Intent& intent) {
  RETURN_IF_ERROR(session.client->Send(key, intent));
  ASSIGN_OR_RETURN(const std::string holder, session.client->Holder(key));
  const std::string& name = key.name;
  const bool written = holder.empty() && intent.verb() == v1::Intent::ANNOTATE;
  Hint(written ? "written"
       : holder.empty()
           ? "accepted: no process runs " + name + " now; it takes effect once one does"
           : "noted: " + holder + " runs " + name + " and acts on it within a second");
  return absl::OkStatus();
}

// Doing it twice is as good as once: what has ended already has nothing left to be asked for.
bool IsDone(const v1::Experiment& experiment, v1::Intent::Verb verb) {
  const bool ended = experiment::IsEnded(experiment) && !experiment::HasPendingFollowUp(experiment);
  return ended && (verb == v1::Intent::STOP || verb == v1::Intent::CANCEL);
}

Status Send(const Globals& globals, const std::string& name, const v1::Intent& intent) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  if (!IsDone(experiment, intent.verb())) return Deliver(session, key, intent);
  Hint(name + " has ended already");
  return absl::OkStatus();
}

// "digits/7" and "trial/digits-7" are trials; anything else is an experiment, with trial 0.
StatusOr<TrialKey> Target(const std::string& name, const std::string& ns) {
  const size_t slash = name.find('/');
  const std::string head = name.substr(0, slash);
  const bool numbered = slash != std::string::npos && slash + 1 < name.size() &&
                        name.find_first_not_of("0123456789", slash + 1) == std::string::npos;
  const bool experiment = head == "exp" || head == "experiment" || head == "experiments";
  const bool trial = slash != std::string::npos && (head == "trial" || head == "trials");
  if (trial || (numbered && !experiment)) return TrialArgument(name, ns);
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, ns));
  return TrialKey{key, 0};
}

Status StopTarget(const Session& session, const TrialKey& key) {
  v1::Intent intent;
  intent.set_verb(key.number > 0 ? v1::Intent::STOP_TRIAL : v1::Intent::STOP);
  intent.set_trial(key.number);
  bool ended = false;
  if (key.number > 0) {
    ASSIGN_OR_RETURN(const v1::Trial trial, session.client->GetTrial(key));
    ended = trial.phase() != v1::TRIAL_PENDING && trial.phase() != v1::TRIAL_RUNNING;
  } else {
    ASSIGN_OR_RETURN(const v1::Experiment experiment,
                     session.client->GetExperiment(key.experiment));
    ended = IsDone(experiment, intent.verb());
  }
  if (!ended) return Deliver(session, key.experiment, intent);
  Hint((key.number > 0 ? "trial " + TrialName(key) : key.experiment.name) + " has ended already");
  return absl::OkStatus();
}

// NAME=VALUE, each once.
Status ReadValues(const std::vector<std::string>& given, google::protobuf::Struct& point) {
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return UsageError("--param " + Quoted(text) + ": write NAME=VALUE, as lr=1e-3");
    }
    const std::string name = text.substr(0, equals);
    if (point.fields().contains(name)) {
      return UsageError("--param " + name + " is given twice: remove one");
    }
    (*point.mutable_fields())[name].set_string_value(text.substr(equals + 1));
  }
  return absl::OkStatus();
}

// A trial of this experiment, by its number or its name.
StatusOr<int64_t> TrialOf(const ExperimentKey& key, const std::string& text) {
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  ASSIGN_OR_RETURN(const TrialKey trial,
                   TrialArgument(number ? absl::StrCat(key.name, "/", text) : text, key.ns));
  if (trial.experiment == key) return trial.number;
  return UsageError("--like " + text + ": must be a trial of " + key.name);
}

struct Annotation {
  std::string note;
  std::vector<std::string> tags;
};

StatusOr<Annotation> ReadAnnotation(const Session& session, const TrialKey& key) {
  const auto of = [](const auto& record) {
    return Annotation{record.note(), {record.tags().begin(), record.tags().end()}};
  };
  if (key.number > 0) {
    ASSIGN_OR_RETURN(const v1::Trial trial, session.client->GetTrial(key));
    return of(trial);
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key.experiment));
  return of(experiment.status().shirabe());
}

Status PrintAnnotation(const Session& session, const TrialKey& key) {
  ASSIGN_OR_RETURN(const Annotation known, ReadAnnotation(session, key));
  if (!known.tags.empty()) Out("tags: " + Printable(absl::StrJoin(known.tags, ", ")) + "\n");
  if (known.note.empty()) return absl::OkStatus();
  Out(Printable(known.note) + (absl::EndsWith(known.note, "\n") ? "" : "\n"));
  return absl::OkStatus();
}

// A schedule is suspended, or goes on.
Status SteerSchedule(const Globals& globals, const std::string& name, v1::Intent::Verb verb) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  const bool suspend = verb == v1::Intent::PAUSE;
  v1::SteerScheduleRequest request;
  *request.mutable_schedule() = ScheduleRef(name, session.ns);
  request.set_action(suspend ? v1::SteerScheduleRequest::SUSPEND
                             : v1::SteerScheduleRequest::RESUME);
  ASSIGN_OR_RETURN(const auto reply,
                   session.client->Get<v1::SteerScheduleReply>("SteerSchedule", request));
  Hint(absl::StrCat("schedule ", name, reply.changed() ? "" : " was",
                    suspend ? " suspended: it starts no more experiments"
                            : " not suspended: it starts experiments at its times"));
  return absl::OkStatus();
}

// A verb that only names an experiment.
StatusOr<int> SendVerb(const Arguments& arguments, v1::Intent::Verb verb, const std::string& usage,
                       const std::string& about) {
  Globals globals;
  std::vector<std::string> names;
  Options options(usage, about);
  options.Arguments("EXPERIMENT", &names, 1, 1);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const auto schedule, ScheduleArgument(names[0], ""));
  const bool steers = verb == v1::Intent::PAUSE || verb == v1::Intent::RESUME;
  if (schedule && steers) {
    RETURN_IF_ERROR(SteerSchedule(globals, schedule->name(), verb));
    return 0;
  }
  v1::Intent intent;
  intent.set_verb(verb);
  RETURN_IF_ERROR(Send(globals, names[0], intent));
  return 0;
}

}  // namespace

StatusOr<int> Pause(const Arguments& arguments) {
  return SendVerb(arguments, v1::Intent::PAUSE, "pause EXPERIMENT|schedule/NAME",
                  "Starts no new trials; running ones go on. Of a schedule: starts no new "
                  "experiments. shirabe resume undoes it.");
}

StatusOr<int> Resume(const Arguments& arguments) {
  return SendVerb(arguments, v1::Intent::RESUME, "resume EXPERIMENT|schedule/NAME",
                  "Goes on after a pause.");
}

StatusOr<int> Stop(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  Options options(
      "stop EXPERIMENT|TRIAL…",
      "Ends an experiment: running trials may save, then stop. Final. Or ends trials, "
      "written as EXPERIMENT/7: each keeps its best value, and the experiment goes on.");
  options.Arguments("EXPERIMENT", &names, 1, 1000);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const TrialKey key, Target(name, session.ns));
    RETURN_IF_ERROR(StopTarget(session, key));
  }
  return 0;
}

StatusOr<int> Cancel(const Arguments& arguments) {
  return SendVerb(arguments, v1::Intent::CANCEL, "cancel EXPERIMENT",
                  "Ends an experiment and its trials at once. Final.");
}

StatusOr<int> Retry(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  Options options("retry TRIAL…",
                  "Tries the points of trials that have ended again, each as a new trial. Of an "
                  "experiment that has ended nothing is tried again (exit code 4).");
  options.Arguments("TRIAL", &names, 1, 1000);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(name, session.ns));
    v1::Intent intent;
    intent.set_verb(v1::Intent::RETRY);
    intent.set_trial(key.number);
    RETURN_IF_ERROR(Deliver(session, key.experiment, intent));
  }
  return 0;
}

StatusOr<int> Try(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names, values;
  std::string like;
  Options options("try EXPERIMENT --param NAME=VALUE… [--like TRIAL]",
                  "Makes a trial with these values, before those that the algorithm proposes. The "
                  "parameters left out are those of the trial it is to be like, or drawn at "
                  "random. It counts towards maxTrialCount.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Texts("-p,--param", &values, "NAME=VALUE", "a value to try; may be given several times");
  options.Text("--like", &like, "TRIAL", "the trial that has the other values: its number or name");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (values.empty() && like.empty()) return UsageError("give --param, --like or both");
  v1::Intent intent;
  intent.set_verb(v1::Intent::TRY);
  RETURN_IF_ERROR(ReadValues(values, *intent.mutable_point()));
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(names[0], session.ns));
  if (!like.empty()) {
    ASSIGN_OR_RETURN(const int64_t trial, TrialOf(key, like));
    intent.set_trial(trial);
  }
  RETURN_IF_ERROR(Deliver(session, key, intent));
  return 0;
}

StatusOr<int> Note(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> words, tags, untags;
  bool remove = false;
  Options options("note EXPERIMENT|TRIAL [TEXT] [--tag TAG…] [--untag TAG…] [--remove]",
                  "Prints the note and the tags of an experiment, or of a trial written as "
                  "EXPERIMENT/7; or changes them. A note is text, a subset of Markdown in the "
                  "dashboard; a new one takes the place of the old.");
  options.Arguments("EXPERIMENT", &words, 1, 2);
  options.Texts("--tag", &tags, "TAG", "add this tag; may be given several times");
  options.Texts("--untag", &untags, "TAG", "remove this tag; may be given several times");
  options.Flag("--remove", &remove, "remove the note");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (remove && words.size() > 1) return UsageError("give a TEXT or --remove, not both");
  const bool changes = words.size() > 1 || remove || !tags.empty() || !untags.empty();
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/!changes));
  ASSIGN_OR_RETURN(const TrialKey key, Target(words[0], session.ns));
  if (!changes) {
    RETURN_IF_ERROR(PrintAnnotation(session, key));
    return 0;
  }
  v1::Intent intent;
  intent.set_verb(v1::Intent::ANNOTATE);
  intent.set_trial(key.number);
  if (words.size() > 1 || remove) intent.set_note(remove ? "" : words[1]);
  intent.mutable_add_tags()->Assign(tags.begin(), tags.end());
  intent.mutable_remove_tags()->Assign(untags.begin(), untags.end());
  RETURN_IF_ERROR(Deliver(session, key.experiment, intent));
  return 0;
}

StatusOr<int> Scale(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names, ranges;
  std::optional<int64_t> parallel, trials, failed;
  Options options(
      "scale EXPERIMENT [--parallel N] [--max-trials N] [--max-failed N] [--param NAME=RANGE…]",
      "Changes the counts of an experiment, also while it runs, and makes ranges of its "
      "parameters wider or narrower. Trials that lie outside then are kept as results; the "
      "algorithm learns from the others.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Count("--parallel", &parallel, 1, "trials at the same time");
  options.Count("--max-trials", &trials, 1,
                "trials after which it has succeeded; no more of them at the same time");
  options.Count("--max-failed", &failed, 0, "more failed trials than this end it, as failed");
  options.Texts("-p,--param", &ranges, "NAME=RANGE",
                "another range: 1e-5..0.5, ..0.5, 1e-5.., or all values: sgd,adam; may be given "
                "several times");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (!parallel && !trials && !failed && ranges.empty()) {
    return UsageError("give at least one of --parallel, --max-trials, --max-failed and --param");
  }
  v1::Intent intent;
  intent.set_verb(v1::Intent::SCALE);
  if (parallel) intent.set_parallel_trial_count(static_cast<int32_t>(*parallel));
  if (trials) intent.set_max_trial_count(static_cast<int32_t>(*trials));
  if (failed) intent.set_max_failed_trial_count(static_cast<int32_t>(*failed));
  for (const std::string& range : ranges) {
    ASSIGN_OR_RETURN(*intent.add_parameters(), experiment::ParseChangeFlag(range));
  }
  RETURN_IF_ERROR(Send(globals, names[0], intent));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "scale",
                        .group = VerbGroup::kSubmit,
                        .summary = "change how many trials, how many at once, and ranges",
                        .completes = CompleteExperiments,
                        .run = Scale});

SHIRABE_REGISTER(Verb, {.name = "pause",
                        .group = VerbGroup::kSubmit,
                        .summary = "start no new trials; running ones go on",
                        .completes = CompleteExperiments,
                        .run = Pause});

SHIRABE_REGISTER(Verb, {.name = "resume",
                        .group = VerbGroup::kSubmit,
                        .summary = "go on after a pause",
                        .completes = CompleteExperiments,
                        .run = Resume});

SHIRABE_REGISTER(Verb, {.name = "stop",
                        .group = VerbGroup::kSubmit,
                        .summary = "end an experiment, or a trial: it saves and stops",
                        .completes = CompleteExperiments,
                        .run = Stop});

SHIRABE_REGISTER(Verb, {.name = "cancel",
                        .group = VerbGroup::kSubmit,
                        .summary = "end an experiment at once",
                        .completes = CompleteExperiments,
                        .run = Cancel});

SHIRABE_REGISTER(Verb, {.name = "retry",
                        .group = VerbGroup::kSubmit,
                        .summary = "try the point of a trial again",
                        .completes = CompleteTrials,
                        .run = Retry});

SHIRABE_REGISTER(Verb, {.name = "try",
                        .group = VerbGroup::kSubmit,
                        .summary = "try these values before those of the algorithm",
                        .completes = CompleteExperiments,
                        .run = Try});

SHIRABE_REGISTER(Verb, {.name = "note",
                        .group = VerbGroup::kSubmit,
                        .summary = "the note and tags of an experiment or a trial",
                        .completes = CompleteExperiments,
                        .run = Note});

}  // namespace shirabe::cmd
