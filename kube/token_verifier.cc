#include "kube/token_verifier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/json_text.h"

namespace shirabe::kube {
namespace {

const Resource kAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};
const Resource kPods{"", "v1", "pods", "Pod"};
constexpr absl::Duration kKeysTtl = absl::Minutes(5);
// Where a key is not known: a new one may just have come.
constexpr absl::Duration kKeysAgain = absl::Seconds(10);
// Where they cannot be read again: known ones are used for so long.
constexpr absl::Duration kKeysAnyway = absl::Hours(1);
// Between the clocks of two machines.
constexpr absl::Duration kSkew = absl::Seconds(60);

Status NotBelieved() { return absl::UnauthenticatedError("this token is not to be believed"); }

Json DecodedJson(const std::string& part) {
  std::string text;
  return absl::WebSafeBase64Unescape(part, &text) ? ReadJsonOrDiscarded(text) : Json();
}

absl::Time TimeOf(const Json& claims, const char* name) {
  const Json& seconds = At(claims, name);
  return seconds.is_number_integer() ? absl::FromUnixSeconds(seconds.get<int64_t>())
                                     : absl::InfinitePast();
}

// A list, or one of them alone.
bool IsFor(const Json& audiences, const std::string& audience) {
  if (audiences.is_string()) return audiences == audience;
  const Json& all = Items(audiences);
  return std::find(all.begin(), all.end(), Json(audience)) != all.end();
}

Json TextList(std::initializer_list<std::string> items) {
  return Json(std::vector<std::string>(items));
}

}  // namespace

TokenVerifier::TokenVerifier(Client* client, Clock* clock, std::string audience,
                             std::string namespace_name)
    : client_(client),
      clock_(clock),
      audience_(std::move(audience)),
      namespace_(std::move(namespace_name)) {}

StatusOr<TokenVerifier::Keys> TokenVerifier::ReadKeys() const {
  Keys keys{.read_at = clock_->Monotonic()};
  ASSIGN_OR_RETURN(const Json about, client_->GetPath("/.well-known/openid-configuration"));
  ASSIGN_OR_RETURN(const Json set, client_->GetPath("/openid/v1/jwks"));
  keys.issuer = Text(about, {"issuer"});
  for (const Json& one : Items(At(set, "keys"))) {
    auto key = JsonWebKey::Parse(one);
    if (key.ok()) keys.all.push_back(*std::move(key));
  }
  if (!keys.issuer.empty() && !keys.all.empty()) return keys;
  return absl::UnavailableError("the API server publishes no keys of its tokens");
}

// One caller reads them, and holds up no other: where the API server is away, that takes seconds.
StatusOr<TokenVerifier::Keys> TokenVerifier::KeysFor(const std::string& id) {
  const absl::Duration now = clock_->Monotonic();
  bool usable = false;  // although they are not as new as they might be
  {
    const MutexLock lock(mutex_);
    const absl::Duration age = now - keys_.read_at;
    const bool known = std::any_of(keys_.all.begin(), keys_.all.end(),
                                   [&](const JsonWebKey& key) { return key.id() == id; });
    if (age < (known ? kKeysTtl : kKeysAgain)) return keys_;
    usable = known && age < kKeysAnyway;
    if (reading_ || now - failed_at_ < kKeysAgain) {
      return usable ? StatusOr<Keys>(keys_) : StatusOr<Keys>(failure_);
    }
    reading_ = true;
    failure_ = absl::UnavailableError("they are just being read: try again");
  }
  StatusOr<Keys> read = ReadKeys();
  const MutexLock lock(mutex_);
  reading_ = false;
  failed_at_ = read.ok() ? -absl::InfiniteDuration() : now;
  if (!read.ok()) failure_ = read.status();
  if (read.ok()) keys_ = *read;
  return read.ok() || !usable ? read : keys_;
}

StatusOr<Json> TokenVerifier::Claims(const std::string& token) {
  const std::vector<std::string> parts = absl::StrSplit(token, '.');
  if (parts.size() != 3) return NotBelieved();
  const Json header = DecodedJson(parts[0]);
  std::string signature;
  if (!absl::WebSafeBase64Unescape(parts[2], &signature)) return NotBelieved();
  const auto keys = KeysFor(Text(header, {"kid"}));
  if (!keys.ok()) {
    return absl::UnavailableError("the keys of the cluster's tokens cannot be read: " +
                                  Message(keys.status()));
  }
  const std::string text = absl::StrCat(parts[0], ".", parts[1]);
  for (const JsonWebKey& key : keys->all) {
    // Which algorithm it is, the key says: a token must not choose one.
    if (key.id() != Text(header, {"kid"}) || key.algorithm() != Text(header, {"alg"})) continue;
    if (!key.HasSigned(text, signature)) continue;
    Json claims = DecodedJson(parts[1]);
    RETURN_IF_ERROR(CheckClaims(claims, keys->issuer));
    return claims;
  }
  return NotBelieved();
}

Status TokenVerifier::CheckClaims(const Json& claims, const std::string& issuer) const {
  const absl::Time now = clock_->Now();
  const bool in_time = TimeOf(claims, "exp") > now - kSkew &&
                       (At(claims, "nbf").is_null() || TimeOf(claims, "nbf") < now + kSkew);
  const bool ours =
      Text(claims, {"iss"}) == issuer && IsFor(At(claims, "aud"), audience_) &&
      (namespace_.empty() || Text(claims, {"kubernetes.io", "namespace"}) == namespace_);
  return in_time && ours ? absl::OkStatus() : NotBelieved();
}

Status TokenVerifier::CheckBound(const Resource& resource, const Json& reference) {
  const auto object = client_->Get({resource, namespace_, Text(reference, {"name"})});
  if (absl::IsNotFound(object.status())) return NotBelieved();
  if (!object.ok()) {
    return absl::UnavailableError("the cluster cannot be asked whose token this is: " +
                                  Message(object.status()));
  }
  const std::string uid = Text(reference, {"uid"});
  return !uid.empty() && UidOf(*object) == uid ? absl::OkStatus() : NotBelieved();
}

StatusOr<UserInfo> TokenVerifier::Verify(const std::string& token) {
  ASSIGN_OR_RETURN(const Json claims, Claims(token));
  const Json& bound = At(claims, "kubernetes.io");
  const Json& account = At(bound, "serviceaccount");
  const std::string name = Text(account, {"name"});
  const std::string user = absl::StrCat("system:serviceaccount:", namespace_, ":", name);
  // Whether a Secret is still there that a token is bound to, we may not see.
  const bool readable = At(bound, "secret").is_null();
  if (name.empty() || Text(claims, {"sub"}) != user || !readable) return NotBelieved();
  RETURN_IF_ERROR(CheckBound(kAccounts, account));
  Json info = {{"username", user},
               {"uid", Text(account, {"uid"})},
               {"groups", TextList({"system:serviceaccounts",
                                    absl::StrCat("system:serviceaccounts:", namespace_),
                                    "system:authenticated"})}};
  const Json& pod = At(bound, "pod");
  if (pod.is_object()) {
    RETURN_IF_ERROR(CheckBound(kPods, pod));
    info["extra"] = {{"authentication.kubernetes.io/pod-name", TextList({Text(pod, {"name"})})},
                     {"authentication.kubernetes.io/pod-uid", TextList({Text(pod, {"uid"})})}};
  }
  return UserInfo{.name = user, .info = std::move(info)};
}

}  // namespace shirabe::kube
