#include "cmd/server_contexts.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/names.h"
#include "base/text/did_you_mean.h"
#include "base/text/yaml_tree.h"
#include "view/record_json.h"

namespace shirabe::cmd {
namespace {

constexpr int64_t kMaxContextBytes = 1 << 20;

// Where in which file, for messages.
struct Reader {
  const std::string& path;

  Status Error(const YamlNode& at, const std::string& message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", at.mark.line, ":", at.mark.column, ": ", message));
  }

  StatusOr<std::string> Text(const YamlNode& node, const std::string& field) const {
    if (node.kind == YamlNode::Kind::kString) return node.text;
    return Error(node, field + " must be text, not " + Describe(node));
  }

  Status Unknown(const YamlNode& key, const std::vector<std::string>& known) const {
    const auto nearest = Nearest(key.text, known);
    return Error(key, "unknown field \"" + key.text + "\"" +
                          (nearest ? "; did you mean \"" + *nearest + "\"?" : ""));
  }

  StatusOr<Context> ReadContext(const YamlNode& node) const;
  Status ReadField(const YamlNode& key, const YamlNode& value, Context& context) const;
  StatusOr<Contexts> ReadRoot(const YamlNode& root) const;
};

std::string AbsolutePath(const std::string& path, const std::string& beside) {
  if (path.empty() || path[0] == '/') return path;
  return (std::filesystem::path(beside).parent_path() / path).lexically_normal().string();
}

Status Reader::ReadField(const YamlNode& key, const YamlNode& value, Context& context) const {
  std::vector<std::string> known = {"name"};
  ASSIGN_OR_RETURN(std::string text, Text(value, key.text));
  if (key.text == "name") {
    context.name = std::move(text);
    return absl::OkStatus();
  }
  for (const AccessField& field : AccessFields()) {
    known.push_back(field.name);
    if (key.text != field.name) continue;
    context.access.*field.member = field.is_path ? AbsolutePath(text, path) : text;
    return absl::OkStatus();
  }
  return Unknown(key, known);
}

StatusOr<Context> Reader::ReadContext(const YamlNode& node) const {
  if (node.kind != YamlNode::Kind::kMapping) return Error(node, "a context is a mapping");
  Context context;
  auto value = node.items.begin();
  for (const YamlNode& key : node.keys) RETURN_IF_ERROR(ReadField(key, *value++, context));
  if (context.name.empty()) return Error(node, "a context needs a name");
  return context;
}

StatusOr<Contexts> Reader::ReadRoot(const YamlNode& root) const {
  if (root.kind != YamlNode::Kind::kMapping) return Error(root, "the file must be a mapping");
  Contexts contexts;
  auto value = root.items.begin();
  for (const YamlNode& key : root.keys) {
    const YamlNode& item = *value++;
    if (key.text == "current") {
      ASSIGN_OR_RETURN(contexts.current, Text(item, key.text));
    } else if (key.text == "contexts") {
      for (const YamlNode& one : item.items) {
        ASSIGN_OR_RETURN(Context context, ReadContext(one));
        if (contexts.Find(context.name) != nullptr) {
          return Error(one, "context \"" + context.name + "\" is there twice");
        }
        contexts.all.push_back(std::move(context));
      }
    } else {
      return Unknown(key, {"current", "contexts"});
    }
  }
  return contexts;
}

Access FromEnvironment(const client::Environment& environment) {
  const auto look = [&](const char* name) { return environment(name).value_or(""); };
  return {.server = look("SHIRABE_SERVER"),
          .token_file = look("SHIRABE_TOKEN_FILE"),
          .ca = look("SHIRABE_CA"),
          .certificate = look("SHIRABE_CLIENT_CERTIFICATE"),
          .key = look("SHIRABE_CLIENT_KEY"),
          .ns = look("SHIRABE_NAMESPACE")};
}

}  // namespace

const std::vector<AccessField>& AccessFields() {
  static const std::vector<AccessField> fields = {
      {"server", &Access::server, false}, {"tokenFile", &Access::token_file, true},
      {"ca", &Access::ca, true},          {"certificate", &Access::certificate, true},
      {"key", &Access::key, true},        {"namespace", &Access::ns, false},
  };
  return fields;
}

Context* Contexts::Find(const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Context& context) { return context.name == name; });
  return found == all.end() ? nullptr : &*found;
}

StatusOr<Context> Contexts::Get(const std::string& name) const {
  std::vector<std::string> names;
  for (const Context& context : all) {
    if (context.name == name) return context;
    names.push_back(context.name);
  }
  const auto nearest = Nearest(name, names);
  return absl::NotFoundError("there is no context \"" + name + "\"" +
                             (nearest ? "; did you mean \"" + *nearest + "\"?"
                                      : " (shirabe config get-contexts lists them)"));
}

StatusOr<std::string> ContextsPath(const client::Environment& environment) {
  const auto look = [&](const char* name) { return environment(name).value_or(""); };
  if (std::string path = look("SHIRABE_CONFIG"); !path.empty()) return path;
  if (std::string folder = look("XDG_CONFIG_HOME"); !folder.empty() && folder[0] == '/') {
    return folder + "/shirabe/config.yaml";
  }
  if (std::string home = look("HOME"); !home.empty()) return home + "/.config/shirabe/config.yaml";
  return absl::InvalidArgumentError(
      "neither SHIRABE_CONFIG nor HOME is set: set SHIRABE_CONFIG to a file for the contexts");
}

StatusOr<Contexts> LoadContexts(const std::string& path) {
  const auto text = ReadFile(path, kMaxContextBytes);
  if (absl::IsNotFound(text.status())) return Contexts{};
  RETURN_IF_ERROR(text.status());
  const auto documents = ParseYaml(*text);
  if (documents.empty()) return Contexts{};
  if (!documents[0].problems.empty()) {
    const YamlProblem& problem = documents[0].problems[0];
    return absl::InvalidArgumentError(absl::StrCat(path, ":", problem.mark.line, ":",
                                                   problem.mark.column, ": ", problem.message));
  }
  return Reader{path}.ReadRoot(documents[0].root);
}

std::string ContextsText(const Contexts& contexts) {
  view::Json tree = view::Json::object();
  if (!contexts.current.empty()) tree["current"] = contexts.current;
  tree["contexts"] = view::Json::array();
  for (const Context& context : contexts.all) {
    view::Json item = {{"name", context.name}};
    for (const AccessField& field : AccessFields()) {
      const std::string& value = context.access.*field.member;
      if (!value.empty()) item[field.name] = value;
    }
    tree["contexts"].push_back(std::move(item));
  }
  return view::PrintYaml(tree);
}

Status SaveContexts(const std::string& path, const Contexts& contexts) {
  RETURN_IF_ERROR(MakeDirs(std::filesystem::path(path).parent_path().string()));
  return WriteFileAtomic(path, ContextsText(contexts), /*durable=*/true);
}

Access Merge(const std::vector<Access>& layers) {
  Access merged;
  for (const Access& layer : layers) {
    for (const AccessField& field : AccessFields()) {
      std::string& value = merged.*field.member;
      if (value.empty()) value = layer.*field.member;
    }
  }
  return merged;
}

StatusOr<Access> FindAccess(const AccessQuery& query, const client::Environment& environment) {
  std::vector<Access> layers = {query.flags};
  const Access around = FromEnvironment(environment);
  const bool placed = query.is_placed || !query.flags.server.empty() || !around.server.empty();
  std::string name = query.context;
  if (name.empty() && !placed) name = environment("SHIRABE_CONTEXT").value_or("");
  if (query.context.empty()) layers.push_back(around);
  // The file is not looked at where nothing of it could count, and need not have a place.
  const auto path = ContextsPath(environment);
  if (!name.empty()) RETURN_IF_ERROR(path.status());
  if (path.ok() && (!name.empty() || !placed)) {
    ASSIGN_OR_RETURN(const Contexts contexts, LoadContexts(*path));
    if (name.empty()) name = contexts.current;
    if (!name.empty()) {
      ASSIGN_OR_RETURN(const Context context, contexts.Get(name));
      layers.push_back(context.access);
    }
  }
  if (!query.context.empty()) layers.push_back(around);
  return Merge(layers);
}

}  // namespace shirabe::cmd
