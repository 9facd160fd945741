#include "trial/inactive_parameters.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/sorting.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

class Remover {
 public:
  explicit Remover(const std::set<std::string>& names) : names_(names) {}

  void Visit(Struct& object, const std::string& path) {
    // A map's order is arbitrary; that of findings is not.
    std::vector<std::string> keys;
    for (const auto& [key, field] : object.fields()) keys.push_back(key);
    StableSort(keys);
    for (const std::string& key : keys) {
      Visit((*object.mutable_fields())[key], absl::StrCat(path, ".", key), key == "env");
    }
  }

  std::vector<LastingReference> Release() { return std::move(lasting_); }

 private:
  void Visit(Value& value, const std::string& path, bool env) {
    if (value.has_struct_value()) return Visit(*value.mutable_struct_value(), path);
    if (value.has_list_value()) return Visit(*value.mutable_list_value(), path, env);
    Report(value.string_value(), path);
  }

  void Visit(ListValue& list, const std::string& path, bool env) {
    ListValue kept;
    for (int i = 0; i < list.values_size(); ++i) {
      Value& item = *list.mutable_values(i);
      const std::string_view text = item.string_value();
      if (env && IsWhole(ValueOf(item))) continue;
      if (IsOption(text)) continue;
      if (IsWhole(text) && kept.values_size() > 0 && IsFlag(*kept.values().rbegin())) {
        kept.mutable_values()->RemoveLast();
        continue;
      }
      Visit(item, absl::StrCat(path, "[", i, "]"), /*env=*/false);
      *kept.add_values() = std::move(item);
    }
    list = std::move(kept);
  }

  // Of an entry {name, value}.
  static std::string_view ValueOf(const Value& entry) {
    const Value* value = FindField(entry.struct_value(), "value");
    return value == nullptr ? std::string_view() : std::string_view(value->string_value());
  }
  static bool IsFlag(const Value& item) {
    return item.string_value().starts_with('-') && !item.string_value().ends_with('-') &&
           item.string_value().find_first_of("= $") == std::string::npos;
  }
  bool IsOption(std::string_view text) const {
    const size_t equals = text.find('=');
    return text.starts_with('-') && equals != std::string_view::npos &&
           IsWhole(text.substr(equals + 1));
  }
  // Whether the text is one of the references and nothing else.
  bool IsWhole(std::string_view text) const {
    constexpr std::string_view kOpen = "${trialParameters.";
    return text.starts_with(kOpen) && text.ends_with('}') &&
           names_.contains(std::string(text.substr(kOpen.size(), text.size() - kOpen.size() - 1)));
  }

  void Report(const std::string& text, const std::string& path) {
    for (const std::string& name : ReferencedIn(text)) {
      if (names_.contains(name)) lasting_.push_back({path, name});
    }
  }

  const std::set<std::string>& names_;
  std::vector<LastingReference> lasting_;
};

}  // namespace

std::vector<LastingReference> RemoveReferences(Struct& object, const std::set<std::string>& names) {
  Remover remover(names);
  remover.Visit(object, kTrialSpecPath);
  return remover.Release();
}

StatusOr<v1::TrialTemplate> WithoutInactive(const v1::TrialTemplate& from,
                                            const std::set<std::string>& inactive) {
  v1::TrialTemplate rest = from;
  if (inactive.empty()) return rest;
  rest.clear_trial_parameters();
  std::set<std::string> unbound;
  for (const v1::TrialParameterSpec& parameter : from.trial_parameters()) {
    if (inactive.contains(parameter.reference())) {
      unbound.insert(parameter.name());
    } else {
      *rest.add_trial_parameters() = parameter;
    }
  }
  for (const LastingReference& one : RemoveReferences(*rest.mutable_trial_spec(), unbound)) {
    return InvalidField(one.path, absl::StrCat("${trialParameters.", one.name,
                                               "} has no value in this trial: ", kRemovableForms));
  }
  return rest;
}

}  // namespace shirabe::trial
