// ask: the next trial of an experiment whose callers run the trials.
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/options.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "trial/trial_template.h"
#include "view/best_trial.h"
#include "view/record_rows.h"
#include "view/text_table.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kDefaultAskWait = absl::Seconds(30);

// USER@HOST: the same after a crash, so that a worker that starts again goes on with its trial.
std::string ThisCaller() {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  const char* user = std::getenv("USER");
  return absl::StrCat(user == nullptr || *user == '\0' ? "user" : user, "@", host);
}

std::string NameOf(const v1::AskReply& asked) {
  return TrialName({ExperimentKeyOf(asked.trial()), asked.trial().number()});
}

view::Json AskTree(const v1::AskReply& asked) {
  if (!asked.has_trial()) {
    return {{"trial", nullptr}, {"reason", asked.reason()}, {"ended", asked.ended()}};
  }
  view::Json assignments = view::Json::object();
  for (const v1::Assignment& assignment : asked.trial().assignments()) {
    assignments[assignment.name()] = view::TypedValue(assignment);
  }
  return {{"trial", NameOf(asked)},
          {"namespace", asked.trial().namespace_()},
          {"experiment", asked.trial().experiment()},
          {"number", asked.trial().number()},
          {"attempt", asked.attempt()},
          {"token", absl::BytesToHexString(asked.token())},
          {"caller", asked.trial().caller()},
          {"assignments", std::move(assignments)}};
}

std::string Table(const v1::AskReply& asked) {
  view::Cells header = {"TRIAL"};
  view::Cells cells = {NameOf(asked)};
  for (const v1::Assignment& assignment : asked.trial().assignments()) {
    header.push_back(assignment.name());
    cells.push_back(trial::FormatAssignment(assignment));
  }
  view::Table table(std::move(header));
  table.Add(std::move(cells));
  return table.Render();
}

// What the trial is, as the programs that Shirabe starts are told it.
std::string TrialVariables(const v1::AskReply& asked) {
  return absl::StrCat("SHIRABE_TRIAL=", NameOf(asked), "\nSHIRABE_ATTEMPT=", asked.attempt(), "\n",
                      kTrialTokenVariable, "=", absl::BytesToHexString(asked.token()), "\n");
}

void PrintAsked(const v1::AskReply& asked, const std::string& output) {
  const auto& assignments = asked.trial().assignments();
  if (output == "json") return Out(view::PrintJson(AskTree(asked)));
  if (output == "yaml") return Out(view::PrintYaml(AskTree(asked)));
  if (output == "env") return Out(TrialVariables(asked) + view::VariablesOf(assignments));
  if (output == "table") return Out(Table(asked));
  Out(view::ArgumentsOf(assignments));
  ProgressLine("trial " + NameOf(asked));
}

// Later there may be one, or never again.
int PrintNone(const v1::AskReply& asked, const std::string& output) {
  if (output == "json") Out(view::PrintJson(AskTree(asked)));
  if (output == "yaml") Out(view::PrintYaml(AskTree(asked)));
  ProgressLine("no trial: " + asked.reason());
  return asked.ended() ? kMissing : kTimedOut;
}

}  // namespace

StatusOr<int> Ask(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  std::string caller, wait;
  std::string output = "table";
  Options options(
      "ask EXPERIMENT [--caller NAME] [-o table|json|yaml|env|args]",
      "Asks for the next trial of an experiment with spec.shirabe.askAndTell, which the caller "
      "then runs and tells the result of. A caller who asks again is given the same trial until it "
      "has been told, so each worker needs a name of its own. Exits with 3 once the experiment has "
      "ended, with 124 if there is no trial yet.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Text("--caller", &caller, "NAME", "who asks (default $SHIRABE_CALLER, else USER@HOST)");
  options.Text("--wait", &wait, "TIME", "for the algorithm, at most: 30s (the default), 2m");
  options.Word("-o,--output", &output, {"table", "json", "yaml", "env", "args"}, "how to print");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const absl::Duration patience, ParseDurationOr("--wait", wait, kDefaultAskWait));
  if (caller.empty()) caller = client::ProcessEnvironment()("SHIRABE_CALLER").value_or("");
  if (caller.empty()) caller = ThisCaller();
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(names[0], session.ns));
  ASSIGN_OR_RETURN(const v1::AskReply asked, session.client->Ask(key, caller, patience));
  if (!asked.has_trial()) return PrintNone(asked, output);
  PrintAsked(asked, output);
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "ask",
                        .group = VerbGroup::kAskAndTell,
                        .summary = "the next trial, for a caller that runs it",
                        .completes = CompleteExperiments,
                        .outputs = {"table", "json", "yaml", "args", "env"},
                        .run = Ask});

}  // namespace shirabe::cmd
