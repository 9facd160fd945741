#include "service/rights.h"

#include "absl/strings/str_cat.h"

namespace shirabe::service {
namespace {

using For = Right::For;

constexpr Right kAnyone{For::kAnyone};
constexpr Right kCallers{For::kCallers};
constexpr Right kLook{For::kNamespace, Act::kLook};
constexpr Right kCreate{For::kNamespace, Act::kCreate};
constexpr Right kChange{For::kNamespace, Act::kChange};
constexpr Right kDelete{For::kNamespace, Act::kDelete};
constexpr Right kTrialLook{For::kTrials, Act::kLook};
constexpr Right kTrialChange{For::kTrials, Act::kChange};

using Table = std::map<std::string, Right>;

void AddShirabe(Table& table) {
  const std::string service = "shirabe.v1.Shirabe/";
  for (const auto& [method, right] : Table{
           {"GetExperiment", kLook},
           {"ListExperiments", kLook},
           {"SubmitExperiment", kCreate},
           {"SendIntent", kChange},  // of a deletion as DeleteExperiment
           {"DeleteExperiment", kDelete},
           {"GetTrial", kTrialLook},
           {"ListTrials", kLook},
           {"ListAttempts", kLook},
           {"ListCheckpoints", kTrialLook},
           {"ListObservations", kTrialLook},
           {"ListEvents", kLook},
           {"AwaitChange", kCallers},  // a number
           {"ListChanges", kCallers},  // of namespaces that the caller sees
           {"GetHolder", kLook},
           {"ReadLog", kLook},
           {"Suggest", kLook},
           {"Ask", kChange},
           {"Tell", kTrialChange},
           {"ImportExperiment", kCreate},
       }) {
    table.emplace(service + method, right);
  }
  table.emplace("shirabe.v1.Pods/Sync", Right{For::kPods});
}

// Katib's, and what gRPC brings itself.
void AddOthers(Table& table) {
  const std::string katib = "api.v1.beta1.";
  for (const auto& [method, right] : Table{
           // Algorithms learn from the request alone.
           {"Suggestion/GetSuggestions", kCallers},
           {"Suggestion/ValidateAlgorithmSettings", kCallers},
           {"EarlyStopping/GetEarlyStoppingRules", kCallers},
           {"EarlyStopping/ValidateEarlyStoppingSettings", kCallers},
           {"EarlyStopping/SetTrialStatus", kTrialLook},
           {"DBManager/ReportObservationLog", kTrialChange},
           {"DBManager/GetObservationLog", kTrialLook},
           {"DBManager/DeleteObservationLog", kTrialLook},  // it refuses what is there
       }) {
    table.emplace(katib + method, right);
  }
  for (const char* method : {"grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch",
                             "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    table.emplace(method, kAnyone);
  }
}

void AddRoutes(Table& table) {
  for (const auto& [id, right] : Table{
           {"livez", kAnyone},
           {"readyz", kAnyone},
           {"version", kAnyone},
           {"openapi", kAnyone},
           {"metrics", Right{For::kMetrics}},
           {"validate", kCallers},
           {"listAlgorithms", kCallers},
           {"getAlgorithm", kCallers},
           {"listStoppers", kCallers},
           {"getStopper", kCallers},
           // Without a namespace in the path: of the caller's own, as the guard has it.
           {"listAllExperiments", kCallers},
           {"createExperimentAnywhere", kCallers},
           {"suggestFor", kCallers},
           {"watch", kCallers},
           {"listExperiments", kLook},
           {"createExperiment", kCreate},
           {"getExperiment", kLook},
           {"applyExperiment", kCreate},
           {"patchExperiment", kChange},
           {"deleteExperiment", kDelete},
           {"pauseExperiment", kChange},
           {"resumeExperiment", kChange},
           {"stopExperiment", kChange},
           {"cancelExperiment", kChange},
           {"scaleExperiment", kChange},
           {"retryTrial", kChange},
           {"listTrials", kLook},
           {"getTrial", kTrialLook},
           {"listAttempts", kLook},
           {"listTrialAttempts", kLook},
           {"listCheckpoints", kTrialLook},
           {"listObservations", kTrialLook},
           {"listEvents", kLook},
           {"listTrialEvents", kLook},
           {"ask", kChange},
           {"tell", kTrialChange},
           {"suggest", kLook},
           {"watchNamespace", kLook},
           {"watchExperiment", kLook},
           {"getLog", kLook},
           {"exportTrials", kLook},
       }) {
    table.emplace(id, right);
  }
}

}  // namespace

const std::map<std::string, Right>& AllRights() {
  static const Table all = [] {
    Table table;
    AddShirabe(table);
    AddOthers(table);
    AddRoutes(table);
    return table;
  }();
  return all;
}

Right RightOf(const std::string& method) {
  const auto found = AllRights().find(method);
  return found == AllRights().end() ? Right{} : found->second;
}

Status CheckDoor(const Principal& principal, const std::string& method) {
  const For whom = RightOf(method).whom;
  if (whom == For::kNobody) {
    return absl::PermissionDeniedError(
        absl::StrCat(method, " is refused to every caller: the table of rights lacks it"));
  }
  if (principal.role != Principal::Role::kTrial) return absl::OkStatus();
  if (whom == For::kAnyone || whom == For::kTrials || whom == For::kPods) return absl::OkStatus();
  return principal.MayUse("");  // it says what a trial may do
}

Status CheckRight(const Principal& principal, const std::string& method, const std::string& ns) {
  RETURN_IF_ERROR(CheckDoor(principal, method));
  const Right right = RightOf(method);
  if (right.whom == For::kMetrics) return principal.MayReadMetrics();
  const bool here = right.whom == For::kNamespace || right.whom == For::kTrials;
  if (!here || principal.role == Principal::Role::kTrial) return absl::OkStatus();
  return principal.May(right.act, ns);
}

}  // namespace shirabe::service
