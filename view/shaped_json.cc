#include "view/shaped_json.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/message_tree.h"

namespace shirabe::view {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Proto = google::protobuf::Message;

struct ShapeField {
  std::string key;
  const FieldDescriptor* from;  // of the record; null = it is always given, or left out
  bool required;
  std::string constant;  // what it always is; "" = it varies
};
using ShapeFields = std::vector<ShapeField>;

ShapeFields MakeFields(const Descriptor& shape, const Descriptor& record) {
  ShapeFields fields;
  for (int i = 0; i < shape.field_count(); ++i) {
    const FieldDescriptor& field = *shape.field(i);
    const v1::FieldRule& rule = experiment::RuleOf(field);
    fields.push_back({field.json_name(), record.FindFieldByName(field.name()), rule.required(),
                      rule.required() ? rule.default_() : ""});
  }
  return fields;
}

// Made once for each pair of messages; thread-safe.
class ShapeTable {
 public:
  const ShapeFields& Find(const Descriptor& shape, const Descriptor& record) {
    const MutexLock lock(mutex_);
    ShapeFields& fields = fields_[{&shape, &record}];
    if (fields.empty()) fields = MakeFields(shape, record);
    return fields;
  }

 private:
  Mutex mutex_;
  std::map<std::pair<const Descriptor*, const Descriptor*>, ShapeFields> fields_
      ABSL_GUARDED_BY(mutex_);
};

const ShapeFields& FieldsOf(const Descriptor& shape, const Descriptor& record) {
  static ShapeTable table;
  return table.Find(shape, record);
}

// Null for what is left out.
Json ValueFor(const ShapeField& field, const Proto& record) {
  if (!field.constant.empty()) return field.constant;
  if (field.from == nullptr) return nullptr;
  const auto& reflection = *record.GetReflection();
  const bool set = field.from->is_repeated() ? reflection.FieldSize(record, field.from) > 0
                                             : reflection.HasField(record, field.from);
  if (!set && !field.required) return nullptr;
  Json value = experiment::FieldTree(record, *field.from);
  const bool empty = value.is_string() && value.get_ref<const std::string&>().empty();
  return empty && !field.required ? Json() : value;
}

}  // namespace

Json Shaped(const Descriptor& shape, const Proto& record, Given given) {
  Json tree = Json::object();
  for (const ShapeField& field : FieldsOf(shape, *record.GetDescriptor())) {
    const auto own = std::find_if(given.begin(), given.end(),
                                  [&](const auto& one) { return field.key == one.name; });
    Json value = own == given.end() ? ValueFor(field, record) : std::move(own->value);
    if (value.is_null() && !field.required) continue;
    tree.get_ref<Json::object_t&>().emplace_back(field.key, std::move(value));
  }
  return tree;
}

}  // namespace shirabe::view
