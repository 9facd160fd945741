#include "cmd/server_identity.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/address.h"
#include "base/certificate.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/sorting.h"
#include "kube/json_access.h"

namespace shirabe::cmd {
namespace {

constexpr char kSecret[] = "shirabe-tls";
constexpr absl::Duration kLeft = absl::Hours(24 * 30);
constexpr int kTries = 5;  // when another replica writes at the same time

struct StoredIdentity {
  KeyPair authority;
  KeyPair server;
  std::string version;  // of the Secret
  bool there = false;
};

kube::Resource Secrets() { return {"", "v1", "secrets", "Secret"}; }

std::string Decoded(const kube::Json& secret, const char* key) {
  std::string text;
  return absl::Base64Unescape(Text(secret, {"data", key}), &text) ? text : "";
}

StoredIdentity FromSecret(const kube::Json& secret) {
  return {.authority = {Decoded(secret, "ca.crt"), Decoded(secret, "ca.key")},
          .server = {Decoded(secret, "tls.crt"), Decoded(secret, "tls.key")},
          .version = kube::VersionOf(secret),
          .there = true};
}

kube::Json DataOf(const StoredIdentity& kept) {
  return {{"ca.crt", absl::Base64Escape(kept.authority.certificate)},
          {"ca.key", absl::Base64Escape(kept.authority.key)},
          {"tls.crt", absl::Base64Escape(kept.server.certificate)},
          {"tls.key", absl::Base64Escape(kept.server.key)}};
}

bool IsGood(const StoredIdentity& kept, const IdentityOptions& options) {
  return kept.there && IsGoodFor(kept.server, kept.authority.certificate,
                                 {options.names, options.clock->Now(), kLeft});
}

// Of the authority that is kept, as long as it can be one for another year.
Status Renew(StoredIdentity& kept, const IdentityOptions& options) {
  const absl::Time now = options.clock->Now();
  const auto expiry = ExpiryOf(kept.authority.certificate);
  const bool usable = expiry.ok() && *expiry > now + absl::Hours(24 * 365);
  if (!usable) {
    ASSIGN_OR_RETURN(kept.authority, MakeAuthority("shirabe", now));
  }
  auto issued = IssueCertificate(kept.authority, options.names, now);
  if (!issued.ok() && usable) {
    // What is kept is no pair: make a new one.
    ASSIGN_OR_RETURN(kept.authority, MakeAuthority("shirabe", now));
    issued = IssueCertificate(kept.authority, options.names, now);
  }
  RETURN_IF_ERROR(issued.status());
  kept.server = *issued;
  kept.there = true;
  Log(LogLevel::kInfo, "created a certificate",
      {{"until", absl::FormatTime(ExpiryOf(kept.server.certificate).value_or(now))}});
  return absl::OkStatus();
}

// ---- where it is kept --------------------------------------------------------------------------

Status WriteSecret(const IdentityOptions& options, const StoredIdentity& kept) {
  if (kept.version.empty()) {
    const kube::Json secret = {{"apiVersion", "v1"},
                               {"kind", "Secret"},
                               {"type", "kubernetes.io/tls"},
                               {"metadata",
                                {{"name", kSecret},
                                 {"namespace", options.namespace_name},
                                 {"labels", {{"app.kubernetes.io/part-of", "shirabe"}}}}},
                               {"data", DataOf(kept)}};
    return options.client->Create(Secrets(), secret).status();
  }
  // Only over what was read.
  const kube::Json patch = {{"metadata", {{"resourceVersion", kept.version}}},
                            {"data", DataOf(kept)}};
  return options.client
      ->Patch({Secrets(), options.namespace_name, kSecret}, kube::PatchType::kMerge, patch, "")
      .status();
}

StatusOr<StoredIdentity> FromCluster(const IdentityOptions& options) {
  Status last;
  for (int i = 0; i < kTries; ++i) {
    const auto secret = options.client->Get({Secrets(), options.namespace_name, kSecret});
    if (!secret.ok() && !absl::IsNotFound(secret.status())) return secret.status();
    StoredIdentity kept = secret.ok() ? FromSecret(*secret) : StoredIdentity{};
    if (IsGood(kept, options)) return kept;
    RETURN_IF_ERROR(Renew(kept, options));
    last = WriteSecret(options, kept);
    if (last.ok()) return kept;
    if (!absl::IsAlreadyExists(last) && !absl::IsAborted(last)) return last;
  }
  return last;
}

struct Files {
  std::string folder;
  std::string At(const char* name) const { return folder + "/" + name; }
};

StoredIdentity FromFiles(const Files& files) {
  const auto read = [&](const char* name) { return ReadFile(files.At(name)).value_or(""); };
  StoredIdentity kept{.authority = {read("ca.crt"), read("ca.key")},
                      .server = {read("tls.crt"), read("tls.key")}};
  kept.there = !kept.server.certificate.empty();
  return kept;
}

// Replicas share the home, and write the same at the same time: what another has written is as
// good.
Status WriteShared(const std::string& path, const std::string& contents) {
  if (ReadFile(path).value_or("") == contents) return absl::OkStatus();
  const Status written = WriteFileAtomic(path, contents, true);
  return ReadFile(path).value_or("") == contents ? absl::OkStatus() : written;
}

// Keys are for the owner alone, from their first byte.
Status WriteFiles(const Files& files, const StoredIdentity& kept, bool with_authority) {
  RETURN_IF_ERROR(MakeDirs(files.folder));
  if (chmod(files.folder.c_str(), S_IRWXU) != 0) {
    return ErrnoStatus("cannot keep others out of " + files.folder, errno);
  }
  RETURN_IF_ERROR(WriteShared(files.At("ca.crt"), kept.authority.certificate));
  RETURN_IF_ERROR(WriteShared(files.At("tls.key"), kept.server.key));
  RETURN_IF_ERROR(WriteShared(files.At("tls.crt"), kept.server.certificate));
  if (!with_authority) return absl::OkStatus();
  return WriteShared(files.At("ca.key"), kept.authority.key);
}

}  // namespace

StatusOr<Identity> LoadIdentity(const IdentityOptions& options) {
  const Files files{options.home + "/tls"};
  const bool in_cluster = !options.namespace_name.empty();
  StoredIdentity kept;
  if (in_cluster) {
    ASSIGN_OR_RETURN(kept, FromCluster(options));
  } else {
    kept = FromFiles(files);
    if (!IsGood(kept, options)) RETURN_IF_ERROR(Renew(kept, options));
  }
  RETURN_IF_ERROR(WriteFiles(files, kept, !in_cluster));
  ASSIGN_OR_RETURN(const absl::Time expiry, ExpiryOf(kept.server.certificate));
  return Identity{.files = {.certificate = files.At("tls.crt"), .key = files.At("tls.key")},
                  .ca = kept.authority.certificate,
                  .renew_at = expiry - kLeft};
}

std::vector<std::string> NamesOfServer(const std::string& advertised) {
  std::string host = HostOf(advertised);
  if (absl::StartsWith(host, "[")) host = host.substr(1, host.size() - 2);
  std::vector<std::string> names = {host, "localhost", "127.0.0.1"};
  // A Service is known by shorter names in its own namespace, and by a longer one everywhere.
  const std::vector<std::string> parts = absl::StrSplit(host, '.');
  if (parts.size() == 3 && parts[2] == "svc") {
    names.push_back(absl::StrCat(parts[0], ".", parts[1]));
    names.push_back(parts[0]);
    names.push_back(host + ".cluster.local");
  }
  StableSort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

namespace {

kube::ResourceAttributes RunningPods(const std::string& ns) {
  return {.verb = "create", .group = "batch", .resource = "jobs", .namespace_name = ns};
}

const char* VerbOf(service::Permission act) {
  switch (act) {
    case v1::Rights::READ: return "list";
    case v1::Rights::CREATE: return "create";
    case v1::Rights::CHANGE: return "update";
    default: return "delete";
  }
  return "delete";
}

}  // namespace

service::Tokens::IntrospectToken ClusterUserIntrospection(kube::TokenReviewer* reviewer) {
  return [reviewer](const std::string& token,
                    const std::string& from) -> StatusOr<service::Principal> {
    ASSIGN_OR_RETURN(kube::UserInfo user_info, reviewer->Review(token, from));
    service::Principal principal{.role = service::Principal::Role::kClusterUser,
                                 .name = user_info.name};
    principal.authorize_metrics = [reviewer, user_info] {
      return reviewer->Authorize(user_info, {.verb = "get", .path = "/metrics"});
    };
    principal.authorize = [reviewer, user_info = std::move(user_info)](service::Permission act,
                                                                       const std::string& ns) {
      // The controller runs pods for who creates an experiment, so they must be allowed to.
      if (act == v1::Rights::CREATE)
        RETURN_IF_ERROR(reviewer->Authorize(user_info, RunningPods(ns)));
      return reviewer->Authorize(user_info, {.verb = VerbOf(act),
                                             .group = "kubeflow.org",
                                             .resource = "experiments",
                                             .namespace_name = ns});
    };
    return principal;
  };
}

}  // namespace shirabe::cmd
