#include "service/common/authorization.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/rng.h"
#include "base/sha256.h"

namespace shirabe::service {
namespace {

constexpr int kTokenBytes = 24;
constexpr size_t kMinTokenLength = 16;  // characters: what is shorter can be guessed
constexpr size_t kTrialToken = 32;      // of an attempt's token, 16 random bytes in hexadecimal

// Looking a token up by its digest takes as long for a wrong one as for a right one.
std::string Digest(const std::string& token) { return HexSha256(token); }

Status Create(const std::string& path) {
  const mode_t old = umask(0077);
  const Status written =
      WriteFileAtomic(path, absl::BytesToHexString(RandomBytes(kTokenBytes)) + "\n", true);
  umask(old);
  return written;
}

Status CheckMode(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus("cannot read " + path, errno);
  if ((info.st_mode & 0077) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, " holds secrets and others may read it: chmod 600 ", path));
}

Status CheckToken(const std::string& token, const std::string& place) {
  if (token.size() >= kMinTokenLength) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place, ": a token of ", token.size(),
                                                 " characters can be guessed; give it at least ",
                                                 kMinTokenLength));
}

// "" where it shows none.
std::string TokenOf(const std::string& authorization) {
  constexpr char kScheme[] = "bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return "";
  return std::string(absl::StripAsciiWhitespace(authorization.substr(sizeof kScheme - 1)));
}

// As the tokens of attempts are.
bool IsTrialToken(const std::string& token) {
  return token.size() == kTrialToken &&
         std::all_of(token.begin(), token.end(), absl::ascii_isxdigit);
}

Principal Administrator(const std::string& name) {
  return {.role = Principal::Role::kAdmin, .name = name};
}

// Whom the file of tokens names.
std::optional<Principal> FindKnown(const std::string& token, const std::string& admin,
                                   const std::map<std::string, std::string>& users) {
  const std::string digest = Digest(token);
  if (digest == Digest(admin)) return Administrator("admin");
  const auto user = users.find(digest);
  if (user == users.end()) return std::nullopt;
  return Principal{
      .role = Principal::Role::kUser, .ns = user->second, .name = "user of " + user->second};
}

}  // namespace

Status Principal::May(Permission permission, const std::string& wanted) const {
  if (role == Role::kAdmin) return absl::OkStatus();
  if (role == Role::kClusterUser) return authorize(permission, wanted);
  if (role == Role::kUser && wanted == ns) return absl::OkStatus();
  if (role == Role::kTrial) {
    return absl::PermissionDeniedError(
        "this token is unknown, or that of a trial, which may only read and report what is its "
        "own");
  }
  if (wanted.empty()) {
    return absl::PermissionDeniedError(
        absl::StrCat("this token is for namespace ", ns, ", not for all of them: use -n ", ns));
  }
  return absl::PermissionDeniedError(
      absl::StrCat("this token is for namespace ", ns, ", not for ", wanted));
}

StatusOr<bool> Principal::Sees(const std::string& ns) const {
  Status may = MayUse(ns);
  if (may.ok() || absl::IsPermissionDenied(may)) return may.ok();
  return may;
}

Status Principal::MustBeAdmin(const std::string& what) const {
  if (role == Role::kAdmin) return absl::OkStatus();
  return absl::PermissionDeniedError(what + " takes an administrator's token");
}

Status Principal::MayReadMetrics() const {
  if (role == Role::kClusterUser) return authorize_metrics();
  return MustBeAdmin("reading the metrics of all namespaces");
}

v1::Actor Principal::Actor() const {
  v1::Actor actor;
  actor.set_name(name);
  actor.set_door(door);
  return actor;
}

StatusOr<Tokens> Tokens::Load(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) RETURN_IF_ERROR(Create(path));
  RETURN_IF_ERROR(CheckMode(path));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  Tokens tokens;
  int number = 0;
  for (const auto line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::string place = absl::StrCat(path, ":", number);
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') continue;
    RETURN_IF_ERROR(CheckToken(words.back(), place));
    if (words.size() == 1 && tokens.admin_.empty()) {
      tokens.admin_ = words[0];
    } else if (words.size() == 3 && words[0] == "user") {
      RETURN_IF_ERROR(Prefix(place, ValidateNamespace(words[1])));
      tokens.users_[Digest(words[2])] = words[1];
    } else {
      return absl::InvalidArgumentError(
          place + ": expected the administrator's token alone, or: user NAMESPACE TOKEN");
    }
  }
  if (!tokens.admin_.empty()) return tokens;
  return absl::InvalidArgumentError(path + " has no administrator's token: a line of its own");
}

Tokens Tokens::Open() {
  Tokens tokens;
  tokens.open_ = true;
  return tokens;
}

StatusOr<Principal> Tokens::Check(const std::string& authorization, const std::string& from) const {
  if (open_) return Administrator("anybody, without a token");
  const std::string token = TokenOf(authorization);
  if (token.empty()) {
    return absl::UnauthenticatedError(
        "a token is required: the header `Authorization: Bearer TOKEN` (--token-file)");
  }
  if (const auto known = FindKnown(token, admin_, users_)) return *known;
  if (IsTrialToken(token)) {
    return Principal{
        .role = Principal::Role::kTrial, .token = absl::HexStringToBytes(token), .name = "a trial"};
  }
  if (introspect_token_) return introspect_token_(token, from);
  return absl::UnauthenticatedError("this token is unknown: ask the administrator for one");
}

bool Tokens::MustAsk(const std::string& authorization) const {
  const std::string token = TokenOf(authorization);
  return introspect_token_ && !IsTrialToken(token) && !FindKnown(token, admin_, users_);
}

namespace {

using For = AccessRule::For;

constexpr AccessRule kAnyone{For::kAnyone};
constexpr AccessRule kCallers{For::kCallers};
constexpr AccessRule kRead{For::kNamespace, Permission::kRead};
constexpr AccessRule kCreate{For::kNamespace, Permission::kCreate};
constexpr AccessRule kChange{For::kNamespace, Permission::kChange};
constexpr AccessRule kDelete{For::kNamespace, Permission::kDelete};
constexpr AccessRule kTrialLook{For::kTrials, Permission::kRead};
constexpr AccessRule kTrialChange{For::kTrials, Permission::kChange};

using Table = std::map<std::string, AccessRule>;

void AddShirabe(Table& table) {
  const std::string service = "shirabe.v1.Shirabe/";
  for (const auto& [method, right] : Table{
           {"GetExperiment", kRead},
           {"ListExperiments", kRead},
           {"SubmitExperiment", kCreate},
           {"SendIntent", kChange},  // of a deletion as DeleteExperiment
           {"DeleteExperiment", kDelete},
           {"GetTrial", kTrialLook},
           {"ListTrials", kRead},
           {"ListAttempts", kRead},
           {"ListCheckpoints", kTrialLook},
           {"ListObservations", kTrialLook},
           {"ListEvents", kRead},
           {"AwaitChange", kCallers},  // a number
           {"ListChanges", kCallers},  // of namespaces that the caller sees
           {"GetHolder", kRead},
           {"ReadLog", kRead},
           {"Suggest", kRead},
           {"Ask", kChange},
           {"Tell", kTrialChange},
           {"ImportExperiment", kCreate},
       }) {
    table.emplace(service + method, right);
  }
  table.emplace("shirabe.v1.Pods/Sync", AccessRule{For::kPods});
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
           {"metrics", AccessRule{For::kMetrics}},
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
           {"listExperiments", kRead},
           {"createExperiment", kCreate},
           {"getExperiment", kRead},
           {"applyExperiment", kCreate},
           {"patchExperiment", kChange},
           {"deleteExperiment", kDelete},
           {"pauseExperiment", kChange},
           {"resumeExperiment", kChange},
           {"stopExperiment", kChange},
           {"cancelExperiment", kChange},
           {"scaleExperiment", kChange},
           {"retryTrial", kChange},
           {"listTrials", kRead},
           {"getTrial", kTrialLook},
           {"listAttempts", kRead},
           {"listTrialAttempts", kRead},
           {"listCheckpoints", kTrialLook},
           {"listObservations", kTrialLook},
           {"listEvents", kRead},
           {"listTrialEvents", kRead},
           {"ask", kChange},
           {"tell", kTrialChange},
           {"suggest", kRead},
           {"watchNamespace", kRead},
           {"watchExperiment", kRead},
           {"getLog", kRead},
           {"exportTrials", kRead},
       }) {
    table.emplace(id, right);
  }
}

}  // namespace

const std::map<std::string, AccessRule>& AccessRules() {
  static const Table all = [] {
    Table table;
    AddShirabe(table);
    AddOthers(table);
    AddRoutes(table);
    return table;
  }();
  return all;
}

AccessRule AccessRuleOf(const std::string& method) {
  const auto found = AccessRules().find(method);
  return found == AccessRules().end() ? AccessRule{} : found->second;
}

Status CheckMethodAccess(const Principal& principal, const std::string& method) {
  const For whom = AccessRuleOf(method).whom;
  if (whom == For::kNobody) {
    return absl::PermissionDeniedError(
        absl::StrCat(method, " is refused to every caller: the table of rights lacks it"));
  }
  if (principal.role != Principal::Role::kTrial) return absl::OkStatus();
  if (whom == For::kAnyone || whom == For::kTrials || whom == For::kPods) return absl::OkStatus();
  return principal.MayUse("");  // it says what a trial may do
}

Status CheckAccess(const Principal& principal, const std::string& method, const std::string& ns) {
  RETURN_IF_ERROR(CheckMethodAccess(principal, method));
  const AccessRule right = AccessRuleOf(method);
  if (right.whom == For::kMetrics) return principal.MayReadMetrics();
  const bool here = right.whom == For::kNamespace || right.whom == For::kTrials;
  if (!here || principal.role == Principal::Role::kTrial) return absl::OkStatus();
  return principal.May(right.permission, ns);
}

}  // namespace shirabe::service
