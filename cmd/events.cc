// events: what happened to an experiment, oldest first.
#include "cmd/context.h"
#include "cmd/listing.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);

Printer<v1::Event> MakePrinter() {
  return {.header = client::EventHeader(), .row = client::EventRow, .tree = client::EventJson};
}

StatusOr<int> Watch(const Session& session, db::EventQuery query, const ListFlags& flags) {
  Listing<v1::Event> listing(flags, MakePrinter());
  for (;;) {
    ASSIGN_OR_RETURN(const auto events, session.client->ListEvents(query));
    listing.PrintChanged(events);
    RETURN_IF_ERROR(FlushOut());
    if (!events.empty()) query.after_id = events.back().id();
    ASSIGN_OR_RETURN(const auto experiment, session.client->GetExperiment(query.experiment));
    if (experiment::IsEnded(experiment) && events.empty()) return 0;
    PlainWait(kPoll);
  }
}

}  // namespace

StatusOr<int> Events(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> names;
  Options options("events EXPERIMENT", "Lists what happened to an experiment, oldest first.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  options.Number("--limit", &flags.limit, 0, "only the newest N");
  options.Flag("-w,--watch", &flags.watch, "go on and print new ones until it has ended");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(names[0], session.ns));
  RETURN_IF_ERROR(session.client->GetExperiment(key).status());
  if (flags.watch) return Watch(session, {.experiment = key}, flags);
  ASSIGN_OR_RETURN(auto events, session.client->ListEvents({.experiment = key}));
  const auto surplus = static_cast<int64_t>(events.size()) - flags.limit.value_or(events.size());
  if (surplus > 0) events.erase(events.begin(), events.begin() + surplus);
  Listing<v1::Event>(flags, MakePrinter()).PrintAll(events);
  return 0;
}

}  // namespace shirabe::cmd
