#include "trial/capacity_labels.h"

#include "base/number.h"

namespace shirabe::trial {

const std::vector<CloudLabel>& CloudLabels() {
  static const std::vector<CloudLabel> kLabels = {
      {"cloud.google.com/gke-spot", "true", "", /*tainted=*/true},
      {"cloud.google.com/gke-preemptible", "true", "", /*tainted=*/true},
      {"eks.amazonaws.com/capacityType", "SPOT", "ON_DEMAND"},
      {"karpenter.sh/capacity-type", "spot", "on-demand"},
      {"kubernetes.azure.com/scalesetpriority", "spot", "regular", /*tainted=*/true},
  };
  return kLabels;
}

v1::Capacity CapacityByLabels(const Json& node) {
  const Json& labels = At(node, {"metadata", "labels"});
  v1::Capacity capacity = v1::CAPACITY_UNSPECIFIED;
  for (const CloudLabel& label : CloudLabels()) {
    const std::string value = Text(labels, {label.key});
    if (value == label.spot) return v1::SPOT;
    if (!value.empty() && value == label.on_demand) capacity = v1::ON_DEMAND;
  }
  return capacity;
}

std::string SelectorText(const google::protobuf::Value& value) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kStringValue: return value.string_value();
    case google::protobuf::Value::kBoolValue: return value.bool_value() ? "true" : "false";
    case google::protobuf::Value::kNumberValue: return FormatNumber(value.number_value());
    default: return "";
  }
}

}  // namespace shirabe::trial
