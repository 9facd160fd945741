#include "service/auth.h"

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
#include "base/file.h"
#include "base/rng.h"
#include "trial/sha256.h"

namespace shirabe::service {
namespace {

constexpr int kTokenBytes = 24;
constexpr size_t kLeastToken = 16;  // characters: what is shorter can be guessed
constexpr size_t kTrialToken = 32;  // of an attempt's token, 16 random bytes in hexadecimal

// Looking a token up by its digest takes as long for a wrong one as for a right one.
std::string Digest(const std::string& token) { return trial::HexSha256(token); }

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
  if (token.size() >= kLeastToken) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place, ": a token of ", token.size(),
                                                 " characters can be guessed; give it at least ",
                                                 kLeastToken));
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

Status Principal::May(Act act, const std::string& wanted) const {
  if (role == Role::kAdmin) return absl::OkStatus();
  if (role == Role::kPerson) return judge(act, wanted);
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
  if (role == Role::kPerson) return judge_metrics();
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
  if (introduce_) return introduce_(token, from);
  return absl::UnauthenticatedError("this token is unknown: ask the administrator for one");
}

bool Tokens::MustAsk(const std::string& authorization) const {
  const std::string token = TokenOf(authorization);
  return introduce_ && !IsTrialToken(token) && !FindKnown(token, admin_, users_);
}

}  // namespace shirabe::service
