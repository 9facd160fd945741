// The include table of the house: cmd → {crd | service | sidecar | rehearsal | tracking | import |
// convert} → view → client → experiment → {suggestion | trial | metrics | db} → proto; trial,
// experiment and crd may use kube, crd convert; kube, metrics and notify net; everyone base. A
// folder may include what stands to its right, never its sibling.
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "tests/tidy/rules.h"

namespace shirabe::tidy {
namespace {

using Names = std::set<std::string>;

// What each folder may include beside itself. cmd reaches data only through client.
const std::map<std::string, Names>& Table() {
  static const std::map<std::string, Names> table = {
      {"base", {}},
      {"net", {"base"}},
      {"kube", {"base", "net"}},
      {"artifacts", {"base", "proto", "net"}},
      {"db", {"base", "proto"}},
      {"suggestion", {"base", "proto"}},
      {"metrics", {"base", "proto", "net"}},
      {"trial", {"base", "proto", "kube", "artifacts"}},
      {"notify", {"base", "proto", "net"}},
      {"experiment",
       {"base", "proto", "kube", "artifacts", "db", "suggestion", "metrics", "trial", "notify"}},
      {"schedule", {"base", "proto", "db", "experiment"}},
      {"client",
       {"base", "proto", "artifacts", "db", "suggestion", "metrics", "trial", "experiment",
        "schedule"}},
      {"view", {"base", "proto", "db", "suggestion", "trial", "experiment", "client"}},
      {"import", {"base", "proto", "db", "experiment", "client"}},
      {"convert", {"base", "proto", "trial", "experiment", "client"}},
      {"tracking", {"base", "proto", "db", "metrics", "trial", "client", "view"}},
      {"rehearsal", {"base", "proto", "db", "trial", "experiment", "client", "view"}},
      {"service",
       {"base", "proto", "db", "suggestion", "metrics", "trial", "experiment", "schedule", "client",
        "view"}},
      {"crd",
       {"base", "proto", "kube", "db", "suggestion", "metrics", "trial", "experiment", "schedule",
        "client", "view", "convert"}},
      {"sidecar", {"base", "proto", "artifacts", "metrics", "trial"}},
      {"cmd", {"base",   "proto",   "net",        "kube",      "artifacts", "suggestion", "metrics",
               "trial",  "notify",  "experiment", "schedule",  "service",   "client",     "view",
               "import", "convert", "tracking",   "rehearsal", "crd",       "sidecar"}},
      {"proto", {}},
      {"tests", {}},
      {"bench", {}},
  };
  return table;
}

std::string TopFolder(std::string_view path) {
  const size_t cut = path.find('/');
  return std::string(path.substr(0, cut == std::string_view::npos ? 0 : cut));
}

// Headers that bring a clock, a thread or the outside world.
bool IsImpure(std::string_view include) {
  for (const char* name : {"thread", "fstream", "iostream", "filesystem", "chrono", "unistd.h",
                           "base/file_io.h", "base/clock.h", "base/process_id.h"}) {
    if (include == name) return true;
  }
  return false;
}

// What computes and does nothing else. By design suggestion/remote speaks to other processes, and
// suggestion/accelerator to a device, from a thread, through the library of suggestion/gpu.
bool MustBePure(const std::string& path) {
  for (const char* folder : {"suggestion/remote/", "suggestion/accelerator/", "suggestion/gpu/"}) {
    if (path.starts_with(folder)) return false;
  }
  return TopFolder(path) == "suggestion" || path == "experiment/plan.h" ||
         path == "experiment/plan.cc";
}

// The name in #include "name" or <name>; empty for any other line.
std::string_view IncludeOn(const Source& source, int line) {
  std::string_view text = source.Line(source.text, line);
  const std::string_view code = source.Line(source.code, line);
  const size_t hash = code.find_first_not_of(' ');
  if (hash == std::string_view::npos || code.substr(hash, 8) != "#include") return {};
  const size_t open = text.find_first_of("\"<", hash + 8);
  if (open == std::string_view::npos) return {};
  const size_t close = text.find_first_of("\">", open + 1);
  return text.substr(open + 1, close - open - 1);
}

}  // namespace

std::vector<std::string> IncludesOf(const Source& source) {
  std::vector<std::string> all;
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view include = IncludeOn(source, n);
    if (!include.empty()) all.emplace_back(include);
  }
  return all;
}

void CheckIncludes(const Source& source, Violations& out) {
  const std::string from = TopFolder(source.path);
  const auto row = Table().find(from);
  if (!KindOf(source.path, source.text).cpp || row == Table().end()) return;
  const bool free = from == "tests" || from == "bench";
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view include = IncludeOn(source, n);
    if (include.empty()) continue;
    const std::string to = TopFolder(include);
    const bool ours = Table().contains(to) && to != from;
    if (!free && ours && !row->second.contains(to)) {
      out.push_back({source.path, n,
                     absl::StrFormat("%s/ may not include %s/ (see ARCHITECTURE.md)", from, to)});
    }
    if (MustBePure(source.path) && IsImpure(include)) {
      out.push_back({source.path, n,
                     absl::StrFormat("%s in a part that has no I/O, clock or threads",
                                     std::string(include))});
    }
    if (to.empty() && source.Line(source.text, n).find('"') != std::string_view::npos) {
      out.push_back({source.path, n, "an include of ours is written from the root of the tree"});
    }
  }
}

}  // namespace shirabe::tidy
