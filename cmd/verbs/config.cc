// config: the servers that this user knows by name.
#include <filesystem>

#include "base/registry.h"
#include "base/sorting.h"
#include "base/text/did_you_mean.h"
#include "cmd/record_printer.h"
#include "cmd/server_contexts.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "view/text_table.h"

namespace shirabe::cmd {
namespace {

struct ConfigRequest {
  std::vector<std::string> words;  // the noun, then names
  Access access;                   // set-context
  bool use = false;                // set-context: and make it the current one
  std::string output = "table";
  std::string path;
  Contexts contexts;
};

StatusOr<std::string> NameIn(const ConfigRequest& request) {
  if (request.words.size() == 2) return request.words[1];
  return UsageError("give one NAME: shirabe config " + request.words[0] + " NAME");
}

view::Json ConfigTree(const Context& context, bool current) {
  view::Json tree = {{"name", context.name}, {"current", current}};
  for (const AccessField& field : AccessFields()) {
    const std::string& value = context.access.*field.member;
    if (!value.empty()) tree[field.name] = value;
  }
  return tree;
}

StatusOr<int> List(ConfigRequest& request) {
  const Contexts& contexts = request.contexts;
  const ListFlags flags{.output = request.output};
  std::vector<view::Json> trees;
  view::Table table({"CURRENT", "NAME", "SERVER", "NAMESPACE", "TOKEN-FILE"});
  for (const Context& context : contexts.all) {
    const bool current = context.name == contexts.current;
    const Access& access = context.access;
    trees.push_back(ConfigTree(context, current));
    table.Add({current ? "*" : " ", context.name, access.server, access.ns, access.token_file});
    if (request.output == "name") Out(context.name + "\n");
  }
  if (WantsTree(flags)) PrintTrees(flags, trees);
  if (request.output == "table") Out(table.Render());
  if (contexts.all.empty()) Hint("no contexts yet: shirabe config set-context NAME --server …");
  return kOk;
}

StatusOr<int> PrintCurrent(ConfigRequest& request) {
  if (request.contexts.current.empty()) {
    return absl::NotFoundError(
        "no context is the current one (shirabe config use-context NAME): commands work on this "
        "machine");
  }
  Out(request.contexts.current + "\n");
  return kOk;
}

StatusOr<int> Use(ConfigRequest& request) {
  ASSIGN_OR_RETURN(const std::string name, NameIn(request));
  RETURN_IF_ERROR(request.contexts.Get(name).status());
  request.contexts.current = name;
  RETURN_IF_ERROR(SaveContexts(request.path, request.contexts));
  Out("context/" + name + " is the current one\n");
  return kOk;
}

// Paths are kept as they are meant here, wherever the next command is given.
Access Absolute(Access access) {
  for (const AccessField& field : AccessFields()) {
    std::string& value = access.*field.member;
    if (field.is_path && !value.empty()) value = std::filesystem::absolute(value).string();
  }
  return access;
}

StatusOr<int> Set(ConfigRequest& request) {
  ASSIGN_OR_RETURN(const std::string name, NameIn(request));
  if (!request.access.ns.empty()) RETURN_IF_ERROR(AsUsage(ValidateNamespace(request.access.ns)));
  Context* context = request.contexts.Find(name);
  const bool is_new = context == nullptr;
  if (is_new) {
    if (request.access.server.empty()) return UsageError("a new context needs --server HOST:PORT");
    context = &request.contexts.all.emplace_back();
    context->name = name;
  }
  context->access = Merge({Absolute(request.access), context->access});
  auto& all = request.contexts.all;
  StableSort(all, [](const Context& a, const Context& b) { return a.name < b.name; });
  if (request.use) request.contexts.current = name;
  RETURN_IF_ERROR(SaveContexts(request.path, request.contexts));
  Out("context/" + name + (is_new ? " created\n" : " changed\n"));
  return kOk;
}

StatusOr<int> Remove(ConfigRequest& request) {
  ASSIGN_OR_RETURN(const std::string name, NameIn(request));
  RETURN_IF_ERROR(request.contexts.Get(name).status());
  std::erase_if(request.contexts.all, [&](const Context& one) { return one.name == name; });
  if (request.contexts.current == name) request.contexts.current.clear();
  RETURN_IF_ERROR(SaveContexts(request.path, request.contexts));
  Out("context/" + name + " deleted\n");
  return kOk;
}

StatusOr<int> View(ConfigRequest& request) {
  Out(ContextsText(request.contexts));
  return kOk;
}

struct ConfigNoun {
  const char* name;
  StatusOr<int> (*run)(ConfigRequest& request);
};

constexpr ConfigNoun kConfigNouns[] = {
    {"get-contexts", List}, {"current-context", PrintCurrent}, {"use-context", Use},
    {"set-context", Set},   {"delete-context", Remove},        {"view", View},
};

StatusOr<int> RunRequest(ConfigRequest& request) {
  std::vector<std::string> names;
  for (const ConfigNoun& noun : kConfigNouns) {
    if (request.words[0] == noun.name) return noun.run(request);
    names.push_back(noun.name);
  }
  const auto nearest = Nearest(request.words[0], names);
  return UsageError("there is no config " + request.words[0] +
                    (nearest ? "; did you mean " + *nearest + "?" : " (shirabe config --help)"));
}

std::vector<std::string> CompleteConfigWords(const Arguments& words) {
  if (words.size() > 2) return CompleteContexts(words);
  std::vector<std::string> names;
  for (const ConfigNoun& noun : kConfigNouns) names.push_back(noun.name);
  return names;
}

}  // namespace

StatusOr<int> Config(const Arguments& arguments) {
  Globals globals;
  ConfigRequest request;
  Options options(
      "config get-contexts|current-context|use-context|set-context|delete-context|view [NAME]",
      "Keeps the servers that you use under names, in $SHIRABE_CONFIG or "
      "~/.config/shirabe/config.yaml; every other verb takes --context NAME. A flag wins over the "
      "environment, the environment over the current context. set-context takes --server, "
      "--token-file, --ca, -n and the two below, and leaves what is not given as it is.");
  options.Arguments("what to do", &request.words, 1, 2);
  options.Text("--client-certificate", &request.access.certificate, "FILE",
               "set-context: certificate of this client, PEM");
  options.Text("--client-key", &request.access.key, "FILE", "set-context: its key, PEM");
  options.Flag("--use", &request.use, "set-context: and make it the current one");
  options.Word("-o,--output", &request.output, {"table", "json", "yaml", "name"},
               "get-contexts: how to print");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  request.access.server = globals.server;
  request.access.token_file = globals.token_file;
  request.access.ca = globals.ca;
  request.access.ns = globals.ns;
  auto path = ContextsPath(client::ProcessEnvironment());
  RETURN_IF_ERROR(AsUsage(path.status()));
  request.path = *std::move(path);
  ASSIGN_OR_RETURN(request.contexts, LoadContexts(request.path));
  return RunRequest(request);
}

SHIRABE_REGISTER(Verb, {.name = "config",
                        .group = VerbGroup::kTools,
                        .summary = "the servers that you use, by name",
                        .completes = CompleteConfigWords,
                        .run = Config});

}  // namespace shirabe::cmd
