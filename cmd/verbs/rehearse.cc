// rehearse: runs one trial twice, undisturbed and with its machine taken away, and says whether the
// program loses nothing by it. 0 = it is safe, 1 = it is not.
#include <algorithm>
#include <filesystem>

#include "base/registry.h"
#include "cmd/artifact_stores.h"
#include "cmd/job_packages.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/spec/local_support.h"
#include "rehearsal/rehearsal.h"
#include "rehearsal/rehearsal_report.h"

namespace shirabe::cmd {
namespace {

constexpr int64_t kMaxReclaims = 20;

struct RehearseRequest {
  std::string file;
  std::vector<std::string> params;
  std::optional<int64_t> reclaims;
  std::optional<double> notice;
  std::optional<int64_t> seed;
  std::optional<double> tolerance;
  std::optional<double> per_hour;
  std::string gpus;
  std::string code;
  std::string output = "table";
};

void AddRequest(Options& options, RehearseRequest* request) {
  options.Text("-f,--file", &request->file, "FILE", "an Experiment in YAML, or - for stdin");
  options.Texts("-p,--param", &request->params, "NAME=VALUE",
                "instead of the value that the search begins with; may be repeated");
  options.Number("--reclaims", &request->reclaims, 1,
                 "how often the machine is taken away, at first without notice (default 2)");
  options.Decimal("--notice", &request->notice, 0,
                  "seconds of notice of the others (default gracePeriodSeconds)");
  options.Number("--seed", &request->seed, 0, "of the moments of the reclaims (default 0)");
  options.Decimal("--tolerance", &request->tolerance, 0,
                  "relative difference of metrics that is let pass (default 1e-6)");
  options.Decimal("--reclaims-per-hour", &request->per_hour, 0,
                  "to be expected of a machine, for the interval of checkpoints (default 1)");
  options.Text("--gpus", &request->gpus, "LIST", "GPUs for a trial that asks for some: 0,1");
  options.Word("-o,--output", &request->output, {"table", "json", "yaml"}, "how to print");
  options.Arguments("nothing", nullptr, 0, 0);
}

void PrintRehearsal(const RehearseRequest& request, const rehearsal::RehearsalReport& report) {
  if (request.output == "json") return Out(view::PrintJson(rehearsal::ReportJson(report)));
  if (request.output == "yaml") return Out(view::PrintYaml(rehearsal::ReportJson(report)));
  Out(rehearsal::ReportText(report));
}

// Its program, where that is not here. From where its trials have it.
StatusOr<StoreTablePtr> BringProgram(const Globals& globals, const RehearseRequest& request,
                                     v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(globals));
  ASSIGN_OR_RETURN(StoreTablePtr stores, FindStores(globals, place));
  if (!request.code.empty()) RETURN_IF_ERROR(UploadCodeFor(experiment, request.code, stores));
  RETURN_IF_ERROR(FetchPackages(experiment, {}, globals, place));
  return stores;
}

rehearsal::RehearsalOptions OptionsFor(const RehearseRequest& request,
                                       const v1::Experiment& experiment, Interrupts& interrupts) {
  return {.experiment = experiment,
          .params = request.params,
          .reclaims = static_cast<int>(std::min(request.reclaims.value_or(2), kMaxReclaims)),
          .notice = request.notice,
          .seed = static_cast<uint64_t>(request.seed.value_or(0)),
          .devices = ChooseDevices(request.gpus, &experiment),
          .working_dir = std::filesystem::current_path().string(),
          .clock = RealClock(),
          .say = ProgressLine,
          .wait = [&](absl::Duration time) { return interrupts.Wait(time) == 0; }};
}

}  // namespace

StatusOr<int> Rehearse(const Arguments& arguments) {
  Globals globals;
  RehearseRequest request;
  Options options("rehearse -f FILE",
                  "Runs one trial of an experiment twice, undisturbed and with its machine taken "
                  "away, and says whether the program stops in time, saves, goes on where it was "
                  "and ends with the same numbers. What is wrong comes with the fix. Nothing of it "
                  "is kept, but for a code package in its store. The exit code is 0 if it is safe, "
                  "and 1 if it is not.");
  AddRequest(options, &request);
  AddStores(options, &globals);
  AddCode(options, &request.code);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (!globals.server.empty() || !globals.context.empty()) {
    return UsageError("rehearse works on this machine: leave --server and --context out");
  }
  if (request.file.empty()) return UsageError("give -f FILE; see shirabe rehearse --help");
  ASSIGN_OR_RETURN(v1::Experiment experiment, LoadExperiment(request.file));
  RETURN_IF_ERROR(experiment::CheckRunnable(experiment));
  // Before anything starts a thread: the signals are to reach none of them.
  Interrupts interrupts;
  ASSIGN_OR_RETURN(StoreTablePtr stores, BringProgram(globals, request, experiment));
  rehearsal::RehearsalOptions how = OptionsFor(request, experiment, interrupts);
  how.stores = std::move(stores);
  const auto rehearsal = rehearsal::Rehearse(how);
  // A program that does not even succeed undisturbed is not safe.
  if (absl::IsFailedPrecondition(rehearsal.status())) {
    PrintError(rehearsal.status());
    return kFailure;
  }
  if (!rehearsal.ok()) return AsUsage(rehearsal.status());
  const rehearsal::RehearsalReport report =
      rehearsal::Judge(*rehearsal, {.tolerance = request.tolerance.value_or(1e-6),
                                    .reclaims_per_hour = request.per_hour.value_or(1)});
  PrintRehearsal(request, report);
  return report.safe ? kOk : kFailure;
}

SHIRABE_REGISTER(Verb, {.name = "rehearse",
                        .group = VerbGroup::kRun,
                        .summary = "take machines away from one trial: is the program safe?",
                        .run = Rehearse});

}  // namespace shirabe::cmd
