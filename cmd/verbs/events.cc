// events: what happened to an experiment, or to all of a namespace, oldest first.
#include <map>

#include "base/registry.h"
#include "base/sorting.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"

namespace shirabe::cmd {
namespace {

// What was asked for, and how far each experiment's events have been read.
struct Reading {
  std::vector<std::string> names;  // one experiment; none: all of them
  ListFlags flags;
  std::map<ExperimentKey, int64_t> seen;
  bool ended = false;  // the one experiment has, as it was when last read
};

Printer<v1::Event> MakeEventPrinter() {
  return {.header = view::EventHeader(), .row = view::EventRow, .tree = view::EventJson};
}

StatusOr<std::vector<v1::Experiment>> Find(const Session& session, const Reading& reading) {
  if (reading.names.empty()) {
    return session.client->ListExperiments(reading.flags.all_namespaces ? "" : session.ns);
  }
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(reading.names[0], session.ns));
  ASSIGN_OR_RETURN(v1::Experiment experiment, session.client->GetExperiment(key));
  return std::vector<v1::Experiment>{std::move(experiment)};
}

// The events that were not read yet, in the order of their times.
StatusOr<std::vector<v1::Event>> ReadMore(const Session& session, Reading& reading) {
  ASSIGN_OR_RETURN(const auto experiments, Find(session, reading));
  std::vector<v1::Event> all;
  for (const v1::Experiment& experiment : experiments) {
    const ExperimentKey key = experiment::KeyOf(experiment);
    int64_t& seen = reading.seen[key];
    ASSIGN_OR_RETURN(const auto events,
                     session.client->ListEvents({.experiment = key, .after_id = seen}));
    if (!events.empty()) seen = events.back().id();
    reading.ended = !reading.names.empty() && experiment::IsEnded(experiment);
    all.insert(all.end(), events.begin(), events.end());
  }
  StableSort(all, [](const v1::Event& a, const v1::Event& b) {
    return FromProto(a.time()) < FromProto(b.time());
  });
  return all;
}

// Of one experiment until it has ended, else for ever.
StatusOr<int> WatchEvents(const Session& session, Reading& reading) {
  Listing<v1::Event> listing(reading.flags, MakeEventPrinter());
  for (;;) {
    // In this order: what happens in between wakes us at once.
    ASSIGN_OR_RETURN(const int64_t revision, session.client->Revision());
    ASSIGN_OR_RETURN(const auto events, ReadMore(session, reading));
    listing.PrintChanged(events);
    RETURN_IF_ERROR(FlushOut());
    if (reading.ended && events.empty()) return 0;
    if (reading.ended) continue;
    RETURN_IF_ERROR(session.client->AwaitChange(revision, kMaxWatchWait).status());
  }
}

}  // namespace

StatusOr<int> Events(const Arguments& arguments) {
  Globals globals;
  Reading reading;
  ListFlags& flags = reading.flags;
  Options options("events [EXPERIMENT]",
                  "Lists what happened to an experiment, or to all of a namespace, oldest first.");
  options.Arguments("EXPERIMENT", &reading.names, 0, 1);
  options.Flag("-A,--all-namespaces", &flags.all_namespaces, "experiments of all namespaces");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  options.Number("--limit", &flags.limit, 0, "only the newest N");
  options.Flag("-w,--watch", &flags.watch, "go on and print new ones until it has ended");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (flags.all_namespaces && !reading.names.empty()) {
    return UsageError("-A is for the events of all experiments: leave the name out");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  if (flags.watch) return WatchEvents(session, reading);
  ASSIGN_OR_RETURN(auto events, ReadMore(session, reading));
  const auto surplus = static_cast<int64_t>(events.size()) - flags.limit.value_or(events.size());
  if (surplus > 0) events.erase(events.begin(), events.begin() + surplus);
  Listing<v1::Event>(flags, MakeEventPrinter()).PrintAll(events);
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "events",
                        .group = VerbGroup::kRead,
                        .summary = "list what happened",
                        .completes = CompleteExperiments,
                        .run = Events});

}  // namespace shirabe::cmd
