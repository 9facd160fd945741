// get: lists of records, and single ones. With --watch it goes on and prints each record anew when
// it changes.
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "client/rows.h"
#include "client/selection.h"
#include "client/table.h"
#include "client/view.h"
#include "cmd/context.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"

namespace shirabe::cmd {
namespace {

using client::Cells;
using client::Json;
using client::RowStyle;

constexpr absl::Duration kWatchPoll = absl::Milliseconds(200);
// More than this is printed bit by bit, so that memory does not grow with the experiment.
constexpr int64_t kPage = 2000;

struct Request {
  ListFlags flags;
  std::vector<std::string> names;
};

// One kind of record for printing: how a record becomes cells, a tree and a name.
template <class Record>
struct Printer {
  Cells header;
  std::function<Cells(const Record&, const RowStyle&)> row;
  std::function<Json(const Record&)> tree;
  std::function<std::string(const Record&)> name;
};

template <class Record>
void PrintRows(const ListFlags& flags, const Printer<Record>& printer,
               const std::vector<Record>& records, client::Table& table) {
  if (flags.output == "name") {
    for (const Record& record : records) Out(printer.name(record) + "\n");
    return;
  }
  const RowStyle style = StyleOf(flags);
  for (const Record& record : records) table.Add(printer.row(record, style));
  Out(table.Take(!flags.no_headers));
}

// `single`: one was asked for by name, so the tree is an object and no List.
template <class Record>
void PrintAll(const ListFlags& flags, const Printer<Record>& printer,
              const std::vector<Record>& records, bool single) {
  if (!WantsTree(flags)) {
    client::Table table(printer.header);
    return PrintRows(flags, printer, records, table);
  }
  std::vector<Json> items;
  for (const Record& record : records) items.push_back(printer.tree(record));
  PrintTree(flags, single && items.size() == 1 ? items[0] : client::ListJson(std::move(items)));
}

// One document a change, as kubectl does it.
template <class Record>
void PrintChanged(const ListFlags& flags, const Printer<Record>& printer,
                  const std::vector<Record>& records, client::Table& table) {
  if (!WantsTree(flags)) return PrintRows(flags, printer, records, table);
  for (const Record& record : records) {
    if (flags.output == "yaml") Out("---\n");
    PrintTree(flags, printer.tree(record));
  }
}

// Calls `changed` with what has changed since `revision`, for ever, or until it says no.
StatusOr<int> Follow(client::Client& client, int64_t revision,
                     const std::function<StatusOr<bool>(const std::vector<db::Change>&)>& changed) {
  for (;;) {
    RETURN_IF_ERROR(FlushOut());
    PlainWait(kWatchPoll);
    ASSIGN_OR_RETURN(const auto changes, client.Changes(revision));
    if (changes.empty()) continue;
    revision = changes.back().revision;
    ASSIGN_OR_RETURN(const bool more, changed(changes));
    if (!more) return 0;
  }
}

// ---- experiments -------------------------------------------------------------------------------

Printer<v1::Experiment> ExperimentPrinter(const ListFlags& flags) {
  return {.header = client::ExperimentHeader(StyleOf(flags)),
          .row = client::ExperimentRow,
          .tree = client::ExperimentJson,
          .name = [](const v1::Experiment& e) { return "experiment/" + e.metadata().name(); }};
}

StatusOr<std::vector<v1::Experiment>> ReadExperiments(const Session& session,
                                                      const Request& request) {
  if (request.names.empty()) {
    return session.client->ListExperiments(request.flags.all_namespaces ? "" : session.ns);
  }
  std::vector<v1::Experiment> experiments;
  for (const std::string& name : request.names) {
    ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
    ASSIGN_OR_RETURN(v1::Experiment experiment, session.client->GetExperiment(key));
    experiments.push_back(std::move(experiment));
  }
  return experiments;
}

StatusOr<int> WatchExperiments(const Session& session, const Request& request, int64_t revision,
                               client::Table& table) {
  const auto printer = ExperimentPrinter(request.flags);
  const auto changed = [&](const std::vector<db::Change>& changes) -> StatusOr<bool> {
    std::set<ExperimentKey> keys;
    for (const db::Change& change : changes) {
      if (change.kind == db::Change::Kind::kExperiment) keys.insert(change.experiment);
    }
    ASSIGN_OR_RETURN(auto experiments, ReadExperiments(session, request));
    std::erase_if(experiments, [&](const v1::Experiment& experiment) {
      return !keys.contains(experiment::KeyOf(experiment));
    });
    ASSIGN_OR_RETURN(const auto selection,
                     client::Selection<v1::Experiment>::Create(
                         client::ExperimentFields(RealClock()->Now()), request.flags.filter, ""));
    selection.Apply(experiments, -1);
    PrintChanged(request.flags, printer, experiments, table);
    return true;
  };
  return Follow(*session.client, revision, changed);
}

StatusOr<int> GetExperiments(const Session& session, const Request& request) {
  const ListFlags& flags = request.flags;
  const auto selection = client::Selection<v1::Experiment>::Create(
      client::ExperimentFields(RealClock()->Now()), flags.filter, flags.sort_by);
  if (!selection.ok()) return AsUsage(selection.status());
  ASSIGN_OR_RETURN(const int64_t revision, session.client->Revision());
  ASSIGN_OR_RETURN(auto experiments, ReadExperiments(session, request));
  selection->Apply(experiments, flags.limit.value_or(-1));
  if (!flags.watch) {
    PrintAll(flags, ExperimentPrinter(flags), experiments, request.names.size() == 1);
    if (experiments.empty()) {
      Hint(flags.all_namespaces ? "No experiments found."
                                : "No experiments found in namespace " + session.ns + ".");
    }
    return 0;
  }
  client::Table table(client::ExperimentHeader(StyleOf(flags)));
  PrintChanged(flags, ExperimentPrinter(flags), experiments, table);
  return WatchExperiments(session, request, revision, table);
}

// ---- trials ------------------------------------------------------------------------------------

Printer<v1::Trial> TrialPrinter(const v1::Experiment& experiment, const ListFlags& flags) {
  return {.header = client::TrialHeader(experiment, StyleOf(flags)),
          .row = [&experiment](
                     const v1::Trial& trial,
                     const RowStyle& style) { return client::TrialRow(experiment, trial, style); },
          .tree = [&experiment](
                      const v1::Trial& trial) { return client::TrialJson(experiment, trial); },
          .name =
              [](const v1::Trial& trial) {
                return "trial/" + TrialName({ExperimentKeyOf(trial), trial.number()});
              }};
}

// Until the experiment has ended, so that a script that follows a run ends with it.
StatusOr<int> WatchTrials(const Session& session, const Request& request, v1::Experiment experiment,
                          client::Table& table) {
  const ExperimentKey key = experiment::KeyOf(experiment);
  const auto printer = TrialPrinter(experiment, request.flags);
  const auto selection = client::Selection<v1::Trial>::Create(client::TrialFields(experiment),
                                                              request.flags.filter, "");
  RETURN_IF_ERROR(selection.status());
  // What is read now may have been printed before; it is printed twice rather than not at all.
  ASSIGN_OR_RETURN(int64_t revision, session.client->Revision());
  int64_t seen = 0;
  for (;;) {
    ASSIGN_OR_RETURN(auto trials,
                     session.client->ListTrials({.experiment = key, .changed_after = seen}));
    selection->Apply(trials, -1);
    PrintChanged(request.flags, printer, trials, table);
    RETURN_IF_ERROR(FlushOut());
    ASSIGN_OR_RETURN(experiment, session.client->GetExperiment(key));
    if (experiment::IsEnded(experiment)) return 0;
    seen = revision;
    do {
      PlainWait(kWatchPoll);
      ASSIGN_OR_RETURN(revision, session.client->Revision());
    } while (revision == seen);
  }
}

// A list that is printed as it lies is read and printed page by page.
Status PrintTrialsInPages(const Session& session, const v1::Experiment& experiment,
                          const ListFlags& flags) {
  const auto printer = TrialPrinter(experiment, flags);
  client::Table table(printer.header);
  int64_t left = flags.limit.value_or(std::numeric_limits<int64_t>::max());
  db::TrialQuery query{.experiment = experiment::KeyOf(experiment)};
  do {
    query.limit = std::min(left, kPage);
    ASSIGN_OR_RETURN(const auto trials, session.client->ListTrials(query));
    PrintRows(flags, printer, trials, table);
    left -= query.limit;
    if (static_cast<int64_t>(trials.size()) < query.limit) break;
    query.after_number = trials.back().number();
  } while (left > 0);
  return absl::OkStatus();
}

StatusOr<int> GetTrialsOf(const Session& session, const ExperimentKey& key,
                          const ListFlags& flags) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  const auto selection = client::Selection<v1::Trial>::Create(client::TrialFields(experiment),
                                                              flags.filter, flags.sort_by);
  if (!selection.ok()) return AsUsage(selection.status());
  if (flags.watch) {
    client::Table table(client::TrialHeader(experiment, StyleOf(flags)));
    return WatchTrials(session, {.flags = flags, .names = {}}, experiment, table);
  }
  if (selection->trivial() && !WantsTree(flags)) {
    RETURN_IF_ERROR(PrintTrialsInPages(session, experiment, flags));
    return 0;
  }
  db::TrialQuery query{.experiment = key};
  if (selection->trivial()) query.limit = flags.limit.value_or(-1);
  ASSIGN_OR_RETURN(auto trials, session.client->ListTrials(query));
  selection->Apply(trials, flags.limit.value_or(-1));
  PrintAll(flags, TrialPrinter(experiment, flags), trials, false);
  return 0;
}

StatusOr<int> GetOneTrial(const Session& session, const TrialKey& key, const ListFlags& flags) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key.experiment));
  ASSIGN_OR_RETURN(v1::Trial trial, session.client->GetTrial(key));
  PrintAll<v1::Trial>(flags, TrialPrinter(experiment, flags), {std::move(trial)}, true);
  return 0;
}

// "digits-7" may be an experiment as well as a trial: an experiment of that name comes first.
StatusOr<std::optional<TrialKey>> TrialUnlessExperiment(const Session& session,
                                                        const std::string& text) {
  const auto trial = ParseTrialName(text, session.ns);
  if (!trial || text.find('/') != std::string::npos) return trial;
  const Status found = session.client->GetExperiment({session.ns, text}).status();
  if (found.ok()) return std::optional<TrialKey>();
  if (!absl::IsNotFound(found)) return found;
  return trial;
}

StatusOr<int> GetTrials(const Session& session, const Request& request) {
  if (request.names.size() != 1) {
    return UsageError("get trials takes one experiment or trial: shirabe get trials EXPERIMENT");
  }
  ASSIGN_OR_RETURN(const auto trial, TrialUnlessExperiment(session, request.names[0]));
  if (trial) return GetOneTrial(session, *trial, request.flags);
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(request.names[0], session.ns));
  return GetTrialsOf(session, key, request.flags);
}

// ---- what belongs to trials --------------------------------------------------------------------

StatusOr<int> GetAttempts(const Session& session, const Request& request) {
  if (request.names.size() != 1) {
    return UsageError("get attempts takes one experiment or trial: shirabe get attempts TRIAL");
  }
  ASSIGN_OR_RETURN(const auto trial, TrialUnlessExperiment(session, request.names[0]));
  db::AttemptQuery query;
  if (trial) {
    query = {.experiment = trial->experiment, .trial = trial->number};
    RETURN_IF_ERROR(session.client->GetTrial(*trial).status());
  } else {
    ASSIGN_OR_RETURN(query.experiment, ExperimentArgument(request.names[0], session.ns));
    RETURN_IF_ERROR(session.client->GetExperiment(query.experiment).status());
  }
  ASSIGN_OR_RETURN(auto attempts, session.client->ListAttempts(query));
  if (request.flags.limit && static_cast<int64_t>(attempts.size()) > *request.flags.limit) {
    attempts.resize(*request.flags.limit);
  }
  const auto key = [](const v1::Attempt& attempt) {
    return AttemptKey{{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()};
  };
  const Printer<v1::Attempt> printer{
      .header = client::AttemptHeader(StyleOf(request.flags)),
      .row = client::AttemptRow,
      .tree =
          [&](const v1::Attempt& attempt) {
            return client::AttemptJson(attempt, session.client->LogPlace(key(attempt)));
          },
      .name = [&](const v1::Attempt& attempt) { return "attempt/" + AttemptName(key(attempt)); }};
  PrintAll(request.flags, printer, attempts, false);
  return 0;
}

StatusOr<int> GetMetrics(const Session& session, const Request& request) {
  if (request.names.size() != 1) {
    return UsageError("get metrics takes one trial: shirabe get metrics EXPERIMENT/7");
  }
  ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(request.names[0], session.ns));
  RETURN_IF_ERROR(session.client->GetTrial(key).status());
  ASSIGN_OR_RETURN(auto rows,
                   session.client->ListObservations({.trial = key, .include_superseded = true}));
  if (request.flags.limit && static_cast<int64_t>(rows.size()) > *request.flags.limit) {
    rows.resize(*request.flags.limit);
  }
  const Printer<db::ObservationRow> printer{
      .header = client::ObservationHeader(),
      .row = client::ObservationRowCells,
      .tree = [&](const db::ObservationRow& row) { return client::ObservationJson(key, row); },
      .name = [](const db::ObservationRow& row) { return row.metric; }};
  PrintAll(request.flags, printer, rows, false);
  return 0;
}

struct Noun {
  const char* name;
  StatusOr<int> (*get)(const Session& session, const Request& request);
};

constexpr Noun kNouns[] = {
    {"experiments", GetExperiments}, {"experiment", GetExperiments}, {"exp", GetExperiments},
    {"trials", GetTrials},           {"trial", GetTrials},           {"attempts", GetAttempts},
    {"attempt", GetAttempts},        {"metrics", GetMetrics},
};

StatusOr<const Noun*> FindNoun(const std::string& word) {
  std::vector<std::string> names;
  for (const Noun& noun : kNouns) {
    if (word == noun.name) return &noun;
    names.push_back(noun.name);
  }
  const auto nearest = Nearest(word, names);
  return UsageError("there is no \"" + word + "\" to get" +
                    (nearest ? "; did you mean \"" + *nearest + "\"?"
                             : ": it is exp, trials, attempts or metrics"));
}

// get exp/digits is get exp digits.
void SplitNoun(std::vector<std::string>& words) {
  const size_t cut = words[0].find('/');
  if (cut == std::string::npos) return;
  words.insert(words.begin() + 1, words[0].substr(cut + 1));
  words[0].resize(cut);
}

}  // namespace

StatusOr<int> Get(const Arguments& arguments) {
  Globals globals;
  Request request;
  Options options("get exp|trials|attempts|metrics [NAME]",
                  "Lists experiments, the trials of one, the attempts of a trial or experiment, or "
                  "the metrics of a trial.");
  options.Arguments("what to get", &request.names, 1, 100);
  AddListing(options, &request.flags);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  SplitNoun(request.names);
  ASSIGN_OR_RETURN(const Noun* noun, FindNoun(request.names[0]));
  request.names.erase(request.names.begin());
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  return noun->get(session, request);
}

}  // namespace shirabe::cmd
