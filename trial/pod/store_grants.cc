#include "trial/pod/store_grants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "artifacts/package/code_package.h"
#include "base/file_io.h"
#include "base/sha256.h"
#include "google/protobuf/util/time_util.h"
#include "trial/checkpoint/checkpoint_copy.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/pod/pod_volumes.h"

namespace shirabe::trial {
namespace {

using artifacts::PresignedRequest;

constexpr int64_t kMaxRecordBytes = 1 << 20;

// v1.PodConfig with `resume` alone.
std::string RecordFile(const std::string& dir) { return dir + "/resume.pb"; }

Status Refused(const std::string& what) { return absl::InvalidArgumentError(what); }

bool Puts(v1::StoreAction action) { return action == v1::PUT_OBJECT || action == v1::PUT_PART; }

Status CheckCopied(const v1::GrantRequest& request) {
  const v1::CopiedObject& copy = request.copy();
  const bool lists = request.action() == v1::LIST_OBJECTS;
  if (copy.trial() < 1 || copy.attempt() < 1 || copy.step() < 0) {
    return Refused("a copy is of a trial, an attempt and a step");
  }
  if (!copy.sha256().empty() && (lists || !IsHexSha256(copy.sha256()))) {
    return Refused("a file of a copy is called by its SHA-256");
  }
  if (!request.after().empty() && (!lists || !IsHexSha256(request.after()))) {
    return Refused("a list goes on after a SHA-256");
  }
  if (copy.files() && !lists) return Refused("only lists are of files");
  return absl::OkStatus();
}

}  // namespace

void StoreGrants::SetPolicy(const ExperimentKey& key, const v1::ShirabeSpec& spec) {
  const MutexLock lock(mutex_);
  policies_[key] = {spec.artifacts(), spec.code()};
}

void StoreGrants::Forget(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  policies_.erase(key);
}

StatusOr<StoreGrants::Policy> StoreGrants::PolicyOf(const ExperimentKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = policies_.find(key);
  if (found != policies_.end()) return found->second;
  return absl::UnavailableError("its experiment is not taken up yet; try again");
}

Status StoreGrants::Check(const ExperimentKey& key) const {
  const auto policy = PolicyOf(key);
  if (!policy.ok()) return absl::OkStatus();
  const std::string& copies = policy->artifacts.store();
  const std::string& code = policy->code.store();
  if (copies.empty() && code.empty()) return absl::OkStatus();
  if (stores_ == nullptr) {
    return InvalidField(copies.empty() ? artifacts::kCodeStoreField : artifacts::kCopyStoreField,
                        "no stores are known here: name them with --stores FILE");
  }
  if (!copies.empty()) RETURN_IF_ERROR(stores_->CheckForPods(copies, key.ns));
  if (code.empty()) return absl::OkStatus();
  return stores_->CheckForPods(code, key.ns, artifacts::kCodeStoreField);
}

Status StoreGrants::Record(const AttemptRequest& request) const {
  if (request.cluster.artifacts.store().empty() || request.resume.empty()) return absl::OkStatus();
  v1::PodConfig record;
  for (v1::Checkpoint& one : ResumeCandidates(request)) *record.add_resume() = std::move(one);
  return WriteFileAtomic(RecordFile(layout_->Paths(request.key).dir), record.SerializeAsString());
}

// Without the record, as after the loss of our disk, what its own trial has saved is still its own.
bool StoreGrants::MayRead(const AttemptKey& key, const v1::CopiedObject& copy) const {
  if (copy.trial() == key.trial.number) return copy.attempt() <= key.number;
  const auto bytes = ReadFile(RecordFile(layout_->Paths(key).dir), kMaxRecordBytes);
  v1::PodConfig record;
  if (!bytes.ok() || !record.ParseFromString(*bytes)) return false;
  return std::any_of(record.resume().begin(), record.resume().end(),
                     [&](const v1::Checkpoint& one) {
                       return one.trial() == copy.trial() && one.attempt() == copy.attempt() &&
                              one.step() == copy.step();
                     });
}

bool StoreGrants::Locate(v1::Checkpoint& outputs) const {
  const auto policy = PolicyOf(ExperimentKeyOf(outputs));
  if (!policy.ok() || !policy->artifacts.outputs()) return false;
  const std::string copy = CopyOf(policy->artifacts.prefix(), outputs);
  outputs.set_location(absl::StrCat("store ", policy->artifacts.store(), ": ", copy));
  return true;
}

StatusOr<PresignedRequest> StoreGrants::ForCode(const Policy& policy,
                                                const v1::GrantRequest& request) const {
  if (policy.code.package().empty()) {
    return absl::FailedPreconditionError("its experiment names no code package");
  }
  if (request.action() != v1::READ_OBJECT) return Refused("a code package can only be read");
  ASSIGN_OR_RETURN(const std::string digest, artifacts::DigestOfPackage(policy.code.package()));
  return PresignedRequest{.action = v1::READ_OBJECT,
                          .key = artifacts::PackageKey(policy.code.prefix(), digest)};
}

StatusOr<PresignedRequest> StoreGrants::ForCopy(const Policy& policy, const AttemptKey& key,
                                                const v1::GrantRequest& request) const {
  const v1::CopiedObject& copy = request.copy();
  const bool wanted =
      copy.step() == kOutputsStep ? policy.artifacts.outputs() : policy.artifacts.checkpoints();
  if (!wanted) return absl::FailedPreconditionError("its experiment has no such copies made");
  RETURN_IF_ERROR(CheckCopied(request));
  const bool own = copy.trial() == key.trial.number && copy.attempt() == key.number;
  const bool reads = request.action() == v1::READ_OBJECT && copy.step() != kOutputsStep;
  if (!own && !(reads && MayRead(key, copy))) {
    return Refused("the copy is of another attempt than " + AttemptName(key));
  }
  if (Puts(request.action()) && request.bytes() > kMaxGrantedBytes) {
    return Refused(absl::StrCat("one request puts at most ", kMaxGrantedBytes, " bytes, not ",
                                request.bytes()));
  }
  v1::Checkpoint checkpoint;
  SetKey({{key.trial.experiment, copy.trial()}, copy.attempt()}, checkpoint);
  checkpoint.set_step(copy.step());
  const std::string folder = CopyOf(policy.artifacts.prefix(), checkpoint);
  PresignedRequest presigned{.action = request.action(),
                             .key = folder,
                             .bytes = request.bytes(),
                             .md5 = request.md5(),
                             .upload = request.upload(),
                             .part = request.part()};
  if (request.action() == v1::LIST_OBJECTS) {
    if (copy.files()) presigned.key += kCopiedFiles;
    if (!request.after().empty()) presigned.after = folder + kCopiedFiles + request.after();
  } else if (copy.sha256().empty()) {
    presigned.key += kCopiedManifest;
  } else {
    presigned.key = absl::StrCat(folder, kCopiedFiles, copy.sha256());
  }
  return presigned;
}

StatusOr<v1::GrantReply> StoreGrants::Grant(const AttemptKey& key,
                                            const v1::GrantRequest& request) const {
  ASSIGN_OR_RETURN(const Policy policy, PolicyOf(key.trial.experiment));
  const bool code = request.object_case() == v1::GrantRequest::kCode && request.code();
  if (!code && request.object_case() != v1::GrantRequest::kCopy) {
    return Refused("no object is named");
  }
  ASSIGN_OR_RETURN(const PresignedRequest wanted,
                   code ? ForCode(policy, request) : ForCopy(policy, key, request));
  if (stores_ == nullptr) return absl::FailedPreconditionError("no stores are known here");
  const std::string& named = code ? policy.code.store() : policy.artifacts.store();
  const std::string& ns = key.trial.experiment.ns;
  ASSIGN_OR_RETURN(const auto store, stores_->Find(named, ns));
  if (Puts(request.action())) RETURN_IF_ERROR(stores_->CheckPutsOfPods(named, ns));
  ASSIGN_OR_RETURN(artifacts::PresignedUrl made, store->Presign(wanted, kGrantLifetime));
  v1::GrantReply reply;
  reply.set_url(std::move(made.url));
  for (auto& [name, value] : made.headers) (*reply.mutable_headers())[name] = std::move(value);
  *reply.mutable_lifetime() =
      google::protobuf::util::TimeUtil::SecondsToDuration(absl::ToInt64Seconds(kGrantLifetime));
  reply.set_key(std::move(made.key));
  reply.set_ca(std::move(made.ca));
  return reply;
}

}  // namespace shirabe::trial
