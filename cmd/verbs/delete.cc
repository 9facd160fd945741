#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {
namespace {

constexpr int64_t kDefaultDeleteTimeout = 60;

Status DeleteOne(const Session& session, const std::string& name, absl::Duration patience) {
  ASSIGN_OR_RETURN(const auto schedule, ScheduleArgument(name, session.ns));
  if (schedule) {
    v1::DeleteScheduleRequest request;
    *request.mutable_schedule() = *schedule;
    RETURN_IF_ERROR(session.client->Get<v1::Done>("DeleteSchedule", request).status());
    Out("schedule/" + schedule->name() + " deleted\n");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
  RETURN_IF_ERROR(session.client->Delete(key, patience, SleepUninterrupted));
  Out("experiment/" + key.name + " deleted\n");
  return absl::OkStatus();
}

}  // namespace

StatusOr<int> Delete(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  bool ignore_missing = false;
  std::optional<int64_t> patience_s;
  Options options("delete EXPERIMENT|schedule/NAME…",
                  "Ends experiments if they run, and removes their records and files. Asks "
                  "nothing. Of a schedule the experiments that it has started stay.");
  options.Arguments("EXPERIMENT", &names, 1, 1000);
  options.Flag("--ignore-not-found", &ignore_missing, "what is not there is fine");
  options.Number("--timeout", &patience_s, 0, "seconds to wait for running trials (default 60)");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  Status worst;
  if (!names.empty() && (names[0] == "exp" || names[0] == "experiment") && names.size() > 1) {
    names.erase(names.begin());  // kubectl's habit: delete exp NAME
  }
  if (names.size() > 1 && names[0] == "schedule") {
    names.erase(names.begin());
    for (std::string& name : names) name = "schedule/" + name;
  }
  for (const std::string& name : names) {
    const Status status =
        DeleteOne(session, name, absl::Seconds(patience_s.value_or(kDefaultDeleteTimeout)));
    if (status.ok() || (ignore_missing && absl::IsNotFound(status))) continue;
    if (!worst.ok()) PrintError(worst);
    worst = status;
  }
  RETURN_IF_ERROR(worst);
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "delete",
                        .group = VerbGroup::kSubmit,
                        .summary = "end an experiment, and remove its records and files",
                        .completes = CompleteExperiments,
                        .run = Delete});

}  // namespace shirabe::cmd
