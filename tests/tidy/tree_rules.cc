// What only the whole tree shows: no file includes itself by way of others, no folder does, no
// folder has grown beyond what a reader takes in at one look, and batches of sources cannot mix up
// names.
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/tidy/rules.h"

namespace shirabe::tidy {
namespace {

constexpr int kMaxFilesInFolder = 45;

using Graph = std::map<std::string, std::set<std::string>>;

// A header and its source are one node: what the one includes, the other needs.
std::string Stem(const std::string& path) { return path.substr(0, path.rfind('.')); }

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

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

// Functions of an unnamed namespace, by name. They begin at the left edge; members of classes do
// not.
std::set<std::string> UnnamedFunctions(const Source& source) {
  static const RE2 pattern(
      R"(^(?:template <[^>]*> )?[A-Za-z_][\w:<>,*& ]*[ *&>](\w+)\((?:[^;]*$|.*\{))");
  std::set<std::string> names;
  bool unnamed = false;
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string line(source.Line(source.code, n));
    if (absl::StartsWith(line, "namespace {")) unnamed = true;
    if (source.Line(source.text, n).find("}  // namespace") == 0) unnamed = false;
    std::string name;
    if (unnamed && !absl::StartsWith(line, "TEST") && RE2::PartialMatch(line, pattern, &name)) {
      names.insert(name);
    }
  }
  return names;
}

// Sources are compiled in batches of a folder, so that a function of one could be called by another
// with arguments that fit it a little better: names in unnamed namespaces of one folder must
// differ.
void CheckUnnamed(const std::vector<const Source*>& sources, Violations& out) {
  std::map<std::pair<std::string, std::string>, std::string> first;  // by folder and name
  for (const Source* source : sources) {
    const std::string folder = FolderOf(source->path);
    if (!absl::EndsWith(source->path, ".cc") || absl::StartsWith(folder, "bench") ||
        folder == "tests/fuzz" || folder == "metrics/collectors" || folder == "trial/executors") {
      continue;  // compiled one by one
    }
    for (const std::string& name : UnnamedFunctions(*source)) {
      const auto [at, is_new] = first.emplace(std::pair{folder, name}, source->path);
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
