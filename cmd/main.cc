// The command line: finds the verb, runs it, and turns its outcome into a message on stderr and an
// exit code.
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/memory.h"
#include "base/text/did_you_mean.h"
#include "cmd/api_server_proxy.h"
#include "cmd/options.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "suggestion/accelerator/gpu_library.h"

namespace shirabe::cmd {
namespace {

std::string Usage() {
  return absl::StrCat(
      "Shirabe tunes hyperparameters.\n\n"
      "Usage: shirabe VERB [ARGUMENTS] [OPTIONS]\n\n"
      "  shirabe run -f experiment.yaml\n"
      "  shirabe run --param lr=log:1e-5..1e-1 --param bs=16,32,64 --minimize loss \\\n"
      "      -- python3 train.py --lr {lr} --bs {bs}\n\n",
      VerbList(), "\n`shirabe VERB --help` shows the options of a verb.\n");
}

Status UnknownVerb(const std::string& word) {
  const auto nearest = Nearest(word, VerbNames());
  return UsageError("unknown command \"" + word + "\"" +
                    (nearest ? "; did you mean \"" + *nearest + "\"?" : "") +
                    " (shirabe --help lists all)");
}

// Global options that take a value may come before the verb.
bool HasValue(const std::string& word) {
  return word == "--db" || word == "--server" || word == "--token-file" || word == "--ca" ||
         word == "--context" || word == "-n" || word == "--namespace" || word == "--color";
}

// Moves what stands before the verb behind it: `shirabe -n a get exp` is `shirabe get -n a exp`.
size_t FindVerbWord(const Arguments& words) {
  size_t i = 0;
  while (i < words.size() && words[i].size() > 1 && words[i][0] == '-') {
    i += HasValue(words[i]) ? 2 : 1;
  }
  return i;
}

// Called as kubectl-ai_platform, the program is that verb.
const Verb* VerbOfName(const std::string& called_as) {
  const std::string name = called_as.substr(called_as.rfind('/') + 1);
  return name == "kubectl-ai_platform" ? FindVerb("ai-platform") : nullptr;
}

// Under these names kubectl (1.26 and newer) asks what may come next of one of its plugins.
std::optional<Arguments> KubectlAsks(const std::string& called_as, const Arguments& words) {
  const std::string name = called_as.substr(called_as.rfind('/') + 1);
  Arguments asked = {"__complete-kubectl"};
  if (name == "kubectl_complete-ai_platform") {
    asked.push_back("ai-platform");
  } else if (name != "kubectl_complete-shirabe") {
    return std::nullopt;
  }
  asked.insert(asked.end(), words.begin(), words.end());
  return asked;
}

StatusOr<int> Dispatch(const Arguments& words) {
  if (words.empty()) {
    std::fputs(Usage().c_str(), stderr);
    return kUsage;
  }
  if (words[0] == "-h" || words[0] == "--help" || words[0] == "help") {
    Out(Usage());
    return kOk;
  }
  const size_t at = words[0] == "--version" ? 0 : FindVerbWord(words);
  if (at >= words.size()) return UsageError("a verb is missing (shirabe --help lists all)");
  const Verb* verb = FindVerb(words[at] == "--version" ? "version" : words[at]);
  if (verb == nullptr) return UnknownVerb(words[at]);
  Arguments rest(words.begin(), words.begin() + at);
  rest.insert(rest.end(), words.begin() + at + 1, words.end());
  // Those two say what is wrong with it among the rest.
  if (verb->name != "doctor" && verb->name != "version") {
    RETURN_IF_ERROR(suggestion::accelerator::ReadGpuSetting().status());
  }
  return verb->run(rest);
}

int Main(int argc, char** argv) {
  KeepFreedMemory();
  SetColor("auto");
  SetPlugin(argv[0]);
  Arguments words(argv + 1, argv + argc);
  const Verb* own = VerbOfName(argv[0]);
  if (auto asked = KubectlAsks(argv[0], words)) words = std::move(*asked);
  const StatusOr<int> outcome = own != nullptr ? own->run(words) : Dispatch(words);
  if (!outcome.ok()) PrintError(outcome.status());
  const int code = outcome.ok() ? *outcome : ExitCodeOf(outcome.status());
  const Status written = FlushOut();
  if (written.ok()) return code;
  PrintError(written);
  return code == kOk ? ExitCodeOf(written) : code;
}

}  // namespace
}  // namespace shirabe::cmd

int main(int argc, char** argv) {
  // Debian's libraries look for cycles at each lock that gRPC takes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return shirabe::cmd::Main(argc, argv);
}
