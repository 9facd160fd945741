// get: finds what is to be listed. get_*.cc list it.
#include "absl/strings/match.h"
#include "base/registry.h"
#include "base/text/did_you_mean.h"
#include "cmd/verb.h"
#include "cmd/verbs/get_nouns.h"

namespace shirabe::cmd {
namespace {

struct Noun {
  const char* name;
  StatusOr<int> (*get)(const Session& session, const GetRequest& request);
};

constexpr Noun kNouns[] = {
    {"experiments", GetExperiments},
    {"experiment", GetExperiments},
    {"exp", GetExperiments},
    {"trials", GetTrials},
    {"trial", GetTrials},
    {"attempts", GetAttempts},
    {"attempt", GetAttempts},
    {"checkpoints", GetCheckpoints},
    {"checkpoint", GetCheckpoints},
    {"metrics", GetMetrics},
};

StatusOr<const Noun*> FindNoun(const std::string& word) {
  std::vector<std::string> names;
  for (const Noun& noun : kNouns) {
    if (word == noun.name) return &noun;
    names.push_back(noun.name);
  }
  const auto nearest = Nearest(word, names);
  return UsageError("there is no \"" + word + "\" to get" +
                    (nearest ? "; did you mean \"" + *nearest + "\"?"
                             : ": it is exp, trials, attempts, checkpoints or metrics"));
}

// get exp/digits is get exp digits.
void SplitNoun(std::vector<std::string>& words) {
  const size_t cut = words[0].find('/');
  if (cut == std::string::npos) return;
  words.insert(words.begin() + 1, words[0].substr(cut + 1));
  words[0].resize(cut);
}

}  // namespace

StatusOr<std::optional<TrialKey>> TrialUnlessExperiment(const Session& session,
                                                        const std::string& text) {
  if (absl::StartsWith(text, "trial/")) {
    ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(text, session.ns));
    return std::optional<TrialKey>(key);
  }
  const auto trial = ParseTrialName(text, session.ns);
  if (!trial || text.find('/') != std::string::npos) return trial;
  const Status found = session.client->GetExperiment({session.ns, text}).status();
  if (found.ok()) return std::optional<TrialKey>();
  if (!absl::IsNotFound(found)) return found;
  return trial;
}

namespace {

std::vector<std::string> CompleteGetWords(const Arguments& words) {
  if (words.size() == 2) return {"exp", "trials", "attempts", "checkpoints", "metrics"};
  const std::string& noun = words[words.size() - 2];
  return noun == "metrics" || noun == "checkpoints" ? CompleteTrials(words)
                                                    : CompleteExperiments(words);
}

}  // namespace

StatusOr<int> Get(const Arguments& arguments) {
  Globals globals;
  GetRequest request;
  Options options("get exp|trials|attempts|checkpoints|metrics [NAME]",
                  "Lists experiments, the trials of one, the attempts of a trial or experiment, or "
                  "the checkpoints or metrics of a trial.");
  options.Arguments("what to get", &request.names, 1, 100);
  AddListing(options, &request.flags);
  options.Flag("--all-attempts", &request.all_attempts,
               "metrics: also values that a later attempt has run again");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  SplitNoun(request.names);
  ASSIGN_OR_RETURN(const Noun* noun, FindNoun(request.names[0]));
  request.names.erase(request.names.begin());
  if (request.all_attempts && noun->get != GetMetrics) {
    return UsageError("--all-attempts is for metrics: shirabe get metrics TRIAL --all-attempts");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  return noun->get(session, request);
}

SHIRABE_REGISTER(Verb, {.name = "get",
                        .group = VerbGroup::kRead,
                        .summary = "list records",
                        .completes = CompleteGetWords,
                        .run = Get});

}  // namespace shirabe::cmd
