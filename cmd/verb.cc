#include "cmd/verb.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/server_contexts.h"
#include "cmd/session.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {
namespace {

constexpr size_t kNameWidth = 14;

constexpr std::pair<VerbGroup, const char*> kHeadings[] = {
    {VerbGroup::kRun, "Run on this machine"},
    {VerbGroup::kSubmit, "Submit to a server, and steer"},
    {VerbGroup::kRead, "Look at experiments and trials"},
    {VerbGroup::kAskAndTell, "Run the trials yourself"},
    {VerbGroup::kServe, "Serve"},
    {VerbGroup::kTools, "Tools"},
};

const Registry<Verb>& Verbs() { return Registry<Verb>::Get(); }

}  // namespace

const Verb* FindVerb(const std::string& name) { return Verbs().Find(name); }

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const std::string& name : Verbs().Names()) {
    if (Verbs().Find(name)->group != VerbGroup::kHidden) names.push_back(name);
  }
  return names;
}

std::vector<VerbGroup> ListedGroups() {
  std::vector<VerbGroup> groups;
  for (const auto& [group, heading] : kHeadings) groups.push_back(group);
  return groups;
}

std::string HeadingOf(VerbGroup group) {
  for (const auto& [listed, heading] : kHeadings) {
    if (listed == group) return heading;
  }
  return "";
}

std::string VerbList() {
  std::string text;
  for (const auto& [group, heading] : kHeadings) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", heading, ":\n");
    for (const std::string& name : Verbs().Names()) {
      const Verb& verb = *Verbs().Find(name);
      if (verb.group != group) continue;
      std::string line = "  " + name;
      line.resize(kNameWidth, ' ');
      absl::StrAppend(&text, line, verb.summary, "\n");
    }
  }
  return text;
}

std::vector<std::string> CompleteExperiments(const Arguments& words) {
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

std::vector<std::string> CompleteTrials(const Arguments& words) {
  std::vector<std::string> names = CompleteExperiments(words);
  for (std::string& name : names) name += "/";
  return names;
}

std::vector<std::string> CompleteContexts(const Arguments&) {
  const auto path = ContextsPath(client::ProcessEnvironment());
  const auto contexts = path.ok() ? LoadContexts(*path) : Contexts{};
  std::vector<std::string> names;
  if (!contexts.ok()) return names;
  for (const Context& context : contexts->all) names.push_back(context.name);
  return names;
}

}  // namespace shirabe::cmd
