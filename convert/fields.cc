#include "convert/fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"

namespace shirabe::convert {
namespace {

// Keys are looked for one after another.
constexpr size_t kMaxFieldKeys = 2'000;

}  // namespace

std::string ScalarText(const YamlNode& scalar) { return scalar.text; }

Fields::Fields(const YamlNode* node, Place place, Report* report)
    : node_(node), place_(std::move(place)), report_(report) {
  if (node_ == nullptr) return;
  if (node_->kind == YamlNode::Kind::kMapping) {
    if (node_->items.size() <= kMaxFieldKeys) return;
    report_->Error(place_, absl::StrCat("has ", node_->items.size(), " keys: at most ",
                                        kMaxFieldKeys, " can be taken over"));
  } else if (node_->kind != YamlNode::Kind::kNull) {
    report_->Error(place_, "must be a mapping, not " + Describe(*node_));
  }
  node_ = nullptr;
}

const YamlNode* Fields::Peek(const std::string& key) const {
  const YamlNode* value = node_ == nullptr ? nullptr : node_->Find(key);
  return value == nullptr || value->kind == YamlNode::Kind::kNull ? nullptr : value;
}

Place Fields::At(const std::string& key) const {
  const YamlNode* value = node_ == nullptr ? nullptr : node_->Find(key);
  return {experiment::ChildPath(place_.path, key), value == nullptr ? place_.mark : value->mark};
}

Place Fields::ItemAt(const std::string& key, int index) const {
  Place place = At(key);
  place.path = experiment::ItemPath(place.path, index);
  const YamlNode* value = Peek(key);
  if (value == nullptr || index >= static_cast<int>(value->items.size())) return place;
  place.mark = std::next(value->items.begin(), index)->mark;
  return place;
}

std::vector<std::string> Fields::Keys() const {
  std::vector<std::string> keys;
  if (node_ == nullptr) return keys;
  for (const YamlNode& key : node_->keys) keys.push_back(key.text);
  return keys;
}

const YamlNode* Fields::Find(const std::string& key) {
  known_.insert(key);
  return Peek(key);
}

std::optional<std::string> Fields::Text(const std::string& key) {
  const YamlNode* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->IsScalar()) return ScalarText(*value);
  report_->Error(At(key), "must be a text, not " + Describe(*value));
  return std::nullopt;
}

std::optional<std::string> Fields::Word(const std::string& key,
                                        const std::vector<std::string>& words) {
  const auto text = Text(key);
  if (!text || std::find(words.begin(), words.end(), *text) != words.end()) return text;
  const auto nearest = Nearest(*text, words);
  report_->Error(At(key), absl::StrCat(Quoted(*text), " is none of ", absl::StrJoin(words, ", "),
                                       nearest ? "; did you mean " + *nearest + "?" : ""));
  return std::nullopt;
}

// Programs that print messages as JSON write large integers as texts.
std::optional<double> Fields::Number(const std::string& key) {
  const YamlNode* value = Find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<double> number;
  if (value->kind == YamlNode::Kind::kNumber) number = value->number;
  if (value->kind == YamlNode::Kind::kString) number = ParseNumber(value->text);
  if (number && std::isfinite(*number)) return number;
  report_->Error(At(key), "must be a finite number, not " + Describe(*value));
  return std::nullopt;
}

std::optional<int32_t> Fields::Count(const std::string& key, int32_t least) {
  const auto number = Number(key);
  if (!number) return std::nullopt;
  if (*number == std::floor(*number) && *number >= least && *number <= INT32_MAX) {
    return static_cast<int32_t>(*number);
  }
  report_->Error(At(key), absl::StrCat("must be a whole number of at least ", least, ", not ",
                                       FormatNumber(*number)));
  return std::nullopt;
}

std::optional<bool> Fields::Flag(const std::string& key) {
  const YamlNode* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind == YamlNode::Kind::kBoolean) return value->boolean;
  report_->Error(At(key), "must be true or false, not " + Describe(*value));
  return std::nullopt;
}

std::vector<std::string> Fields::Texts(const std::string& key) {
  const YamlNode* value = Find(key);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  if (value->kind != YamlNode::Kind::kSequence) {
    report_->Error(At(key), "must be a list, not " + Describe(*value));
    return texts;
  }
  int index = 0;
  for (const YamlNode& item : value->items) {
    if (item.IsScalar()) {
      texts.push_back(ScalarText(item));
    } else {
      report_->Error({experiment::ItemPath(At(key).path, index), item.mark},
                     "must be a text or a number, not " + Describe(item));
    }
    ++index;
  }
  return texts;
}

std::vector<Fields> Fields::Items(const std::string& key) {
  const YamlNode* value = Find(key);
  std::vector<Fields> items;
  if (value == nullptr) return items;
  if (value->kind != YamlNode::Kind::kSequence) {
    report_->Error(At(key), "must be a list, not " + Describe(*value));
    return items;
  }
  const std::string path = At(key).path;
  for (const YamlNode& item : value->items) {
    const Place place{experiment::ItemPath(path, static_cast<int>(items.size())), item.mark};
    items.emplace_back(&item, place, report_);
  }
  return items;
}

std::vector<std::pair<std::string, std::string>> Fields::Pairs(const std::string& key) {
  Fields child = Child(key);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& name : child.Keys()) {
    if (auto text = child.Text(name)) pairs.emplace_back(name, *std::move(text));
  }
  return pairs;
}

Fields Fields::Child(const std::string& key) {
  const YamlNode* value = Find(key);
  return {value, At(key), report_};
}

void Fields::LeaveOut(std::initializer_list<const char*> keys, const std::string& why) {
  for (const char* key : keys) {
    if (Find(key) != nullptr) report_->LeftOut(At(key), why);
  }
}

void Fields::Finish(const std::string& what) {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const std::string& key : Keys()) {
    if (known_.contains(key) || report_->full()) continue;
    const auto nearest = Nearest(key, known);
    if (nearest && !Has(*nearest)) {
      report_->Error(At(key), absl::StrCat("unknown field of ", what, "; did you mean ",
                                           Quoted(*nearest), "?"));
    } else {
      report_->LeftOut(At(key), absl::StrCat("is no field of ", what, " that is known here"));
    }
  }
}

}  // namespace shirabe::convert
