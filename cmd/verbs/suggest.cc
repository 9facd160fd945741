// suggest: what would be tried next. Nothing is written.
#include "base/registry.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {
namespace {

struct SuggestRequest {
  std::vector<std::string> names;
  std::string file;
  std::optional<int64_t> count;
  bool dry_run = false;
};

StatusOr<v1::Experiment> FindExperiment(const Session& session, const SuggestRequest& request) {
  if (!request.file.empty()) return LoadExperiment(request.file);
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(request.names[0], session.ns));
  return session.client->GetExperiment(key);
}

void PrintCandidates(const ListFlags& flags, const v1::Experiment& experiment,
                     const v1::SuggestReply& reply) {
  const Printer<v1::SuggestReply::Point> printer{
      .header = view::CandidateHeader(experiment),
      .row = [&](const v1::SuggestReply::Point& point,
                 const view::RowStyle&) { return view::CandidateRow(experiment, point); },
      .tree = view::CandidateJson};
  Listing<v1::SuggestReply::Point>(flags, printer)
      .PrintAll({reply.points().begin(), reply.points().end()});
}

}  // namespace

StatusOr<int> Suggest(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  SuggestRequest request;
  Options options("suggest EXPERIMENT|-f FILE --dry-run [-k N]",
                  "Shows the points that the algorithm would try next. Nothing is stored.");
  options.Arguments("EXPERIMENT", &request.names, 0, 1);
  options.Text("-f,--file", &request.file, "FILE", "of the experiment in this file");
  options.Number("-k,--count", &request.count, 1, "how many (default 5)");
  options.Flag("--dry-run", &request.dry_run, "required: a reminder that nothing is stored");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (request.names.empty() == request.file.empty()) {
    return UsageError("give one of EXPERIMENT and -f FILE");
  }
  if (!request.dry_run) {
    return UsageError(
        "suggest only shows points, and wants to be called with --dry-run; "
        "shirabe run tries them");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, FindExperiment(session, request));
  const int count = static_cast<int>(std::min<int64_t>(request.count.value_or(5), 100'000));
  ASSIGN_OR_RETURN(const auto reply, session.client->Suggest(experiment, count));
  PrintCandidates(flags, experiment, reply);
  if (reply.points_size() < count && !reply.reason().empty()) {
    ProgressLine("fewer than " + std::to_string(count) + ": " + reply.reason());
  }
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "suggest",
                        .group = VerbGroup::kAskAndTell,
                        .summary = "show the points that would be tried next",
                        .completes = CompleteExperiments,
                        .run = Suggest});

}  // namespace shirabe::cmd
