// YAML text as a small tree that remembers where everything stands, read with libyaml's events.
// Scalars are resolved as Kubernetes resolves them (YAML 1.1: yes, on, y are booleans; 010 is 8),
// aliases and merge keys are expanded, duplicate keys are refused. Used by parse_spec.cc and by
// readers of configurations; pure functions, any thread.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shirabe {

// A place in the text: from 1, columns in characters; 0 = nowhere.
struct Mark {
  int line = 0;
  int column = 0;
};

struct YamlNode {
  enum class Kind : uint8_t { kNull, kBoolean, kNumber, kString, kSequence, kMapping };

  Kind kind = Kind::kNull;
  bool boolean = false;            // kBoolean
  double number = 0;               // kNumber
  std::optional<int64_t> integer;  // kNumber written as an integer that fits
  std::string text;                // scalars, as written, without quotes
  Mark mark;
  // The values of a sequence or mapping and, for a mapping, its keys in the same order. Lists,
  // because the address of a node must stay while the tree grows: anchors point to it.
  std::list<YamlNode> keys;
  std::list<YamlNode> items;

  bool IsScalar() const { return kind < Kind::kSequence; }
  // The value of a key; null if this is no mapping, or has no such key.
  const YamlNode* Find(std::string_view key) const;
};

// The limits below hold after aliases are expanded, so that no small text becomes a large tree.
inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr int kMaxYamlDepth = 64;
inline constexpr int kMaxYamlNodes = 100'000;
inline constexpr size_t kMaxYamlText = 4 << 20;  // bytes of all scalars

struct YamlProblem {
  std::string message;
  Mark mark;
};

struct YamlDocument {
  YamlNode root;
  std::vector<YamlProblem> problems;
  bool broken = false;  // reading stopped inside: the root is not complete
};

// Every document that is not empty. A text that cannot be read to its end has its problem in the
// last document, which is broken.
std::vector<YamlDocument> ParseYaml(std::string_view text, size_t max_bytes = kMaxYamlBytes);

// Sets kind and value of a plain scalar from its text.
void ResolvePlain(YamlNode& scalar);

// "a mapping", "the number 5", "the boolean yes": for messages.
std::string Describe(const YamlNode& node);

// What JSON writes as two escapes and YAML does not know. For yaml_tree.cc, which reads JSON as the
// YAML that it nearly is; pure function, any thread.
//
// The text with each character that JSON has in two halves, "\ud83d\ude00", as itself. Any other
// text than JSON stays as it is: in YAML these may be letters of a script.
std::string JoinEscapedPairs(std::string_view text);

}  // namespace shirabe
