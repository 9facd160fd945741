// completion: small scripts that ask `shirabe __complete WORDS…` what could come next, so that the
// three shells know the same and need no list of their own.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "suggestion/algorithm.h"

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

std::vector<std::string> CompleteCompletionWords(const Arguments&) {
  return {"bash", "zsh", "fish"};
}

// What may stand as the last of `words`, the first of which is the verb.
std::vector<std::string> Candidates(const Arguments& words) {
  if (words.size() <= 1) return VerbNames();
  const std::string& before = words[words.size() - 2];
  if (before == "--context") return CompleteContexts(words);
  if (before == "--algorithm") return Registry<suggestion::AlgorithmInfo>::Get().Names();
  const Verb* verb = FindVerb(words[0]);
  if (verb == nullptr) return {};
  if (before == "-o" || before == "--output") return verb->outputs;
  return verb->completes == nullptr ? std::vector<std::string>() : verb->completes(words);
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

// Whether the last word may be a flag of the verb: behind "--" all words are a program's.
bool CompletesFlag(const Arguments& words) {
  return words.size() > 1 && absl::StartsWith(words.back(), "-") &&
         std::find(words.begin(), words.end() - 1, "--") == words.end() - 1 &&
         absl::c_linear_search(VerbNames(), words[0]);
}

StatusOr<int> Complete(const Arguments& arguments) {
  const std::string prefix = arguments.empty() ? "" : arguments.back();
  if (CompletesFlag(arguments)) {
    FindVerb(arguments[0])->run({absl::StrCat(kFlagNamesOption, prefix)}).IgnoreError();
    return 0;
  }
  for (const std::string& candidate : Candidates(arguments)) {
    if (absl::StartsWith(candidate, prefix)) Out(candidate + "\n");
  }
  return 0;
}

// The same for kubectl, which wants cobra's directive as a last line: 4, no names of files.
StatusOr<int> CompleteForKubectl(const Arguments& arguments) {
  RETURN_IF_ERROR(Complete(arguments).status());
  Out(":4\n");
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "completion",
                        .group = VerbGroup::kTools,
                        .summary = "print the script that completes commands",
                        .completes = CompleteCompletionWords,
                        .run = Completion});

SHIRABE_REGISTER(
    Verb, {.name = "__complete", .group = VerbGroup::kHidden, .summary = "", .run = Complete});

SHIRABE_REGISTER(Verb, {.name = "__complete-kubectl",
                        .group = VerbGroup::kHidden,
                        .summary = "",
                        .run = CompleteForKubectl});

}  // namespace shirabe::cmd
