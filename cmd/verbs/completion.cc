// completion: small scripts that ask `shirabe __complete WORDS…` what could come next, so that the
// three shells know the same and need no list of their own.
#include <set>

#include "absl/strings/match.h"
#include "client/enum_words.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"

namespace shirabe::cmd {
namespace {

constexpr char kBash[] = R"sh(# bash completion for shirabe: source <(shirabe completion bash)
_shirabe() {
  local IFS=$'\n'
  COMPREPLY=($(shirabe __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _shirabe shirabe
)sh";

constexpr char kZsh[] = R"sh(#compdef shirabe
# zsh completion for shirabe: source <(shirabe completion zsh)
_shirabe() {
  local -a candidates
  candidates=("${(@f)$(shirabe __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${candidates[1]}" ]]; then compadd -a candidates; else _files; fi
}
compdef _shirabe shirabe
)sh";

constexpr char kFish[] = R"sh(# fish completion for shirabe: shirabe completion fish | source
function __shirabe_complete
  set -l words (commandline -opc) (commandline -ct)
  shirabe __complete $words[2..-1] 2>/dev/null
end
complete -c shirabe -a '(__shirabe_complete)'
)sh";

// Verbs whose argument is an experiment.
bool HasExperimentArgument(const std::string& verb) {
  static const std::set<std::string> verbs = {"best",  "events", "export", "suggest", "scale",
                                              "pause", "resume", "stop",   "cancel",  "delete",
                                              "edit",  "wait",   "ask",    "compare"};
  return verbs.contains(verb);
}

// Nothing is offered where the store cannot be read: completion never fails.
std::vector<std::string> ExperimentNames(const Arguments& words) {
  Globals globals;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-n" || words[i] == "--namespace") globals.ns = words[i + 1];
    if (words[i] == "--db") globals.db = words[i + 1];
    if (words[i] == "--server") globals.server = words[i + 1];
    if (words[i] == "--context") globals.context = words[i + 1];
    if (words[i] == "--token-file") globals.token_file = words[i + 1];
    if (words[i] == "--ca") globals.ca = words[i + 1];
  }
  const auto session = OpenSession(globals, /*read_only=*/true);
  if (!session.ok()) return {};
  const auto experiments = session->client->ListExperiments(session->ns);
  if (!experiments.ok()) return {};
  std::vector<std::string> names;
  for (const auto& experiment : *experiments) names.push_back(experiment.metadata().name());
  return names;
}

std::vector<std::string> ContextNames() {
  const auto path = ContextsPath(client::ProcessEnvironment());
  const auto contexts = path.ok() ? LoadContexts(*path) : Contexts{};
  std::vector<std::string> names;
  if (!contexts.ok()) return names;
  for (const Context& context : contexts->all) names.push_back(context.name);
  return names;
}

std::vector<std::string> Slashed(std::vector<std::string> names) {
  for (std::string& name : names) name += "/";
  return names;
}

std::vector<std::string> Outputs(const std::string& verb) {
  if (verb == "best" || verb == "ask") return {"table", "json", "yaml", "args", "env"};
  if (verb == "export") return {"csv", "jsonl"};
  return {"table", "wide", "json", "yaml", "name"};
}

// What may stand as the last of `words`, the first of which is the verb.
std::vector<std::string> Candidates(const Arguments& words) {
  if (words.size() <= 1) return VerbNames();
  const std::string& verb = words[0];
  const std::string& before = words[words.size() - 2];
  if (before == "-o" || before == "--output") return Outputs(verb);
  if (before == "--context") return ContextNames();
  if (before == "--for") return {"succeeded", "failed", "completed", "running", "deleted"};
  if (verb == "import" && words.size() == 2) return ImportFormats();
  if (verb == "config") return words.size() == 2 ? ConfigNouns() : ContextNames();
  if (before == "--algorithm" || verb == "algorithms") {
    return Registry<suggestion::AlgorithmInfo>::Get().Names();
  }
  if (verb == "explain" && words.size() == 2) return {"algorithm", "stopper"};
  if (verb == "explain" && before == "algorithm") {
    return Registry<suggestion::AlgorithmInfo>::Get().Names();
  }
  if (verb == "explain") return Registry<suggestion::StopperInfo>::Get().Names();
  if (verb == "completion") return {"bash", "zsh", "fish"};
  if (verb == "get" && words.size() == 2) {
    return {"exp", "trials", "attempts", "checkpoints", "metrics"};
  }
  if (verb == "describe" && words.size() == 2) return {"exp", "trial"};
  if (verb == "logs" || verb == "tell" || verb == "report" || verb == "retry" ||
      before == "trial" || before == "metrics" || before == "checkpoints") {
    return Slashed(ExperimentNames(words));
  }
  if (HasExperimentArgument(verb) || verb == "get" || verb == "describe")
    return ExperimentNames(words);
  return {};
}

}  // namespace

StatusOr<int> Completion(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  Options options("completion bash|zsh|fish",
                  "Prints a script that completes commands, for example: source <(shirabe "
                  "completion bash)");
  options.Arguments("SHELL", &names, 1, 1);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (names[0] == "bash") {
    Out(kBash);
  } else if (names[0] == "zsh") {
    Out(kZsh);
  } else if (names[0] == "fish") {
    Out(kFish);
  } else {
    return UsageError("\"" + names[0] + "\" is none of bash, zsh and fish");
  }
  return 0;
}

StatusOr<int> Complete(const Arguments& arguments) {
  const std::string prefix = arguments.empty() ? "" : arguments.back();
  for (const std::string& candidate : Candidates(arguments)) {
    if (absl::StartsWith(candidate, prefix)) Out(candidate + "\n");
  }
  return 0;
}

}  // namespace shirabe::cmd
