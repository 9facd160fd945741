// Experiments: list, create, get, apply, change counts, delete.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/json_text.h"
#include "experiment/conditions.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/common/change_hub.h"
#include "service/common/long_polls.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"
#include "view/record_filter.h"

namespace shirabe::service {
namespace {

constexpr char kList[] = "/api/v1/experiments";
constexpr char kListIn[] = "/api/v1/namespaces/{namespace}/experiments";
constexpr int64_t kDeletePatience = 30;  // seconds
constexpr int64_t kMaxDeletionWait = 300;
// How long a patch waits for changes that were asked for before it.
constexpr absl::Duration kPatchPatience = absl::Seconds(1);
constexpr absl::Duration kPatchAgain = absl::Milliseconds(20);

// What `If-Match: "3"`, `If-Match: *` and `If-None-Match: *` ask for.
StatusOr<experiment::Precondition> PreconditionOf(const Call& call) {
  experiment::Precondition wanted;
  wanted.absent = call.request.Header("if-none-match") == "*";
  const std::string& tag = call.request.Header("if-match");
  wanted.present = !tag.empty();
  if (tag.empty() || tag == "*") return wanted;
  const bool quoted = tag.size() > 2 && tag.front() == '"' && tag.back() == '"';
  if (quoted && absl::SimpleAtoi(tag.substr(1, tag.size() - 2), &wanted.generation) &&
      wanted.generation > 0) {
    return wanted;
  }
  return BadField("If-Match", "must be the ETag of the experiment, such as \"1\", not " + tag);
}

// A condition of the request that does not hold.
Status Failed(const Status& status) { return WithHttpStatus(status, 412); }

// 412 where `status` says that the precondition does not hold, and not another reason.
Status AsFailed(Call& call, const experiment::Precondition& wanted, const Status& status) {
  if (wanted.absent && absl::IsAlreadyExists(status) &&
      call.client->GetExperiment(call.Experiment()).ok()) {
    return Failed(absl::AlreadyExistsError("If-None-Match: * was asked for, and experiment " +
                                           ToString(call.Experiment()) + " is there"));
  }
  const bool gone = wanted.present && absl::IsNotFound(status);
  const bool stale = wanted.generation > 0 && absl::IsAborted(status);
  return gone || stale ? Failed(status) : status;
}

StatusOr<HttpReply> ListExperiments(Call& call) {
  std::string ns = call.Text("namespace");
  if (ns.empty()) ns = call.principal.ns;  // of a user: what they may see
  ASSIGN_OR_RETURN(const int64_t revision, call.client->Revision());
  ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
  ASSIGN_OR_RETURN(const auto selection, SelectionOf(call, view::ExperimentFields(position.time)));
  ASSIGN_OR_RETURN(auto experiments, call.client->ListExperiments(ns));
  selection.Apply(experiments, -1);
  const auto place = [&](const v1::Experiment& experiment) {
    return PageKey{selection.OrderOf(experiment),
                   Json::array({experiment.metadata().namespace_(), experiment.metadata().name()})};
  };
  return PageReply(SlicePage(call, position, experiments, PageForm{place, view::ExperimentJson}),
                   revision);
}

StatusOr<HttpReply> GetExperiment(Call& call) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, call.client->GetExperiment(call.Experiment()));
  return ExperimentReply(experiment);
}

struct Submission {
  v1::Experiment experiment;
  HttpHeaders warnings;
  experiment::Precondition precondition;
};

// 201 if it is new, 202 if its owner has been asked to change it, 200 if nothing is to be done.
StatusOr<HttpReply> SubmitIt(Call& call, const Submission& submission) {
  const ExperimentKey key = experiment::KeyOf(submission.experiment);
  ASSIGN_OR_RETURN(const experiment::Submitted submitted,
                   call.client->Submit(submission.experiment, submission.precondition));
  ASSIGN_OR_RETURN(const v1::Experiment stored, call.client->GetExperiment(key));
  const bool later = submitted.changed && !submitted.created;
  // As it was, where it is yet to be changed: what it will be has another ETag.
  HttpReply reply = later ? JsonReply(view::ExperimentJson(stored), 202)
                          : ExperimentReply(stored, submitted.created ? 201 : 200);
  if (submitted.created) {
    reply.headers.emplace_back(
        "Location", absl::StrCat("/api/v1/namespaces/", key.ns, "/experiments/", key.name));
  }
  for (const auto& warning : submission.warnings) reply.headers.push_back(warning);
  return reply;
}

StatusOr<HttpReply> Create(Call& call) {
  std::string ns = call.Text("namespace");
  if (ns.empty()) ns = call.principal.ns;
  ASSIGN_OR_RETURN(ReadExperiment read, ReadExperimentBody(call.request, ns));
  const ExperimentKey key = experiment::KeyOf(read.experiment);
  RETURN_IF_ERROR(call.principal.CheckRead(key.ns));
  auto reply =
      SubmitIt(call, {std::move(read.experiment), std::move(read.warnings), {.absent = true}});
  if (!absl::IsAlreadyExists(reply.status()) || !call.client->GetExperiment(key).ok()) return reply;
  return absl::AlreadyExistsError("experiment " + ToString(key) +
                                  " is there already: PUT applies changes, or give another name");
}

StatusOr<HttpReply> Apply(Call& call) {
  ASSIGN_OR_RETURN(const experiment::Precondition wanted, PreconditionOf(call));
  ASSIGN_OR_RETURN(ReadExperiment read, ReadExperimentBody(call.request, call.Text("namespace")));
  if (read.experiment.metadata().name() != call.Text("name")) {
    return BadField("metadata.name", absl::StrCat("is ", read.experiment.metadata().name(),
                                                  ", but the URL says ", call.Text("name")));
  }
  auto reply = SubmitIt(call, {std::move(read.experiment), std::move(read.warnings), wanted});
  if (!reply.ok()) return AsFailed(call, wanted, reply.status());
  return reply;
}

using Words = google::protobuf::Map<std::string, std::string>;

bool Equal(const Words& a, const Words& b) {
  return std::map<std::string, std::string>(a.begin(), a.end()) ==
         std::map<std::string, std::string>(b.begin(), b.end());
}

// RFC 7396 on the experiment as it is printed; what may change is decided as for PUT,
// which leaves labels and annotations as they were: files have others, and say nothing by it.
StatusOr<v1::Experiment> Patched(const Call& call, const v1::Experiment& stored) {
  RETURN_IF_ERROR(CheckJsonLimits(call.request.body, kRequestJson));
  Json patch = ReadJsonOrDiscarded<Json>(call.request.body, kRequestJson);
  if (!patch.is_object()) {
    return absl::InvalidArgumentError(
        "the body must be a JSON merge patch, such as {\"spec\": {\"maxTrialCount\": 50}}");
  }
  Json wanted = view::ExperimentJson(stored);
  wanted.erase("status");
  patch.erase("status");
  wanted.merge_patch(patch);
  experiment::ParsedExperiment parsed = ParseOne(view::PrintJsonLine(wanted));
  if (experiment::HasErrors(parsed.findings)) {
    return BadSpec("the patched experiment is not valid", parsed.findings);
  }
  if (experiment::KeyOf(parsed.experiment) != call.Experiment()) {
    return BadField("metadata", "of an experiment cannot change: its name and namespace stay");
  }
  const v1::ObjectMeta &before = stored.metadata(), &after = parsed.experiment.metadata();
  for (const auto& [field, same] :
       {std::pair("metadata.labels", Equal(before.labels(), after.labels())),
        std::pair("metadata.annotations", Equal(before.annotations(), after.annotations()))}) {
    if (!same) return BadField(field, "of an experiment cannot change: give tags to it instead");
  }
  return std::move(parsed.experiment);
}

// Always conditional on what it was applied to, or one of two patches of different fields would
// undo the other. A caller that named no ETag does not mind what it is applied to: then once more.
StatusOr<HttpReply> Patch(Call& call) {
  ASSIGN_OR_RETURN(const experiment::Precondition wanted, PreconditionOf(call));
  const absl::Duration deadline = call.context.clock->Monotonic() + kPatchPatience;
  for (;;) {
    const auto stored = call.client->GetExperiment(call.Experiment());
    if (!stored.ok()) return AsFailed(call, wanted, stored.status());
    ASSIGN_OR_RETURN(v1::Experiment patched, Patched(call, *stored));
    experiment::Precondition unchanged{.generation = stored->metadata().generation()};
    if (wanted.generation > 0) unchanged = wanted;
    auto reply = SubmitIt(call, {std::move(patched), {}, unchanged});
    if (reply.ok()) return reply;
    const bool again = wanted.generation == 0 && absl::IsAborted(reply.status()) &&
                       call.context.clock->Monotonic() < deadline;
    if (!again || !call.context.shutdown_wait->Wait(kPatchAgain)) {
      return AsFailed(call, wanted, reply.status());
    }
  }
}

class PendingDeletion : public PendingReply {
 public:
  PendingDeletion(DeletionCheck deletion, Quota::Share share, absl::Duration patience)
      : PendingReply({.experiment = deletion.key(), .patience = patience, .poll = kDeletionPoll}),
        deletion_(std::move(deletion)),
        share_(std::move(share)) {}
  std::optional<StatusOr<HttpReply>> TryAnswer(bool last) override {
    const auto deleted = deletion_.TryAnswer(last);
    if (!deleted) return std::nullopt;
    if (!deleted->ok()) return *deleted;
    return HttpReply{.status = 204, .type = ""};
  }

 private:
  DeletionCheck deletion_;
  const Quota::Share share_;
};

// With If-Match, the intent carries the condition; what follows only waits for its effect.
StatusOr<HttpReply> Delete(Call& call) {
  const ExperimentKey key = call.Experiment();
  const int64_t seconds = call.Integer("waitSeconds", kDeletePatience);
  ASSIGN_OR_RETURN(const experiment::Precondition wanted, PreconditionOf(call));
  const Status found = call.client->GetExperiment(key).status();
  if (!found.ok()) return AsFailed(call, wanted, found);
  if (seconds == 0 || wanted.generation > 0) {
    v1::Intent intent;
    intent.set_verb(v1::Intent::DELETE);
    intent.set_generation(wanted.generation);
    const Status sent = call.client->Send(key, intent);
    if (!sent.ok()) return AsFailed(call, wanted, sent);
    if (seconds == 0) return HttpReply{.status = 202, .type = ""};
  }
  ASSIGN_OR_RETURN(Quota::Share share, call.AcquireWait());
  DeletionCheck deletion(std::move(call.client), key);
  const Status deleted = deletion.Begin();
  const bool done = wanted.generation > 0 && absl::IsNotFound(deleted);  // by the intent above
  if (deleted.ok() || done) return HttpReply{.status = 204, .type = ""};
  if (!absl::IsDeadlineExceeded(deleted)) return deleted;
  HttpReply reply;
  reply.pending = std::make_unique<PendingDeletion>(std::move(deletion), std::move(share),
                                                    absl::Seconds(seconds));
  return reply;
}

const Parameter kIfMatch{.name = "If-Match",
                         .help = "ETag of the experiment: only if it is still that",
                         .in = Parameter::In::kHeader};
const Parameter kIfNoneMatch{.name = "If-None-Match",
                             .help = "*: only if there is none yet",
                             .in = Parameter::In::kHeader,
                             .words = {"*"}};

Route ListRoute(const char* path, const char* id, const char* summary) {
  return {.method = "GET",
          .path = path,
          .id = id,
          .rpc = "ListExperiments",
          .summary = summary,
          .parameters = PageParameters(true),
          .results = {{.body = v1::Experiment::descriptor(), .list = true}},
          .handle = ListExperiments};
}

Route CreateRoute(const char* path, const char* id) {
  return {.method = "POST",
          .path = path,
          .id = id,
          .rpc = "SubmitExperiment",
          .summary = "Creates an experiment from YAML or JSON; refuses if there is one of its name",
          .request = v1::Experiment::descriptor(),
          .results = {{.status = 201, .body = v1::Experiment::descriptor()}},
          .handle = Create};
}

std::vector<Result> SubmitResults(bool created) {
  std::vector<Result> results = {{.status = 200, .body = v1::Experiment::descriptor()},
                                 {.status = 202, .body = v1::Experiment::descriptor()}};
  if (created) results.push_back({.status = 201, .body = v1::Experiment::descriptor()});
  return results;
}

std::vector<Route> ExperimentRoutes() {
  const auto* experiment = v1::Experiment::descriptor();
  return {
      ListRoute(kList, "listAllExperiments",
                "Lists the experiments of all namespaces, or of the caller's"),
      ListRoute(kListIn, "listExperiments", "Lists the experiments of a namespace"),
      CreateRoute(kList, "createExperimentAnywhere"),
      CreateRoute(kListIn, "createExperiment"),
      {.method = "GET",
       .path = kExperimentPath,
       .id = "getExperiment",
       .rpc = "GetExperiment",
       .summary = "An experiment, with its status",
       .results = {{.body = experiment}},
       .handle = GetExperiment},
      {.method = "PUT",
       .path = kExperimentPath,
       .id = "applyExperiment",
       .rpc = "SubmitExperiment",
       .summary =
           "Creates the experiment, or changes its counts and goal to these (202: as it was, "
           "its owner changes it within a second); refuses another search of the same name",
       .parameters = {kIfMatch, kIfNoneMatch},
       .request = experiment,
       .results = SubmitResults(true),
       .handle = Apply},
      {.method = "PATCH",
       .path = kExperimentPath,
       .id = "patchExperiment",
       .rights = MakeRights(v1::Rights::NAMESPACE, v1::Rights::CHANGE),
       .summary =
           "Changes the counts and the goal by a JSON merge patch (202: as it was, its owner "
           "changes it within a second)",
       .parameters = {kIfMatch},
       .request = experiment,
       .results = SubmitResults(false),
       .handle = Patch},
      {.method = "DELETE",
       .path = kExperimentPath,
       .id = "deleteExperiment",
       .rpc = "DeleteExperiment",
       .summary = "Ends an experiment and removes its records and files",
       .parameters = {kIfMatch,
                      {.name = "waitSeconds",
                       .help = "how long to wait until it is gone; 0 = only ask for it",
                       .type = Parameter::Type::kInteger,
                       .min = 0,
                       .max = kMaxDeletionWait,
                       .default_value = std::to_string(kDeletePatience)}},
       .results = {{.status = 204, .type = ""}, {.status = 202, .type = ""}},
       .slow = true,
       .handle = Delete},
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "experiments", .routes = ExperimentRoutes});

}  // namespace shirabe::service
