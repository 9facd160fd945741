// edit: the counts and the goal of an experiment in the user's editor.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "experiment/spec/message_tree.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/yaml_to_message.h"
#include "view/spec_diff.h"

extern char** environ;

namespace shirabe::cmd {
namespace {

// What may change while an experiment runs, and nothing else.
v1::Experiment Changeable(const v1::ExperimentSpec& from) {
  v1::Experiment experiment;
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.set_parallel_trial_count(from.parallel_trial_count());
  if (from.has_max_trial_count()) spec.set_max_trial_count(from.max_trial_count());
  if (from.has_max_failed_trial_count()) {
    spec.set_max_failed_trial_count(from.max_failed_trial_count());
  }
  if (from.objective().has_goal()) spec.mutable_objective()->set_goal(from.objective().goal());
  return experiment;
}

std::string TextFor(const v1::Experiment& experiment) {
  return absl::StrCat(
      "# What may change of experiment ", ToString(experiment::KeyOf(experiment)),
      " while it runs: parallelTrialCount, maxTrialCount,\n"
      "# maxFailedTrialCount and objective.goal. A line that is removed takes its limit away.\n"
      "# Save and leave to apply it; leave without a change, or with an empty file, to keep it.\n",
      view::PrintYaml(experiment::ToTree(Changeable(experiment.spec()))));
}

std::string Editor() {
  const client::Environment environment = client::ProcessEnvironment();
  for (const char* name : {"SHIRABE_EDITOR", "VISUAL", "EDITOR"}) {
    if (const std::string editor = environment(name).value_or(""); !editor.empty()) return editor;
  }
  return "vi";
}

// The editor may be a command with arguments, so that a shell has to split it.
Status RunEditor(const std::string& editor, const std::string& file) {
  std::string shell = "/bin/sh", flag = "-c", command = editor + " \"$1\"", path = file;
  char* argv[] = {shell.data(), flag.data(), command.data(), shell.data(), path.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], nullptr, nullptr, argv, environ);
  if (error != 0) return ErrnoStatus("cannot start " + editor, error);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus("cannot wait for " + editor, errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::UnknownError(
      absl::StrCat(editor, " ended with an error ($EDITOR): nothing is changed"));
}

StatusOr<std::string> NewFile(const std::string& text) {
  const std::string folder = client::ProcessEnvironment()("TMPDIR").value_or("/tmp");
  std::string path = folder + "/shirabe-edit-XXXXXX.yaml";
  const Fd file(mkostemps(path.data(), 5, O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("cannot make a file in " + folder + " ($TMPDIR)", errno);
  RETURN_IF_ERROR(WriteFileAtomic(path, text));
  return path;
}

Status FirstError(const std::string& path, const std::vector<experiment::Finding>& findings) {
  Status first;
  for (const experiment::Finding& finding : findings) {
    if (finding.warning) continue;
    PrintFinding(experiment::FormatFinding(finding, path), false);
    if (first.ok()) first = absl::InvalidArgumentError(path + " has errors; it is kept");
  }
  return first;
}

// The text as a specification with nothing in it but what may change.
StatusOr<v1::Experiment> Parse(const std::string& path, const std::string& text) {
  v1::Experiment edited;
  experiment::Findings findings;
  for (const YamlDocument& document : ParseYaml(text)) {
    for (const auto& problem : document.problems) findings.Problem(problem.mark, problem.message);
    if (document.root.kind == YamlNode::Kind::kMapping) {
      experiment::Walk(document.root, edited, findings);
    }
  }
  const view::Json wanted =
      experiment::ToTree(Changeable(edited.spec())).value("spec", view::Json::object());
  const view::Json given = experiment::ToTree(edited);
  for (const auto& [key, value] : given.items()) {
    if (key != "spec") findings.Error(key, "may not be edited");
  }
  const view::Json spec = given.value("spec", view::Json::object());
  for (const auto& [key, value] : spec.items()) {
    const bool may = wanted.contains(key) && wanted[key] == value;
    if (!may) findings.Error("spec." + key, "may not be edited: it would be another search");
  }
  RETURN_IF_ERROR(FirstError(path, findings.Sorted()));
  return edited;
}

// The stored one, with these counts and this goal.
StatusOr<v1::Experiment> Changed(const std::string& path, const v1::Experiment& stored,
                                 const v1::Experiment& edited) {
  v1::Experiment wanted = stored;
  v1::ExperimentSpec& spec = *wanted.mutable_spec();
  spec.clear_parallel_trial_count();
  spec.clear_max_trial_count();
  spec.clear_max_failed_trial_count();
  spec.mutable_objective()->clear_goal();
  spec.MergeFrom(edited.spec());
  experiment::SetDefaults(wanted);
  RETURN_IF_ERROR(FirstError(path, experiment::Validate(wanted)));
  return wanted;
}

Status Apply(client::Client& client, const v1::Experiment& stored, const v1::Experiment& wanted) {
  const std::string name = stored.metadata().name();
  const auto differences = view::DiffSpecs(stored, wanted);
  for (const auto& difference : differences) Out(view::DifferenceText(difference));
  if (differences.empty()) {
    Out("experiment/" + name + " unchanged\n");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(client.Submit(wanted, {.generation = stored.metadata().generation()}).status());
  Out("experiment/" + name + " changed\n");
  return absl::OkStatus();
}

// After a mistake the user finds their text again.
Status EditIn(const std::string& path, client::Client& client, const v1::Experiment& stored) {
  const std::string before = TextFor(stored);
  RETURN_IF_ERROR(RunEditor(Editor(), path));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  if (text == before || text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Apply(client, stored, stored);
  }
  ASSIGN_OR_RETURN(const v1::Experiment edited, Parse(path, text));
  ASSIGN_OR_RETURN(const v1::Experiment wanted, Changed(path, stored, edited));
  return Apply(client, stored, wanted);
}

}  // namespace

StatusOr<int> Edit(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  Options options("edit EXPERIMENT",
                  "Opens the counts and the goal of an experiment in $SHIRABE_EDITOR, $VISUAL or "
                  "$EDITOR, and applies what was changed. If it was changed "
                  "meanwhile, nothing is applied (exit code 4).");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(names[0], session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment stored, session.client->GetExperiment(key));
  ASSIGN_OR_RETURN(const std::string path, NewFile(TextFor(stored)));
  const Status edited = EditIn(path, *session.client, stored);
  if (edited.ok()) unlink(path.c_str());
  if (!edited.ok()) ProgressLine("your text is kept in " + path);
  RETURN_IF_ERROR(edited);
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "edit",
                        .group = VerbGroup::kSubmit,
                        .summary = "change counts and goal of an experiment in an editor",
                        .completes = CompleteExperiments,
                        .run = Edit});

}  // namespace shirabe::cmd
