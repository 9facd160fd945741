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
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "google/protobuf/descriptor.h"

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

// Whom a line of the file names. There is one administrator.
StatusOr<Principal> PrincipalOf(const std::vector<std::string>& words, bool has_admin) {
  using Role = Principal::Role;
  if (words.size() == 1 && !has_admin) return Administrator("admin");
  if (words.size() == 2 && words[0] == "metrics") {
    return Principal{.role = Role::kMonitor, .name = "reader of metrics"};
  }
  if (words.size() != 3 || words[0] != "user") {
    return absl::InvalidArgumentError(
        "expected one administrator's token alone, or: user NAMESPACE TOKEN, or: metrics TOKEN");
  }
  RETURN_IF_ERROR(ValidateNamespace(words[1]));
  return Principal{.role = Role::kUser, .ns = words[1], .name = "user of " + words[1]};
}

// What gRPC brings itself has no options of ours.
bool IsOpen(const std::string& method) {
  return method == "grpc.health.v1.Health/Check" || method == "grpc.health.v1.Health/Watch" ||
         method == "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
}

}  // namespace

Status Principal::CheckPermission(Permission permission, const std::string& wanted) const {
  if (role == Role::kAdmin) return absl::OkStatus();
  if (role == Role::kClusterUser) return authorize(permission, wanted);
  if (role == Role::kUser && wanted == ns) return absl::OkStatus();
  if (role == Role::kMonitor) {
    return absl::PermissionDeniedError("this token is for reading /metrics, and nothing else");
  }
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

StatusOr<bool> Principal::CanSee(const std::string& wanted) const {
  Status readable = CheckRead(wanted);
  if (readable.ok() || absl::IsPermissionDenied(readable)) return readable.ok();
  return readable;
}

Status Principal::CheckAdmin(const std::string& what) const {
  if (role == Role::kAdmin) return absl::OkStatus();
  return absl::PermissionDeniedError(what + " takes an administrator's token");
}

Status Principal::CheckReadMetrics() const {
  if (role == Role::kClusterUser) return authorize_metrics();
  if (role == Role::kMonitor) return absl::OkStatus();
  return CheckAdmin("reading the metrics of all namespaces");
}

v1::Actor Principal::Actor() const {
  v1::Actor actor;
  actor.set_name(name);
  actor.set_door(listener);
  return actor;
}

StatusOr<Tokens> Tokens::Load(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) RETURN_IF_ERROR(Create(path));
  Tokens tokens;
  tokens.path_ = path;
  RETURN_IF_ERROR(tokens.Reload());
  return tokens;
}

Status Tokens::Reload() {
  ASSIGN_OR_RETURN(Known known, Read(path_));
  const MutexLock lock(shared_->mutex);
  shared_->known = std::move(known);
  return absl::OkStatus();
}

StatusOr<Tokens::Known> Tokens::Read(const std::string& path) {
  RETURN_IF_ERROR(CheckMode(path));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  Known known;
  std::map<std::string, int> lines;  // of each token
  bool has_admin = false;
  int number = 0;
  for (const auto line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::string place = absl::StrCat(path, ":", number);
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') continue;
    RETURN_IF_ERROR(CheckToken(words.back(), place));
    auto principal = PrincipalOf(words, has_admin);
    if (!principal.ok()) return Prefix(place, principal.status());
    const auto [other, fresh] = known.emplace(Digest(words.back()), *principal);
    if (!fresh && (other->second.role != principal->role || other->second.ns != principal->ns)) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": this token stands in line ", lines[words.back()],
                       ", too: give each namespace and the administrator one of its own"));
    }
    has_admin = has_admin || principal->role == Principal::Role::kAdmin;
    lines.emplace(words.back(), number);
  }
  if (has_admin) return known;
  return absl::InvalidArgumentError(path + " has no administrator's token: a line of its own");
}

std::optional<Principal> Tokens::Find(const std::string& token) const {
  const std::string digest = Digest(token);
  const MutexLock lock(shared_->mutex);
  const auto found = shared_->known.find(digest);
  return found == shared_->known.end() ? std::nullopt : std::optional(found->second);
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
  if (const auto known = Find(token)) return *known;
  if (IsTrialToken(token)) {
    return Principal{
        .role = Principal::Role::kTrial, .token = absl::HexStringToBytes(token), .name = "a trial"};
  }
  if (introspect_token_) return introspect_token_(token, from);
  return absl::UnauthenticatedError(
      "this token is unknown: ask the administrator for one (the "
      "server reads its token file as it starts, and on SIGHUP)");
}

bool Tokens::MustAsk(const std::string& authorization) const {
  const std::string token = TokenOf(authorization);
  return introspect_token_ && !IsTrialToken(token) && !Find(token);
}

v1::Rights MakeRights(v1::Rights::Audience audience, Permission permission) {
  v1::Rights rights;
  rights.set_audience(audience);
  rights.set_permission(permission);
  return rights;
}

v1::Rights RightsOf(const std::string& method) {
  if (IsOpen(method)) return MakeRights(v1::Rights::ANYONE);
  const auto* found = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
      absl::StrReplaceAll(method, {{"/", "."}}));
  return found == nullptr ? v1::Rights() : found->options().GetExtension(v1::rights);
}

Status CheckMethodAccess(const Principal& principal, const v1::Rights& rights) {
  const v1::Rights::Audience audience = rights.audience();
  if (audience == v1::Rights::NO_CALLER) {
    return absl::PermissionDeniedError("nothing says who may call this: it is refused to everyone");
  }
  const bool monitor = principal.role == Principal::Role::kMonitor;
  if (monitor && audience != v1::Rights::ANYONE) {
    return audience == v1::Rights::METRICS ? absl::OkStatus() : principal.CheckRead("");
  }
  if (principal.role != Principal::Role::kTrial) return absl::OkStatus();
  if (audience == v1::Rights::ANYONE || audience == v1::Rights::TRIALS ||
      audience == v1::Rights::PODS) {
    return absl::OkStatus();
  }
  return principal.CheckRead("");  // it says what a trial may do
}

Status CheckAccess(const Principal& principal, const v1::Rights& rights, const std::string& ns) {
  RETURN_IF_ERROR(CheckMethodAccess(principal, rights));
  const v1::Rights::Audience audience = rights.audience();
  if (audience == v1::Rights::METRICS) return principal.CheckReadMetrics();
  const bool here = audience == v1::Rights::NAMESPACE || audience == v1::Rights::TRIALS;
  if (!here || principal.role == Principal::Role::kTrial) return absl::OkStatus();
  return principal.CheckPermission(rights.permission(), ns);
}

}  // namespace shirabe::service
