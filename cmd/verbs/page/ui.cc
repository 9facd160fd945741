// ui: the dashboard, of this machine's store or of a server.
#include "base/registry.h"
#include "cmd/page_server.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kUiSignalPoll = absl::Milliseconds(200);

struct UiFlags {
  std::string experiment;
  std::optional<int64_t> port;
  bool no_open = false;
};

// The experiment that is to be shown; none has an empty name.
StatusOr<ExperimentKey> ShownExperiment(const UiFlags& flags, const Session& session) {
  if (flags.experiment.empty()) return ExperimentKey{};
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(flags.experiment, session.ns));
  RETURN_IF_ERROR(session.client->GetExperiment(key).status());
  return key;
}

}  // namespace

StatusOr<int> Ui(const Arguments& arguments) {
  Globals globals;
  UiFlags flags;
  std::vector<std::string> names;
  Options options("ui [EXPERIMENT]",
                  "Shows the dashboard in a browser until Ctrl-C: of the experiments of this "
                  "machine, or of a server with --server, whose token stays in this process. Runs "
                  "no experiment. Prints the address, which holds a token of its own: all who "
                  "have it can do what you can.");
  options.Arguments("[EXPERIMENT]", &names, 0, 1);
  options.Number("--port", &flags.port, 0, "of the page on 127.0.0.1 (default any that is free)");
  options.Flag("--no-open", &flags.no_open, "print the address only");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (flags.port.value_or(0) > 65535) return UsageError("--port must be at most 65535");
  if (!names.empty()) flags.experiment = names[0];
  // Before anything starts a thread: the signals are to reach none of them.
  Interrupts interrupts;
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(globals));
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const ExperimentKey shown, ShownExperiment(flags, session));
  ASSIGN_OR_RETURN(const auto page, PageServer::Start({.client = session.client.get(),
                                                       .home = place.home,
                                                       .port = flags.port.value_or(0)}));
  const std::string address = page->Address(shown);
  Out(address + "\n");
  RETURN_IF_ERROR(FlushOut());
  if (!flags.no_open && StdoutIsTerminal() && !OpenInBrowser(address, place.home)) {
    Hint("no browser is at hand: open the address yourself");
  }
  Hint("Ctrl-C ends it; experiments are not touched by that");
  while (interrupts.Wait(kUiSignalPoll) == 0) {
  }
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "ui",
                        .group = VerbGroup::kRead,
                        .summary = "the dashboard, in a browser",
                        .completes = CompleteExperiments,
                        .run = Ui});

}  // namespace shirabe::cmd
