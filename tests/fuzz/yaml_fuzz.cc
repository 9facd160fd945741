// Any text: the tree keeps its limits, and every problem has a place within the text.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/text/yaml_tree.h"

namespace {

using shirabe::YamlNode;

int CheckNode(const YamlNode& node, int level) {
  CHECK(level <= shirabe::kMaxYamlDepth);
  CHECK(node.mark.line > 0 && node.mark.column > 0);
  CHECK(node.kind == YamlNode::Kind::kMapping ? node.keys.size() == node.items.size()
                                              : node.keys.empty());
  int nodes = 1;
  for (const YamlNode& key : node.keys) nodes += CheckNode(key, level + 1);
  for (const YamlNode& item : node.items) nodes += CheckNode(item, level + 1);
  return nodes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = 1 + 2 * std::count_if(text.begin(), text.end(), [](char c) {
                           return c == '\n' || c == '\r' || (c & 0x80) != 0;
                         });
  for (const auto& document : shirabe::ParseYaml(text)) {
    if (!document.broken) {
      CHECK(CheckNode(document.root, 1) <= shirabe::kMaxYamlNodes);
    }
    CHECK(!document.broken || !document.problems.empty());
    for (const auto& problem : document.problems) {
      CHECK(problem.mark.line > 0 && problem.mark.line <= lines + 1);
    }
  }
  return 0;
}
