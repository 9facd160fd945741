// A kubeconfig file: named clusters, users and contexts, of which one context is taken. What we
// cannot do (a proxy, impersonation) is refused by name; other fields are for other programs.
#include <cstdlib>
#include <filesystem>
#include <list>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/text/yaml_tree.h"
#include "kube/cluster_config.h"

namespace shirabe::kube {
namespace {

constexpr int64_t kMaxFile = 1 << 20;

// A node of a file, with what messages and relative paths need to know of it.
struct Entry {
  const YamlNode* node = nullptr;
  const std::string* file = nullptr;
  std::string name;  // user "admin"

  Status Refuse(const std::string& field, const std::string& why) const {
    const YamlNode* at = node->Find(field);
    const int line = (at == nullptr ? *node : *at).mark.line;
    return absl::InvalidArgumentError(
        absl::StrCat(*file, ":", line, ": ", name, ": ", field, " ", why));
  }
  StatusOr<std::string> Text(const std::string& field) const {
    const YamlNode* at = node->Find(field);
    if (at == nullptr || at->kind == YamlNode::Kind::kNull) return "";
    if (!at->IsScalar()) return Refuse(field, "must be text, not " + Describe(*at));
    return at->text;
  }
  StatusOr<bool> Flag(const std::string& field) const {
    const YamlNode* at = node->Find(field);
    if (at == nullptr) return false;
    if (at->kind != YamlNode::Kind::kBoolean) return Refuse(field, "must be true or false");
    return at->boolean;
  }
  // A file named in a kubeconfig is named from the folder that it lies in.
  std::string Beside(const std::string& path) const {
    if (path.empty() || path.front() == '/') return path;
    return (std::filesystem::path(*file).parent_path() / path).lexically_normal().string();
  }
};

struct File {
  std::string path;
  YamlDocument document;
};

StatusOr<File> ReadOne(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFile));
  std::vector<YamlDocument> documents = ParseYaml(text);
  if (documents.empty()) return File{path, {}};
  File file{path, std::move(documents.front())};
  if (!file.document.problems.empty()) {
    const YamlProblem& problem = file.document.problems.front();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", problem.mark.line, ": ", problem.message));
  }
  return file;
}

// A list, because entries point into the files.
StatusOr<std::list<File>> ReadAll(const std::string& paths) {
  std::list<File> files;
  const std::vector<std::string> named = absl::StrSplit(paths, ':', absl::SkipEmpty());
  for (const std::string& path : named) {
    auto file = ReadOne(path);
    // $KUBECONFIG may name files that are not there yet.
    if (absl::IsNotFound(file.status()) && named.size() > 1) continue;
    RETURN_IF_ERROR(file.status());
    files.push_back(*std::move(file));
  }
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat("no kubeconfig: there is no file at ", paths));
  }
  return files;
}

struct Lookup {
  const char* list;    // users
  const char* field;   // user
  std::string wanted;  // its name
};

// The entry of that name in the first file that has one; its mapping is list[…].<field>.
StatusOr<Entry> FindEntry(const std::list<File>& files, const Lookup& lookup) {
  for (const File& file : files) {
    const YamlNode* list = file.document.root.Find(lookup.list);
    if (list == nullptr) continue;
    for (const YamlNode& item : list->items) {
      const YamlNode* name = item.Find("name");
      const YamlNode* value = item.Find(lookup.field);
      if (name == nullptr || value == nullptr || name->text != lookup.wanted) continue;
      return Entry{value, &file.path, absl::StrCat(lookup.field, " \"", lookup.wanted, "\"")};
    }
  }
  return absl::NotFoundError(absl::StrCat(files.front().path, ": ", lookup.list, " has no \"",
                                          lookup.wanted, "\": name one that it has"));
}

std::string CurrentContext(const std::list<File>& files) {
  for (const File& file : files) {
    const YamlNode* current = file.document.root.Find("current-context");
    if (current != nullptr && !current->text.empty()) return current->text;
  }
  return "";
}

// FIELD-data in base64, or the contents of the file that FIELD names.
StatusOr<std::string> DataOrFile(const Entry& entry, const std::string& field) {
  ASSIGN_OR_RETURN(const std::string encoded, entry.Text(field + "-data"));
  if (!encoded.empty()) {
    std::string data;
    if (!absl::Base64Unescape(encoded, &data))
      return entry.Refuse(field + "-data", "is not base64");
    return data;
  }
  ASSIGN_OR_RETURN(const std::string path, entry.Text(field));
  if (path.empty()) return "";
  auto data = ReadFile(entry.Beside(path), kMaxFile);
  if (!data.ok()) return entry.Refuse(field, "cannot be read: " + Message(data.status()));
  return data;
}

// Fields that would change where we go or who we are, and that we do not follow.
Status RefuseFields(const Entry& entry, std::initializer_list<const char*> fields) {
  for (const char* field : fields) {
    if (entry.node->Find(field) == nullptr) continue;
    return entry.Refuse(field, "is not supported: use a context without it");
  }
  return absl::OkStatus();
}

Status ReadCluster(const Entry& entry, Config& config) {
  RETURN_IF_ERROR(RefuseFields(entry, {"proxy-url"}));
  ASSIGN_OR_RETURN(config.server, entry.Text("server"));
  if (config.server.empty()) return entry.Refuse("server", "is missing: write https://HOST:PORT");
  ASSIGN_OR_RETURN(config.server_name, entry.Text("tls-server-name"));
  ASSIGN_OR_RETURN(config.insecure, entry.Flag("insecure-skip-tls-verify"));
  ASSIGN_OR_RETURN(config.ca, DataOrFile(entry, "certificate-authority"));
  return absl::OkStatus();
}

StatusOr<std::vector<std::string>> Texts(const Entry& entry, const std::string& field) {
  std::vector<std::string> texts;
  const YamlNode* list = entry.node->Find(field);
  if (list == nullptr) return texts;
  for (const YamlNode& item : list->items) {
    if (!item.IsScalar()) return entry.Refuse(field, "must be a list of texts");
    texts.push_back(item.text);
  }
  return texts;
}

StatusOr<std::map<std::string, std::string>> Variables(const Entry& entry) {
  std::map<std::string, std::string> variables;
  const YamlNode* list = entry.node->Find("env");
  if (list == nullptr) return variables;
  for (const YamlNode& item : list->items) {
    const YamlNode* name = item.Find("name");
    const YamlNode* value = item.Find("value");
    if (name == nullptr || name->text.empty()) return entry.Refuse("env", "needs a name for each");
    variables[name->text] = value == nullptr ? "" : value->text;
  }
  return variables;
}

Status ReadExec(const Entry& user, Config& config) {
  const YamlNode* node = user.node->Find("exec");
  if (node == nullptr || node->kind != YamlNode::Kind::kMapping) return absl::OkStatus();
  const Entry exec{node, user.file, user.name + ": exec"};
  ASSIGN_OR_RETURN(config.exec.command, exec.Text("command"));
  if (config.exec.command.empty()) return exec.Refuse("command", "is missing");
  // A bare name is looked up in $PATH, anything else from the kubeconfig's folder.
  if (config.exec.command.find('/') != std::string::npos) {
    config.exec.command = exec.Beside(config.exec.command);
  }
  ASSIGN_OR_RETURN(config.exec.args, Texts(exec, "args"));
  ASSIGN_OR_RETURN(config.exec.env, Variables(exec));
  ASSIGN_OR_RETURN(config.exec.api_version, exec.Text("apiVersion"));
  ASSIGN_OR_RETURN(config.exec.provide_cluster_info, exec.Flag("provideClusterInfo"));
  ASSIGN_OR_RETURN(const std::string mode, exec.Text("interactiveMode"));
  if (mode == "Always") {
    return exec.Refuse("interactiveMode", "Always needs a terminal: use a user without it");
  }
  const std::string& version = config.exec.api_version;
  if (version != "client.authentication.k8s.io/v1" &&
      version != "client.authentication.k8s.io/v1beta1") {
    return exec.Refuse("apiVersion",
                       "must be client.authentication.k8s.io/v1 or …/v1beta1, not \"" + version +
                           "\": update the plugin");
  }
  return absl::OkStatus();
}

Status ReadUser(const Entry& entry, Config& config) {
  RETURN_IF_ERROR(RefuseFields(entry, {"auth-provider", "as", "as-uid", "as-groups"}));
  ASSIGN_OR_RETURN(config.certificate, DataOrFile(entry, "client-certificate"));
  ASSIGN_OR_RETURN(config.key, DataOrFile(entry, "client-key"));
  if (config.certificate.empty() != config.key.empty()) {
    return entry.Refuse("client-certificate", "and client-key belong together: give both");
  }
  ASSIGN_OR_RETURN(config.token, entry.Text("token"));
  ASSIGN_OR_RETURN(const std::string token_file, entry.Text("tokenFile"));
  config.token_file = entry.Beside(token_file);
  ASSIGN_OR_RETURN(config.username, entry.Text("username"));
  ASSIGN_OR_RETURN(config.password, entry.Text("password"));
  return ReadExec(entry, config);
}

}  // namespace

StatusOr<Config> LoadKubeconfig(const std::string& path, const std::string& context) {
  ASSIGN_OR_RETURN(const std::list<File> files, ReadAll(path));
  Config config;
  config.context = context.empty() ? CurrentContext(files) : context;
  if (config.context.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": no current-context is set: kubectl config use-context NAME, or name "
                     "a context"));
  }
  ASSIGN_OR_RETURN(const Entry chosen, FindEntry(files, {"contexts", "context", config.context}));
  ASSIGN_OR_RETURN(config.namespace_name, chosen.Text("namespace"));
  if (config.namespace_name.empty()) config.namespace_name = "default";
  ASSIGN_OR_RETURN(const std::string cluster, chosen.Text("cluster"));
  ASSIGN_OR_RETURN(const Entry reached, FindEntry(files, {"clusters", "cluster", cluster}));
  RETURN_IF_ERROR(ReadCluster(reached, config));
  ASSIGN_OR_RETURN(const std::string user, chosen.Text("user"));
  if (user.empty()) return config;  // anonymous
  ASSIGN_OR_RETURN(const Entry known, FindEntry(files, {"users", "user", user}));
  RETURN_IF_ERROR(ReadUser(known, config));
  return config;
}

}  // namespace shirabe::kube
