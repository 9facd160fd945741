#include "cmd/verbs/page/report_content.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/sorting.h"
#include "base/text/json_text.h"
#include "experiment/conditions.h"
#include "proto/shirabe/v1/analysis.pb.h"
#include "proto/shirabe/v1/charts.pb.h"

namespace shirabe::cmd {
namespace {

constexpr int kPageSize = 10'000;
constexpr int kMostPages = 100;  // of one list; a row has 8 bytes a column
constexpr int64_t kMostEvents = 20'000;
constexpr int kMostMetrics = 8;      // that curves are drawn of
constexpr size_t kMostCurves = 200;  // of each
constexpr int kCurvePixels = 700;
constexpr int kMostModelled = 24;  // parameters alone, as many as the page draws
constexpr size_t kMostPaired = 7;  // parameters of which every two are drawn
constexpr size_t kLogBytes = 256 << 10;

std::string Escape(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    const bool plain = absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
    absl::StrAppend(&out, plain ? std::string(1, static_cast<char>(c))
                                : absl::StrCat("%", absl::Hex(c, absl::kZeroPad2)));
  }
  return out;
}

std::string Joined(const std::string& target, const std::string& parameter) {
  return absl::StrCat(target, target.find('?') == std::string::npos ? "?" : "&", parameter);
}

// The head of a reply in columns (docs/design/formats.md).
StatusOr<view::Json> HeadOfColumns(const std::string& body) {
  constexpr size_t kBeforeHead = 16, kPlaceOfLength = 8;
  uint32_t length = 0;
  if (body.size() >= kBeforeHead) std::memcpy(&length, &body[kPlaceOfLength], sizeof length);
  if (length == 0 || length > body.size() - kBeforeHead) {
    return absl::InternalError("a reply in columns has no head");
  }
  return ParseJson<view::Json>(std::string_view(body).substr(kBeforeHead, length));
}

// As a field of a line of CSV, which `fields` is.
std::string Quoted(const std::string& field) {
  if (field.find_first_of(",\"") == std::string::npos) return field;
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

// All that the page may ask for.
std::string ColumnsOf(const v1::ExperimentSpec& spec) {
  std::vector<std::string> fields = {"trial",    "state",         "reason",     "objective",
                                     "step",     "created",       "start",      "end",
                                     "seconds",  "cost",          "attempts",   "attemptSeconds",
                                     "parent",   "wastedSeconds", "wastedCost", "onDemandCost",
                                     "failures", "preemptions",   "lastStep",   "infeasible"};
  for (const std::string& metric : spec.objective().additional_metric_names()) {
    fields.push_back(Quoted("metric." + metric));
  }
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    fields.push_back(Quoted("param." + parameter.name()));
  }
  return "/columns?fields=" + Escape(absl::StrJoin(fields, ","));
}

template <class Request>
Request RequestOf(const ExperimentKey& key) {
  Request request;
  request.set_namespace_(key.ns);
  request.set_experiment(key.name);
  return request;
}

}  // namespace

ReportContent::ReportContent(client::Client& client, const v1::Experiment& experiment,
                             RouteReplies& routes)
    : client_(client),
      experiment_(experiment),
      routes_(routes),
      base_(absl::StrCat("api/v1/namespaces/", Escape(experiment.metadata().namespace_()),
                         "/experiments/", Escape(experiment.metadata().name()))) {
  facts_.experiment = experiment::KeyOf(experiment);
  facts_.made = RealClock()->Now();
  facts_.program = SHIRABE_VERSION;
}

Status ReportContent::Collect(const ReportChoice& choice, ReportFile& file) {
  file_ = &file;
  ASSIGN_OR_RETURN(const Trials trials, ReadTrials());
  facts_.trials = trials.total;
  RETURN_IF_ERROR(AddExperiment());
  RETURN_IF_ERROR(AddEvents());
  RETURN_IF_ERROR(AddModels());
  RETURN_IF_ERROR(AddCurves(trials));
  RETURN_IF_ERROR(AddTrialPages(trials, choice));
  for (const std::string& why : missing_) LeaveOut("Pictures that could not be made: " + why + ".");
  LeaveOut(
      "Values of environment variables and HTTP headers, and what is named as a password, token "
      "or key or looks like one, here and in all texts. A secret of another name is not known as "
      "one: read what you send.");
  if (choice.logs) {
    const auto& job = experiment_.status().shirabe().on_success();
    RETURN_IF_ERROR(AddLogsOf("/on-success", job.attempts()));
  }
  if (!choice.logs) LeaveOut("Logs (--logs adds the end of those of the trials with a page).");
  return absl::OkStatus();
}

StatusOr<ReportContent::Trials> ReportContent::ReadTrials() {
  Trials trials;
  std::vector<std::pair<double, int64_t>> ended;
  const bool maximize = experiment_.spec().objective().type() == v1::MAXIMIZE;
  auto request = RequestOf<v1::ColumnsRequest>(facts_.experiment);
  for (const char* field : {"trial", "state", "objective"}) request.add_fields(field);
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(const auto columns, client_.Get<v1::Columns>("GetTrialColumns", request));
    const auto& numbers = columns.columns(0).values();
    const v1::Column& states = columns.columns(1);
    for (int64_t row = 0; row < columns.rows(); ++row) {
      const int i = static_cast<int>(row);
      const auto number = static_cast<int64_t>(numbers[i]);
      const bool known = std::isfinite(states.values(i));
      const std::string state =
          known ? states.dictionary(static_cast<int>(states.values(i))) : std::string();
      const double objective = columns.columns(2).values(i);
      if (state == "Running" || state == "Pending" || state == "Created") {
        trials.open.push_back(number);
      } else if (std::isfinite(objective)) {
        ended.emplace_back(maximize ? -objective : objective, number);
      } else {
        trials.others.push_back(number);
      }
    }
    trials.total = columns.total();
    more = columns.has_next();
    *request.mutable_after() = columns.next();
  }
  StableSort(ended);
  for (const auto& [value, number] : ended) trials.ranked.push_back(number);
  std::reverse(trials.open.begin(), trials.open.end());
  std::reverse(trials.others.begin(), trials.others.end());
  return trials;
}

Status ReportContent::Add(const std::string& target) {
  ASSIGN_OR_RETURN(auto reply, routes_.Get(target));
  return file_->Add({target, std::move(reply.type), std::move(reply.body)});
}

Status ReportContent::AddIfThere(const std::string& target) {
  auto reply = routes_.Get(target);
  if (reply.ok()) return file_->Add({target, std::move(reply->type), std::move(reply->body)});
  missing_.insert(Message(reply.status()));
  return absl::OkStatus();
}

void ReportContent::LeaveOut(const std::string& sentence) {
  facts_.left_out.push_back(Printable(routes_.Redact(sentence)));
}

// ---- the experiment ----------------------------------------------------------------------------

// All pages of a route of columns, whose replies say which is next in their head.
Status ReportContent::AddPages(const std::string& target) {
  std::string next;
  for (int page = 0; page < kMostPages; ++page) {
    const std::string asked = next.empty() ? target : Joined(target, "pageToken=" + next);
    ASSIGN_OR_RETURN(auto reply, routes_.Get(asked));
    ASSIGN_OR_RETURN(const view::Json head, HeadOfColumns(reply.body));
    next = head.value("nextPageToken", "");
    RETURN_IF_ERROR(file_->Add({asked, std::move(reply.type), std::move(reply.body)}));
    if (next.empty()) return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the experiment has more than a report can hold: ", target));
}

Status ReportContent::AddExperiment() {
  RETURN_IF_ERROR(Add("version"));
  RETURN_IF_ERROR(Add(base_));
  RETURN_IF_ERROR(AddPages(base_ + ColumnsOf(experiment_.spec())));
  RETURN_IF_ERROR(AddPages(base_ + "/timeline"));
  if (experiment::IsEnded(experiment_)) return absl::OkStatus();
  const std::string next = base_ + "/suggestions?count=5";
  auto reply = routes_.GetAsStored(next);
  if (!reply.ok()) {
    LeaveOut("Next suggestions: " + Message(reply.status()) + ".");
    return absl::OkStatus();
  }
  return file_->Add({next, std::move(reply->type), std::move(reply->body)});
}

// The newest ones, where there are many.
Status ReportContent::AddEvents() {
  ASSIGN_OR_RETURN(const auto events, client_.ListEvents({.experiment = facts_.experiment}));
  const auto total = static_cast<int64_t>(events.size());
  const int64_t from = std::max<int64_t>(0, total - kMostEvents);
  if (from > 0) {
    LeaveOut(absl::StrCat("The first ", from, " of ", total, " events."));
  }
  auto reply = routes_.ShowEvents({events.begin() + from, events.end()});
  return file_->Add({base_ + "/events", std::move(reply.type), std::move(reply.body)});
}

// ---- models and curves -------------------------------------------------------------------------

Status ReportContent::AddModels() {
  for (const char* what : {"/importance?method=gp", "/importance?method=ped", "/ablation"}) {
    RETURN_IF_ERROR(AddIfThere(base_ + what));
  }
  auto request = RequestOf<v1::ImportanceRequest>(facts_.experiment);
  const auto importance = client_.Get<v1::Importance>("GetImportance", request);
  std::vector<std::string> names;  // the most important first
  if (importance.ok()) {
    for (const auto& one : importance->parameters()) names.push_back(one.parameter());
  }
  for (const v1::ParameterSpec& parameter : experiment_.spec().parameters()) {
    const std::string& name = parameter.name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const std::string route = base_ + "/partial-dependence?parameter=";
  for (size_t i = 0; i < names.size() && i < kMostModelled; ++i) {
    RETURN_IF_ERROR(AddIfThere(route + Escape(names[i])));
  }
  const size_t paired = std::min(names.size(), kMostPaired);
  for (size_t i = 0; i < paired; ++i) {
    for (size_t j = i + 1; j < paired; ++j) {
      const std::string both = absl::StrCat(route, Escape(names[i]), "&with=", Escape(names[j]));
      RETURN_IF_ERROR(AddIfThere(both));
    }
  }
  if (paired < names.size()) {
    LeaveOut(absl::StrCat("Two parameters at once, but for the ", paired, " most important ones: ",
                          absl::StrJoin(names.begin(), names.begin() + paired, ", "), "."));
  }
  return absl::OkStatus();
}

Status ReportContent::AddCurves(const Trials& trials) {
  std::vector<int64_t> drawn(trials.open.begin(),
                             trials.open.begin() + std::min(trials.open.size(), kMostCurves / 2));
  for (const int64_t trial : trials.ranked) {
    if (drawn.size() < kMostCurves) drawn.push_back(trial);
  }
  if (drawn.empty()) return absl::OkStatus();
  const v1::ObjectiveSpec& objective = experiment_.spec().objective();
  std::vector<std::string> metrics = {objective.objective_metric_name()};
  metrics.insert(metrics.end(), objective.additional_metric_names().begin(),
                 objective.additional_metric_names().end());
  for (size_t i = 0; i < metrics.size() && i < kMostMetrics; ++i) {
    for (const char* axis : {"step", "time"}) {
      const std::string target =
          absl::StrCat(base_, "/curves?metric=", Escape(metrics[i]), "&axis=", axis,
                       "&px=", kCurvePixels, "&trials=", absl::StrJoin(drawn, ","));
      RETURN_IF_ERROR(AddIfThere(target));
    }
  }
  if (metrics.size() > kMostMetrics) {
    LeaveOut(absl::StrCat("Curves of other metrics than the first ", kMostMetrics, "."));
  }
  if (static_cast<int64_t>(drawn.size()) < trials.total) {
    LeaveOut(absl::StrCat("Curves but those of the best trials and of some that run: ",
                          drawn.size(), " of ", trials.total, " trials have theirs."));
  }
  return absl::OkStatus();
}

// ---- pages of trials ---------------------------------------------------------------------------

Status ReportContent::AddTrialPages(const Trials& trials, const ReportChoice& choice) {
  // The front of several objectives first. Then a quarter each for what runs and what went wrong;
  // what they do not need is for the best.
  const auto most = static_cast<size_t>(choice.trial_pages);
  std::set<int64_t> chosen;
  const auto take = [&](const std::vector<int64_t>& from, size_t up_to) {
    for (size_t i = 0; i < from.size() && i < up_to && chosen.size() < most; ++i) {
      chosen.insert(from[i]);
    }
  };
  std::vector<int64_t> front;
  for (const auto& trial : experiment_.status().shirabe().front().trials()) {
    front.push_back(trial.number());
  }
  take(front, (most + 1) / 2);
  take(trials.ranked, (most + 1) / 2);
  take(trials.open, most / 4);
  take(trials.others, most / 4);
  for (const auto* rest : {&trials.ranked, &trials.open, &trials.others}) take(*rest, rest->size());
  for (const int64_t number : chosen) RETURN_IF_ERROR(AddTrialPage(number, choice.logs));
  facts_.trial_pages = static_cast<int64_t>(chosen.size());
  if (facts_.trial_pages < trials.total) {
    LeaveOut(absl::StrCat("Pages of ", trials.total - facts_.trial_pages, " of ", trials.total,
                          " trials, of which the report has a row in the table only (--trials N "
                          "adds more)."));
  }
  if (long_metrics_ > 0) {
    LeaveOut(absl::StrCat("Metric values of ", long_metrics_, " trials with more than ", kPageSize,
                          " of them."));
  }
  return absl::OkStatus();
}

Status ReportContent::AddTrialPage(int64_t number, bool logs) {
  const std::string trial = absl::StrCat(base_, "/trials/", number);
  RETURN_IF_ERROR(Add(trial));
  for (const char* list : {"/attempts", "/checkpoints"}) {
    RETURN_IF_ERROR(Add(absl::StrCat(trial, list, "?pageSize=", kPageSize)));
  }
  RETURN_IF_ERROR(AddObservations(number));
  return logs ? AddLogs(number) : absl::OkStatus();
}

Status ReportContent::AddObservations(int64_t number) {
  for (const char* which : {"", "&allAttempts=true"}) {
    const std::string target =
        absl::StrCat(base_, "/trials/", number, "/observations?pageSize=", kPageSize, which);
    ASSIGN_OR_RETURN(auto reply, routes_.Get(target));
    ASSIGN_OR_RETURN(const auto page, ParseJson<view::Json>(reply.body));
    if (page.contains("nextPageToken")) {
      ++long_metrics_;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(file_->Add({target, std::move(reply.type), std::move(reply.body)}));
  }
  return absl::OkStatus();
}

Status ReportContent::AddLogs(int64_t number) {
  ASSIGN_OR_RETURN(const v1::Trial trial, client_.GetTrial({facts_.experiment, number}));
  return AddLogsOf(absl::StrCat("/trials/", number), trial.attempts());
}

Status ReportContent::AddLogsOf(const std::string& what, int64_t attempts) {
  for (int64_t attempt = 1; attempt <= attempts; ++attempt) {
    const std::string target = absl::StrCat(base_, what, "/attempts/", attempt, "/log");
    auto reply = routes_.GetTail(target, kLogBytes);
    if (absl::IsNotFound(reply.status())) continue;  // nothing was printed, or it has been pruned
    RETURN_IF_ERROR(reply.status());
    RETURN_IF_ERROR(file_->Add({target, std::move(reply->type), std::move(reply->body)}));
  }
  return absl::OkStatus();
}

}  // namespace shirabe::cmd
