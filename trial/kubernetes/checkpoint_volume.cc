#include "trial/kubernetes/checkpoint_volume.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/volume_jobs.h"

namespace shirabe::trial {
namespace {

constexpr char kField[] = "spec.shirabe.checkpoint.volume.claim";

std::vector<std::string> ModesOf(const Json& claim) {
  std::vector<std::string> modes;
  for (const Json& mode : Items(At(claim, {"spec", "accessModes"}))) modes.push_back(Text(mode));
  return modes;
}

bool Has(const std::vector<std::string>& modes, const char* mode) {
  for (const std::string& one : modes) {
    if (one == mode) return true;
  }
  return false;
}

Status CheckModes(const std::vector<std::string>& modes, const std::string& claim, int parallel) {
  if (Has(modes, "ReadWriteMany")) return absl::OkStatus();
  const std::string is =
      absl::StrCat(kField, ": \"", claim, "\" is ", absl::StrJoin(modes, " and "));
  if (!Has(modes, "ReadWriteOnce") && !Has(modes, "ReadWriteOncePod")) {
    return absl::InvalidArgumentError(
        absl::StrCat(is, ", so that no trial can save there: name a claim that is ReadWriteMany, ",
                     "or give volume.size for a claim of its own for each trial"));
  }
  if (parallel <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      is, ", which one ", Has(modes, "ReadWriteOnce") ? "node" : "pod",
      " at a time can mount, and spec.parallelTrialCount is ", parallel,
      ": name a claim that is ReadWriteMany, give volume.size in place of ",
      "volume.claim for a claim of its own for each trial, or set ", "parallelTrialCount: 1"));
}

}  // namespace

Status CheckSharedClaim(kube::Client& client, const ExperimentKey& experiment,
                        const v1::ExperimentSpec& spec) {
  const std::string& name = spec.shirabe().checkpoint().volume().claim();
  if (name.empty()) return absl::OkStatus();
  const auto claim = client.Get({Claims(), experiment.ns, name});
  if (absl::IsNotFound(claim.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        kField, ": namespace ", experiment.ns, " has no PersistentVolumeClaim \"", name,
        "\", and trials wait until it has one: create it with accessModes: [ReadWriteMany], or ",
        "give volume.size in place of volume.claim for a claim of its own for each trial"));
  }
  RETURN_IF_ERROR(claim.status());
  if (IsDeleting(*claim)) {
    return absl::FailedPreconditionError(absl::StrCat(
        kField, ": PersistentVolumeClaim ", experiment.ns, "/", name,
        " is being deleted, and trials wait until there is another: create it, or name one"));
  }
  return CheckModes(ModesOf(*claim), name, spec.parallel_trial_count());
}

Status StartCleaner(kube::Client& client, const Json& cleaner) {
  const auto made = client.Create(Jobs(), cleaner);
  if (made.ok() || absl::IsNotFound(made.status())) return absl::OkStatus();
  if (!absl::IsAlreadyExists(made.status())) {
    const bool going = absl::StrContains(Message(made.status()), "is being terminated");
    return going ? absl::OkStatus() : made.status();
  }
  const kube::Ref ref{Jobs(), NamespaceOf(cleaner), NameOf(cleaner)};
  const auto there = client.Get(ref);
  if (absl::IsNotFound(there.status())) return absl::UnavailableError("it has just been deleted");
  RETURN_IF_ERROR(there.status());
  if (!HasEnded(*there) && !IsDeleting(*there)) return absl::OkStatus();
  // Of an earlier experiment of this name.
  RETURN_IF_ERROR(DeleteObject(client, ref, UidOf(*there)));
  return absl::UnavailableError("an earlier Job " + ref.name + " makes room for it");
}

StatusOr<bool> RunPruner(kube::Client& client, const Json& pruner) {
  const kube::Ref ref{Jobs(), NamespaceOf(pruner), NameOf(pruner)};
  const auto there = client.Get(ref);
  if (absl::IsNotFound(there.status())) {
    const Status made = client.Create(Jobs(), pruner).status();
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    return false;
  }
  RETURN_IF_ERROR(there.status());
  if (!HasEnded(*there) || IsDeleting(*there)) return false;
  RETURN_IF_ERROR(DeleteObject(client, ref, UidOf(*there)));
  const auto words = [](const Json& job) {
    const Json& containers = Items(At(job, {"spec", "template", "spec", "containers"}));
    return containers.empty() ? Json() : At(containers[0], "command");
  };
  if (words(*there) != words(pruner)) return false;  // of an earlier process of ours
  if (HasCleaned(*there)) return true;
  return absl::UnavailableError("Job " + ref.namespace_name + "/" + ref.name + " has failed");
}

Status CheckCleaned(kube::Client& client, const ExperimentKey& experiment) {
  const std::string name = CleanerName(experiment);
  const auto job = client.Get({Jobs(), experiment.ns, name});
  if (absl::IsNotFound(job.status())) return absl::OkStatus();
  if (!job.ok()) return absl::UnavailableError(Message(job.status()));
  if (HasCleaned(*job)) return absl::OkStatus();
  if (!HasEnded(*job)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the checkpoints of an earlier experiment of this name are being deleted: Job ",
        experiment.ns, "/", name, " has not ended yet"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the checkpoints of an earlier experiment of this name could not be deleted: see `kubectl ",
      "-n ", experiment.ns, " logs job/", name, "`, delete the folder trials/", experiment.ns, "/",
      experiment.name, " of the volume and then that Job, or rename the experiment"));
}

}  // namespace shirabe::trial
