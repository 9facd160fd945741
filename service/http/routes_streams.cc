// Replies that go on: what changes (Server-Sent Events), a log that is followed, an export.
#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/trial_files.h"
#include "experiment/conditions.h"
#include "proto/shirabe/v1/http.pb.h"
#include "proto/shirabe/v1/updates.pb.h"
#include "service/common/change_hub.h"
#include "service/common/update_feeds.h"
#include "service/http/event_stream.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"
#include "view/csv_export.h"

namespace shirabe::service {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr int64_t kPageTrials = 256;
constexpr absl::Duration kLogPoll = absl::Milliseconds(200);

// ---- watch -------------------------------------------------------------------------------------

const char* KindWord(db::Change::Kind kind) {
  switch (kind) {
    case db::Change::Kind::kExperiment: return "experiment";
    case db::Change::Kind::kTrial: return "trial";
    case db::Change::Kind::kAttempt: return "attempt";
    case db::Change::Kind::kDeleted: return "deleted";
    case db::Change::Kind::kIntent: return "";  // of no concern to those who watch
  }
  return "";
}

// The revision is the id of the last event of its commit only: who was cut off within a commit
// gets all of it again.
std::string EventText(const db::Change& change, bool last_of_commit) {
  Json data = {{"kind", KindWord(change.kind)},
               {"namespace", change.experiment.ns},
               {"experiment", change.experiment.name}};
  if (change.trial > 0) data["trial"] = TrialName({change.experiment, change.trial});
  data["revision"] = change.revision;
  std::string text = absl::StrCat("event: ", KindWord(change.kind), "\n");
  if (last_of_commit) absl::StrAppend(&text, "id: ", change.revision, "\n");
  return absl::StrCat(text, "data: ", view::PrintJsonLine(data), "\n\n");
}

class WatchSource : public PieceSource {
 public:
  struct Scope {
    Principal principal;
    std::string ns;    // "" = of all that they may see
    std::string name;  // "" = of all experiments
  };
  WatchSource(ChangeHub& hub, Scope scope, int64_t after)
      : hub_(hub), scope_(std::move(scope)), after_(after) {}

  StatusOr<Piece> Next() override {
    Piece piece;
    if (first_) {
      first_ = false;
      piece.text = absl::StrCat("retry: 1000\nid: ", after_, "\n: watching\n\n");
    }
    if (pending_.empty()) RETURN_IF_ERROR(ReadChanges());
    while (!pending_.empty() && piece.text.size() < kPieceBytes) {
      const db::Change change = std::move(pending_.front());
      pending_.pop_front();
      const bool last = pending_.empty() || pending_.front().revision != change.revision;
      piece.text += EventText(change, last);
    }
    return piece;
  }
  bool live() const override { return true; }

 private:
  Status ReadChanges() {
    ASSIGN_OR_RETURN(const auto changes, hub_.After(after_));
    for (const db::Change& change : changes) {
      ASSIGN_OR_RETURN(const bool seen, IsSeen(change));
      after_ = std::max(after_, change.revision);
      if (seen) pending_.push_back(change);
    }
    return absl::OkStatus();
  }

  // An error if the cluster cannot be asked now.
  StatusOr<bool> IsSeen(const db::Change& change) const {
    if (change.kind == db::Change::Kind::kIntent) return false;
    if (!scope_.ns.empty() && scope_.ns != change.experiment.ns) return false;
    if (!scope_.name.empty() && scope_.name != change.experiment.name) return false;
    return scope_.principal.CanSee(change.experiment.ns);
  }

  ChangeHub& hub_;
  const Scope scope_;
  int64_t after_;
  bool first_ = true;
  std::deque<db::Change> pending_;
};

StatusOr<HttpReply> Watch(Call& call) {
  ASSIGN_OR_RETURN(const int64_t after, FirstRevision(call));
  const ExperimentKey key = call.Experiment();
  if (!key.name.empty()) RETURN_IF_ERROR(call.client->GetExperiment(key).status());
  RETURN_IF_ERROR(call.context.hub->After(after).status());
  return Follow(
      call, std::make_unique<WatchSource>(
                *call.context.hub, WatchSource::Scope{call.principal, key.ns, key.name}, after));
}

// ---- updates -----------------------------------------------------------------------------------

class UpdateSource : public PieceSource {
 public:
  UpdateSource(const Call& call, int64_t after)
      : updates_(*call.context.updates),
        hub_(*call.context.hub),
        principal_(call.principal),
        key_(call.Experiment()),
        after_(after) {}

  StatusOr<Piece> Next() override {
    Piece piece;
    if (std::exchange(first_, false)) {
      piece.text = absl::StrCat("retry: 1000\nid: ", after_, "\n: following\n\n");
    }
    ASSIGN_OR_RETURN(const auto update, updates_.After(key_, after_));
    after_ = update.revision;
    if (update.text.empty()) return piece;
    // Rights may be taken away meanwhile; an error if the cluster cannot be asked now.
    RETURN_IF_ERROR(principal_.CheckRead(key_.ns));
    piece.text += update.text;
    piece.end = update.over;
    return piece;
  }
  bool live() const override { return true; }
  // What has changed since the last look is looked at when it is time to.
  absl::Duration Poll() const override {
    return hub_.revision() > after_ ? UpdateFeeds::kInterval : absl::InfiniteDuration();
  }

 private:
  UpdateFeeds& updates_;
  ChangeHub& hub_;
  const Principal principal_;
  const ExperimentKey key_;
  int64_t after_;
  bool first_ = true;
};

StatusOr<HttpReply> Updates(Call& call) {
  ASSIGN_OR_RETURN(const int64_t after, FirstRevision(call));
  RETURN_IF_ERROR(call.client->GetExperiment(call.Experiment()).status());
  RETURN_IF_ERROR(call.context.hub->After(after).status());
  // Here, where others wait as well, the columns are read for the first time.
  RETURN_IF_ERROR(call.context.updates->After(call.Experiment(), after).status());
  return Follow(call, std::make_unique<UpdateSource>(call, after));
}

// ---- logs --------------------------------------------------------------------------------------

std::string LogEvent(const std::string& text, int64_t next) {
  const Json data = {{"text", text}, {"next", next}};
  return absl::StrCat("event: log\nid: ", next, "\ndata: ", view::PrintJsonLine(data), "\n\n");
}

class LogSource : public PieceSource {
 public:
  LogSource(std::unique_ptr<client::Client> client, AttemptKey key, int64_t offset)
      : client_(std::move(client)), key_(std::move(key)), offset_(offset) {}

  StatusOr<Piece> Next() override {
    ASSIGN_OR_RETURN(const bool over, IsOver());  // before the last read
    auto chunk = client_->ReadLog(key_, offset_, kPieceBytes);
    if (absl::IsNotFound(chunk.status())) {
      chunk = v1::LogChunk();
      chunk->set_next(offset_);
      chunk->set_at_end(true);
    }
    RETURN_IF_ERROR(chunk.status());
    const bool ended = over && chunk->at_end();
    if (!ended) KeepWholeLines(*chunk);
    Piece piece;
    if (!chunk->text().empty()) piece.text = LogEvent(chunk->text(), chunk->next());
    offset_ = chunk->next();
    if (ended) {
      piece.text += "event: end\ndata: {}\n\n";
      piece.end = true;
    }
    return piece;
  }
  bool live() const override { return true; }
  absl::Duration Poll() const override { return kLogPoll; }

 private:
  StatusOr<bool> IsOver() {
    if (key_.trial.number == kFollowUpNumber) {
      ASSIGN_OR_RETURN(const auto known, client::ExecutionOf(*client_, key_.trial));
      return known.ended || known.attempts > key_.number;
    }
    ASSIGN_OR_RETURN(
        const auto attempts,
        client_->ListAttempts({.experiment = key_.trial.experiment, .trial = key_.trial.number}));
    for (const v1::Attempt& attempt : attempts) {
      if (attempt.number() == key_.number) return attempt.state() == v1::ATTEMPT_CLOSED;
    }
    return true;  // deleted
  }

  // A character must not be cut in two; a line without an end that fills the chunk is.
  static void KeepWholeLines(v1::LogChunk& chunk) {
    const size_t newline = chunk.text().rfind('\n');
    const size_t keep = newline == std::string::npos ? 0 : newline + 1;
    if (keep == 0 && chunk.text().size() >= kPieceBytes) return;
    chunk.set_next(chunk.next() - static_cast<int64_t>(chunk.text().size() - keep));
    chunk.mutable_text()->resize(keep);
  }

  const std::unique_ptr<client::Client> client_;
  const AttemptKey key_;
  int64_t offset_;
};

Status AttemptExists(Call& call, const AttemptKey& key) {
  ASSIGN_OR_RETURN(const client::Execution known, client::ExecutionOf(*call.client, key.trial));
  if (key.number <= known.attempts) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("trial ", TrialName(key.trial), " has ", known.attempts,
                                          " attempts; there is no attempt ", key.number));
}

// All of it, or what comes after an offset.
class WholeLog : public PieceSource {
 public:
  WholeLog(std::unique_ptr<client::Client> client, AttemptKey key, int64_t offset)
      : client_(std::move(client)), key_(std::move(key)), offset_(offset) {}

  StatusOr<Piece> Next() override {
    ASSIGN_OR_RETURN(v1::LogChunk chunk, client_->ReadLog(key_, offset_, kPieceBytes));
    offset_ = chunk.next();
    return Piece{std::move(*chunk.mutable_text()), chunk.at_end()};
  }

 private:
  const std::unique_ptr<client::Client> client_;
  const AttemptKey key_;
  int64_t offset_;
};

StatusOr<HttpReply> LogOf(Call& call, const TrialKey& trial) {
  const AttemptKey key{trial, static_cast<int32_t>(call.Integer("attempt", 1))};
  RETURN_IF_ERROR(AttemptExists(call, key));
  int64_t offset = call.Integer("offset", 0);
  if (!call.Flag("follow")) {
    RETURN_IF_ERROR(call.client->ReadLog(key, offset, 1).status());
    HttpReply reply{.type = "text/plain; charset=utf-8"};
    reply.source = std::make_unique<WholeLog>(std::move(call.client), key, offset);
    return reply;
  }
  const std::string& last = call.request.Header("last-event-id");
  if (!last.empty() && (!absl::SimpleAtoi(last, &offset) || offset < 0)) {
    return BadField("Last-Event-ID", "must be the id of an event, a number, not " + last);
  }
  return Follow(call, std::make_unique<LogSource>(std::move(call.client), key, offset));
}

StatusOr<HttpReply> Log(Call& call) { return LogOf(call, call.Trial()); }

StatusOr<HttpReply> FollowUpLog(Call& call) {
  return LogOf(call, {call.Experiment(), kFollowUpNumber});
}

// ---- export ------------------------------------------------------------------------------------

class ExportSource : public PieceSource {
 public:
  ExportSource(std::unique_ptr<client::Client> client, v1::Experiment experiment, bool csv)
      : client_(std::move(client)), experiment_(std::move(experiment)), csv_(csv) {}

  StatusOr<Piece> Next() override {
    ASSIGN_OR_RETURN(const auto trials,
                     client_->ListTrials({.experiment = experiment::KeyOf(experiment_),
                                          .after_number = after_,
                                          .limit = kPageTrials}));
    Piece piece;
    if (csv_ && after_ == 0) piece.text = view::CsvHeader(experiment_);
    for (const v1::Trial& trial : trials) {
      piece.text += csv_ ? view::CsvLine(experiment_, trial) : view::JsonLine(experiment_, trial);
      after_ = trial.number();
    }
    piece.end = static_cast<int64_t>(trials.size()) < kPageTrials;
    return piece;
  }

 private:
  const std::unique_ptr<client::Client> client_;
  const v1::Experiment experiment_;
  const bool csv_;
  int64_t after_ = 0;
};

StatusOr<HttpReply> Export(Call& call) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, call.client->GetExperiment(call.Experiment()));
  const bool csv = call.Text("format") != "jsonl";
  HttpReply reply{.type = csv ? "text/csv; charset=utf-8; header=present" : "application/x-ndjson"};
  reply.headers.emplace_back(
      "Content-Disposition",
      absl::StrCat("attachment; filename=\"", call.Text("name"), csv ? ".csv\"" : ".jsonl\""));
  reply.source = std::make_unique<ExportSource>(std::move(call.client), std::move(experiment), csv);
  return reply;
}

// ---- the table ---------------------------------------------------------------------------------

Route WatchRoute(const char* path, const char* id, const char* summary) {
  return {.method = "GET",
          .path = path,
          .id = id,
          .rights = MakeRights(v1::Rights::NAMESPACE),
          .summary = summary,
          .parameters = {AfterRevision(), LastEventId()},
          .results = {{.type = kEventStream, .body = v1::http::Change::descriptor()}},
          .handle = Watch};
}

Route UpdatesRoute() {
  return {.method = "GET",
          .path = std::string(kExperimentPath) + "/updates",
          .id = "followUpdates",
          .rpc = "GetSummary",
          .summary =
              "Events with the summary and the trials that have changed, at most two a "
              "second",
          .parameters = {AfterRevision(), LastEventId()},
          .results = {{.type = kEventStream, .body = v1::Update::descriptor()}},
          .slow = true,
          .handle = Updates};
}

// `of`: what has the attempts, below its experiment.
Route LogRoute(const char* of, const char* id, const char* whose,
               StatusOr<HttpReply> (*handle)(Call& call)) {
  return {.method = "GET",
          .path = absl::StrCat(kExperimentPath, of, "/attempts/{attempt}/log"),
          .id = id,
          .rpc = "ReadLog",
          .summary = absl::StrCat("What an attempt ", whose,
                                  "has printed; with follow, as events until it has ended"),
          .parameters = {{.name = "offset",
                          .help = "of the first byte",
                          .type = Parameter::Type::kInteger},
                         {.name = "follow",
                          .help = "go on until the attempt has ended",
                          .type = Parameter::Type::kBoolean},
                         LastEventId()},
          .results = {{.type = "text/plain"},
                      {.type = kEventStream, .body = v1::http::LogPiece::descriptor()}},
          .handle = handle};
}

Route ExportRoute() {
  return {.method = "GET",
          .path = "/api/v1/namespaces/{namespace}/experiments/{name}/export",
          .id = "exportTrials",
          .rpc = "ListTrials",
          .summary = "All trials, one a line, with exact numbers",
          .parameters = {{.name = "format",
                          .help = "CSV or JSON lines",
                          .words = {"csv", "jsonl"},
                          .default_value = "csv"}},
          .results = {{.type = "text/csv"}, {.type = "application/x-ndjson"}},
          .handle = Export};
}

std::vector<Route> StreamRoutes() {
  return {
      WatchRoute("/api/v1/watch", "watch",
                 "Events, one for each change of an experiment, trial or attempt"),
      WatchRoute("/api/v1/namespaces/{namespace}/watch", "watchNamespace",
                 "Events, one for each change within a namespace"),
      WatchRoute("/api/v1/namespaces/{namespace}/experiments/{name}/watch", "watchExperiment",
                 "Events, one for each change of an experiment and what belongs to it"),
      UpdatesRoute(),
      LogRoute("/trials/{trial}", "getLog", "", Log),
      LogRoute("/on-success", "getOnSuccessLog", "of spec.shirabe.onSuccess ", FollowUpLog),
      ExportRoute(),
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "streams", .routes = StreamRoutes});

}  // namespace shirabe::service
