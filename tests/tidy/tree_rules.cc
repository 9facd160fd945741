// What only the whole tree shows: no file includes itself by way of others, no folder does, no
// folder has grown beyond what a reader takes in at one look, and batches of sources cannot mix up
// names.
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/tidy/rules.h"

namespace shirabe::tidy {
namespace {

constexpr int kMaxFilesInFolder = 45;

using Graph = std::map<std::string, std::set<std::string>>;

// A header and its source are one node: what the one includes, the other needs.
std::string Stem(const std::string& path) { return path.substr(0, path.rfind('.')); }

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The first folder of those that are compiled with it.
std::string BatchOf(const std::string& folder) {
  for (const std::string& batch : SharedBatches()) {
    const std::vector<std::string> folders = absl::StrSplit(batch, ' ');
    if (absl::c_linear_search(folders, folder)) return folders[0];
  }
  return folder;
}

// Top folders have namespaces of their own, in which the unnamed ones are different.
std::string NamespaceOf(const std::string& folder) {
  return absl::StartsWith(folder, "tests/") ? folder : folder.substr(0, folder.find('/'));
}

// A depth-first walk that remembers the way it came.
class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {
    for (const auto& [node, _] : graph_) Visit(node);
  }
  // Each as "a → b → a".
  const std::vector<std::string>& cycles() const { return cycles_; }

 private:
  void Visit(const std::string& node) {
    const auto at = std::find(way_.begin(), way_.end(), node);
    if (at != way_.end()) {
      cycles_.push_back(absl::StrCat(absl::StrJoin(at, way_.end(), " → "), " → ", node));
      return;
    }
    if (!seen_.insert(node).second) return;
    way_.push_back(node);
    const auto edges = graph_.find(node);
    if (edges != graph_.end()) {
      for (const std::string& next : edges->second) Visit(next);
    }
    way_.pop_back();
  }

  const Graph& graph_;
  std::set<std::string> seen_;
  std::vector<std::string> way_;
  std::vector<std::string> cycles_;
};

enum class Named { kFunction, kType, kConstant };

// Functions, types and constants of an unnamed namespace, by name. They begin at the left edge;
// members of classes do not.
std::set<std::pair<Named, std::string>> UnnamedNames(const Source& source) {
  static const RE2 function(
      R"(^(?:template <[^>]*> )?[A-Za-z_][\w:<>,*& ]*[ *&>](\w+)\((?:[^;]*$|.*\{))");
  static const RE2 type(R"(^(?:struct|class|enum class|enum) (\w+)(?:[^;]*$|.*\{))");
  static const RE2 constant(R"(^(?:constexpr|const) [^=({]*\b(k[A-Z]\w*)(?:\[\w*\])? ?[={])");
  std::set<std::pair<Named, std::string>> names;
  bool unnamed = false;
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string line(source.Line(source.code, n));
    if (absl::StartsWith(line, "namespace {")) unnamed = true;
    if (source.Line(source.text, n).find("}  // namespace") == 0) unnamed = false;
    std::string name;
    if (!unnamed || absl::StartsWith(line, "TEST")) continue;
    if (RE2::PartialMatch(line, type, &name)) {
      names.emplace(Named::kType, name);
    } else if (RE2::PartialMatch(line, constant, &name)) {
      names.emplace(Named::kConstant, name);
    } else if (RE2::PartialMatch(line, function, &name)) {
      names.emplace(Named::kFunction, name);
    }
  }
  return names;
}

// Sources are compiled in batches, so that a function of one could be called by another with
// arguments that fit it a little better: names in unnamed namespaces of one batch must differ.
void CheckUnnamed(const std::vector<const Source*>& sources, Violations& out) {
  std::map<std::tuple<std::string, Named, std::string>, std::string>
      first;  // by batch and namespace, kind, name
  for (const Source* source : sources) {
    const std::string folder = FolderOf(source->path);
    if (!absl::EndsWith(source->path, ".cc") || absl::StartsWith(folder, "bench") ||
        folder == "tests/fuzz") {
      continue;  // compiled one by one
    }
    for (const auto& [kind, name] : UnnamedNames(*source)) {
      const std::string scope = absl::StrCat(BatchOf(folder), " ", NamespaceOf(folder));
      const auto [at, is_new] = first.emplace(std::tuple{scope, kind, name}, source->path);
      if (is_new) continue;
      out.push_back({source->path, 1,
                     absl::StrCat(name, " is in the unnamed namespace of ", at->second,
                                  ", too: give one of them another name")});
    }
  }
}

void AddEdge(Graph& graph, const std::string& from, const std::string& to) {
  if (from != to) graph[from].insert(to);
}

}  // namespace

const std::vector<std::string>& SharedBatches() {
  static const std::vector<std::string> batches = {
      "base base/text net notify",
      "kube metrics metrics/collectors",
      "artifacts artifacts/package artifacts/stores db db/sqlite",
      "db/postgres schedule tracking",
      "suggestion suggestion/accelerator suggestion/evolution suggestion/multifidelity "
      "suggestion/pareto suggestion/remote suggestion/space suggestion/stoppers",
      "suggestion/algorithms suggestion/analysis suggestion/cmaes suggestion/gp suggestion/tpe",
      "trial trial/checkpoint trial/executors trial/gjson",
      "trial/kubernetes trial/pod",
      "experiment experiment/state",
      "client client/charts client/records",
      "view view/plot",
      "import convert rehearsal sidecar crd",
      "service service/common service/grpc service/katib",
      "service/http trial/local",
      "cmd cmd/verbs cmd/verbs/files cmd/verbs/jobs cmd/verbs/page cmd/verbs/tracking",
  };
  return batches;
}

void CheckTree(const std::vector<const Source*>& sources, Violations& out) {
  std::set<std::string> paths;
  std::map<std::string, int> sizes;
  for (const Source* source : sources) {
    if (!KindOf(source->path, source->text).cpp) continue;
    paths.insert(source->path);
    ++sizes[FolderOf(source->path)];
  }
  Graph files, folders;
  for (const Source* source : sources) {
    if (!paths.contains(source->path) || KindOf(source->path, source->text).test) continue;
    for (const std::string& include : IncludesOf(*source)) {
      if (!paths.contains(include)) continue;
      AddEdge(files, Stem(source->path), Stem(include));
      AddEdge(folders, FolderOf(source->path), FolderOf(include));
    }
  }
  for (const Graph* graph : {&files, &folders}) {
    const Walk walk(*graph);
    for (const std::string& cycle : walk.cycles()) {
      out.push_back({cycle.substr(0, cycle.find(' ')), 1, "includes itself: " + cycle});
    }
  }
  CheckUnnamed(sources, out);
  for (const auto& [folder, size] : sizes) {
    if (size <= kMaxFilesInFolder) continue;
    out.push_back(
        {folder, 1,
         absl::StrFormat("%d source files in the folder, at most %d", size, kMaxFilesInFolder)});
  }
}

}  // namespace shirabe::tidy
