#include "base/text/yaml_tree.h"

#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace shirabe {
namespace {

using Kind = YamlNode::Kind;

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

Mark At(const yaml_mark_t& mark) {
  return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
}

// libyaml counts bytes where it cannot read characters.
Mark AtOffset(std::string_view text, size_t offset) {
  Mark mark{1, 1};
  for (const char c : text.substr(0, std::min(offset, text.size()))) {
    if (c == '\n') {
      mark = {mark.line + 1, 1};
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++mark.column;
    }
  }
  return mark;
}

std::string_view View(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

// The character at a mark; 0 past the end.
char CharacterAt(std::string_view text, Mark mark) {
  size_t i = 0;
  for (; mark.line > 1 && i < text.size(); ++i) mark.line -= text[i] == '\n';
  for (; mark.column > 1 && i < text.size(); --mark.column) {
    do ++i;
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80);
  }
  return i < text.size() ? text[i] : '\0';
}

// What people usually did when libyaml says this.
std::string_view HintFor(std::string_view problem) {
  static constexpr std::pair<std::string_view, std::string_view> kHints[] = {
      {"mapping values are not allowed",
       "quote a value that contains ': ', or check the indentation"},
      {"did not find expected key", "check the indentation of this line and the one above"},
      {"did not find expected '-' indicator", "check the indentation: a list goes on with '- '"},
      {"could not find expected ':'", "write KEY: VALUE, with a space after the colon"},
      {"found unknown escape character", "use single quotes, or double the backslash"},
      {"found unexpected end of stream", "close the quotation mark or bracket"},
      {"did not find expected ',' or", "close the bracket, or quote the text in it"},
      {"invalid", "save the file as UTF-8"},
      {"control characters are not allowed",
       "remove it, or write it as an escape in double quotes"},
  };
  for (const auto& [begin, hint] : kHints) {
    if (problem.substr(0, begin.size()) == begin) return hint;
  }
  return "";
}

class Event {
 public:
  Event() { std::memset(&event_, 0, sizeof event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&event_); }
  bool Read(yaml_parser_t& parser) {
    yaml_event_delete(&event_);
    return yaml_parser_parse(&parser, &event_) == 1;
  }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_;
};

// Nodes, levels and bytes of text of a finished subtree, to know before copying it whether there
// is room.
struct Extent {
  int nodes = 1;
  int levels = 1;
  size_t text = 0;
};

struct Anchor {
  const YamlNode* node = nullptr;
  bool open = true;  // we are still inside it
  Extent extent;
};

// Builds trees from events. Each step returns false once reading must stop; the problem is noted.
class Composer {
 public:
  explicit Composer(std::string_view text) : text_(text) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const yaml_char_t*>(text.data()),
                                 text.size());
  }
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;
  ~Composer() { yaml_parser_delete(&parser_); }

  std::vector<YamlDocument> Run() {
    while (Next() && event_->type != YAML_STREAM_END_EVENT) {
      if (event_->type == YAML_DOCUMENT_START_EVENT && !Document()) break;
    }
    if (!problems_.empty()) Finish(YamlDocument{{}, {}, true});
    return std::move(documents_);
  }

 private:
  void Finish(YamlDocument document) {
    document.problems = std::move(problems_);
    problems_.clear();
    documents_.push_back(std::move(document));
  }

  bool Document() {
    anchors_.clear();
    kept_.clear();
    YamlDocument document;
    if (!Next()) return false;
    Extent extent;
    document.broken = !Node(1, document.root, extent);
    if (document.broken || !problems_.empty() || document.root.kind != Kind::kNull) {
      const bool broken = document.broken;
      Finish(std::move(document));
      if (broken) return false;
    }
    return true;
  }

  bool Next() { return event_.Read(parser_) || SyntaxError(); }

  bool Fail(Mark mark, std::string message) {
    problems_.push_back({std::move(message), mark});
    return false;
  }

  bool SyntaxError() {
    const std::string problem = parser_.problem == nullptr ? "not YAML" : parser_.problem;
    if (parser_.error == YAML_READER_ERROR) {
      return Fail(AtOffset(text_, parser_.problem_offset), WithHint(problem));
    }
    const Mark mark = At(parser_.problem_mark);
    if (CharacterAt(text_, mark) == '\t') {
      return Fail(mark, "a tab cannot be used here: indent with spaces");
    }
    std::string message = WithHint(problem);
    if (parser_.context != nullptr) {
      message += " (" + std::string(parser_.context) + ", which began at line " +
                 std::to_string(parser_.context_mark.line + 1) + ")";
    }
    return Fail(mark, message);
  }

  static std::string WithHint(const std::string& problem) {
    const std::string_view hint = HintFor(problem);
    return hint.empty() ? problem : problem + ": " + std::string(hint);
  }

  // Reads the node that event_ begins, and leaves event_ at the node's last event.
  bool Node(int level, YamlNode& node, Extent& extent) {
    node.mark = At(event_->start_mark);
    if (level > kMaxYamlDepth) return TooDeep(node.mark);
    if (event_->type == YAML_ALIAS_EVENT) return Alias(level, node, extent);
    if (!Count({}, node.mark)) return false;
    const std::string anchor(AnchorName());
    if (!anchor.empty()) anchors_[anchor] = Anchor{&node, true, {}};
    if (!Content(level, node, extent)) return false;
    if (!anchor.empty()) anchors_[anchor] = Anchor{&node, false, extent};
    return true;
  }

  bool Content(int level, YamlNode& node, Extent& extent) {
    switch (event_->type) {
      case YAML_SCALAR_EVENT:
        extent.text = event_->data.scalar.length;
        return Count({.nodes = 0, .levels = 0, .text = extent.text}, node.mark) && Scalar(node);
      case YAML_SEQUENCE_START_EVENT: return Sequence(level, node, extent);
      case YAML_MAPPING_START_EVENT: return Mapping(level, node, extent);
      default: return Fail(node.mark, "not YAML");
    }
  }

  std::string_view AnchorName() const {
    switch (event_->type) {
      case YAML_SCALAR_EVENT: return View(event_->data.scalar.anchor);
      case YAML_SEQUENCE_START_EVENT: return View(event_->data.sequence_start.anchor);
      default: return View(event_->data.mapping_start.anchor);
    }
  }

  bool TooDeep(Mark mark) {
    return Fail(mark, "more than " + std::to_string(kMaxYamlDepth) + " levels of nesting");
  }

  bool Count(const Extent& extent, Mark mark) {
    nodes_ += extent.nodes;
    text_bytes_ += extent.text;
    if (text_bytes_ > kMaxYamlText) {
      return Fail(mark, "more than " + std::to_string(kMaxYamlText >> 20) +
                            " MiB of text, with aliases expanded: use fewer aliases");
    }
    if (nodes_ <= kMaxYamlNodes) return true;
    return Fail(mark, "more than " + std::to_string(kMaxYamlNodes) +
                          " values, with aliases expanded: split the file, or use fewer aliases");
  }

  bool Alias(int level, YamlNode& node, Extent& extent) {
    const std::string name(View(event_->data.alias.anchor));
    const Mark mark = node.mark;
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) {
      return Fail(mark, "alias *" + name + " has no anchor &" + name + " before it");
    }
    if (found->second.open) return Fail(mark, "alias *" + name + " stands inside its own anchor");
    extent = found->second.extent;
    if (level + extent.levels - 1 > kMaxYamlDepth) return TooDeep(mark);
    if (!Count(extent, mark)) return false;
    node = YamlNode(*found->second.node);
    return true;
  }

  bool Scalar(YamlNode& node) {
    const auto& scalar = event_->data.scalar;
    node.text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    node.kind = Kind::kString;
    const std::string_view tag = View(scalar.tag);
    if (tag.empty()) {
      if (scalar.plain_implicit) ResolvePlain(node);
      return true;
    }
    return Tagged(tag, node);
  }

  // An explicit tag: what it names must be what the text is.
  bool Tagged(std::string_view tag, YamlNode& node) {
    if (tag == "!") return true;
    const bool core = tag.substr(0, kCoreTag.size()) == kCoreTag;
    const std::string_view type = core ? tag.substr(kCoreTag.size()) : tag;
    if (core && (type == "str" || type == "timestamp")) return true;
    YamlNode plain = node;
    ResolvePlain(plain);
    static const std::map<std::string_view, Kind> kTypes = {{"null", Kind::kNull},
                                                            {"bool", Kind::kBoolean},
                                                            {"int", Kind::kNumber},
                                                            {"float", Kind::kNumber}};
    const auto known = kTypes.find(type);
    if (!core || known == kTypes.end()) {
      return Fail(node.mark, "the tag " + std::string(tag) + " is not supported: remove it");
    }
    if (plain.kind != known->second ||
        (type == "int" && plain.number != std::floor(plain.number))) {
      return Fail(node.mark, "\"" + node.text + "\" is not of the type !!" + std::string(type));
    }
    node = std::move(plain);
    return true;
  }

  bool CheckTag(const yaml_char_t* tag, std::string_view expected, Mark mark) {
    const std::string_view text = View(tag);
    if (text.empty() || text == "!" || text == std::string(kCoreTag) + std::string(expected)) {
      return true;
    }
    return Fail(mark, "the tag " + std::string(text) + " is not supported: remove it");
  }

  bool Child(int level, YamlNode& node, Extent& parent) {
    Extent extent;
    if (!Node(level + 1, node, extent)) return false;
    parent.nodes += extent.nodes;
    parent.text += extent.text;
    parent.levels = std::max(parent.levels, extent.levels + 1);
    return true;
  }

  bool Sequence(int level, YamlNode& node, Extent& extent) {
    node.kind = Kind::kSequence;
    if (!CheckTag(event_->data.sequence_start.tag, "seq", node.mark)) return false;
    for (;;) {
      if (!Next()) return false;
      if (event_->type == YAML_SEQUENCE_END_EVENT) return true;
      if (!Child(level, node.items.emplace_back(), extent)) return false;
    }
  }

  bool Mapping(int level, YamlNode& node, Extent& extent) {
    node.kind = Kind::kMapping;
    if (!CheckTag(event_->data.mapping_start.tag, "map", node.mark)) return false;
    std::map<std::string, Mark> seen;
    std::list<YamlNode> merged;
    for (;;) {
      if (!Next()) return false;
      if (event_->type == YAML_MAPPING_END_EVENT) break;
      const bool plain = event_->type == YAML_SCALAR_EVENT && event_->data.scalar.plain_implicit;
      YamlNode& key = node.keys.emplace_back();
      if (!Child(level, key, extent) || !Next()) return false;
      const bool merge = plain && key.text == "<<";
      if (!Child(level, (merge ? merged : node.items).emplace_back(), extent)) return false;
      if (merge) {
        kept_.splice(kept_.end(), node.keys, std::prev(node.keys.end()));
      } else {
        CheckKey(key, seen);
      }
    }
    const bool good = Merge(merged, node);
    kept_.splice(kept_.end(), merged);
    return good;
  }

  void CheckKey(const YamlNode& key, std::map<std::string, Mark>& seen) {
    if (!key.IsScalar() || key.kind == Kind::kNull || key.kind == Kind::kBoolean) {
      Fail(key.mark,
           key.kind == Kind::kBoolean
               ? "the key " + key.text + " is a boolean in YAML: write \"" + key.text + "\""
               : "a key must be text, not " + Describe(key));
      return;
    }
    const auto [first, fresh] = seen.emplace(key.text, key.mark);
    if (fresh) return;
    Fail(key.mark, "the key \"" + key.text + "\" is given twice, first at line " +
                       std::to_string(first->second.line) + ": remove one");
  }

  // <<: *base, or a list of them: keys that the mapping does not have itself, the first one wins.
  bool Merge(const std::list<YamlNode>& merged, YamlNode& node) {
    std::set<std::string> have;
    for (const YamlNode& key : node.keys) have.insert(key.text);
    for (const YamlNode& value : merged) {
      if (value.kind != Kind::kSequence) {
        if (!MergeOne(value, have, node)) return false;
        continue;
      }
      for (const YamlNode& item : value.items) {
        if (!MergeOne(item, have, node)) return false;
      }
    }
    return true;
  }

  bool MergeOne(const YamlNode& from, std::set<std::string>& have, YamlNode& node) {
    if (from.kind != Kind::kMapping) {
      return Fail(from.mark, "the merge key << takes a mapping, not " + Describe(from));
    }
    auto item = from.items.begin();
    for (const YamlNode& key : from.keys) {
      if (have.insert(key.text).second) {
        node.keys.push_back(key);
        node.items.push_back(*item);
      }
      ++item;
    }
    return true;
  }

  std::string_view text_;
  yaml_parser_t parser_;
  Event event_;
  std::map<std::string, Anchor> anchors_;
  std::list<YamlNode> kept_;  // merged nodes: no longer in the tree, but an anchor may be there
  int nodes_ = 0;
  size_t text_bytes_ = 0;
  std::vector<YamlProblem> problems_;
  std::vector<YamlDocument> documents_;
};

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  auto item = items.begin();
  for (const YamlNode& candidate : keys) {
    if (candidate.IsScalar() && candidate.text == key) return &*item;
    ++item;
  }
  return nullptr;
}

std::vector<YamlDocument> ParseYaml(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return Composer(JoinEscapedPairs(text)).Run();
  const std::string limit = std::to_string(max_bytes >> 20) + " MiB";
  return {YamlDocument{{}, {{"the text has more than " + limit + ": split it", {1, 1}}}, true}};
}

}  // namespace shirabe
