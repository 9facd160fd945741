// Rules of spec.shirabe.notifications.
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/validate_rules.h"
#include "notify/endpoints.h"

namespace shirabe::experiment {
namespace {

void CheckCauses(const v1::Notification& notification, const v1::Budget& budget,
                 const std::string& path, Findings& findings) {
  std::set<int> seen;
  for (int i = 0; i < notification.events_size(); ++i) {
    const std::string item = ItemPath(ChildPath(path, "events"), i);
    if (!seen.insert(notification.events(i)).second) {
      findings.Error(item, "is given twice: remove one");
    } else if (notification.events(i) == v1::ON_BUDGET_THRESHOLD && !budget.has_max_cost()) {
      findings.Warn(item, "nothing is ever told: there is no spec.shirabe.budget.maxCost");
    }
  }
}

}  // namespace

void CheckNotifications(const v1::Experiment& experiment, Findings& findings) {
  const v1::ShirabeSpec& spec = experiment.spec().shirabe();
  std::set<std::string> endpoints;
  for (int i = 0; i < spec.notifications_size(); ++i) {
    const v1::Notification& notification = spec.notifications(i);
    const std::string item = ItemPath("spec.shirabe.notifications", i);
    CheckCauses(notification, spec.budget(), item, findings);
    const std::string& name = notification.webhook().endpoint();
    const std::string path = ChildPath(ChildPath(item, "webhook"), "endpoint");
    if (name.empty() || findings.IsUnreadable(path)) continue;
    const Status valid = notify::ValidateEndpointName(name);
    if (!valid.ok()) {
      findings.Error(path, Message(valid));
    } else if (!endpoints.insert(name).second) {
      findings.Error(path, "\"" + name + "\" is told already: put both lists into one entry");
    } else if (notify::EndpointsAreKnown()) {
      const auto found = notify::FindEndpoint(name, experiment.metadata().namespace_());
      if (!found.ok()) findings.Error(path, Message(found.status()));
    }
  }
}

}  // namespace shirabe::experiment
