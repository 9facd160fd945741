// Why an attempt is not running yet, in words with the next step to take, from all that the cluster
// says: conditions and container states of its pod, the Job, and their events. And whether it ever
// will: an image that does not exist is given up after a while, a full cluster never. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/text/json_fields.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {

// When the event was seen last; the infinite past if it does not say.
absl::Time TimeOfEvent(const Json& event);

struct WaitingFacts {
  const Json* object = nullptr;  // the Job, or what else was created
  const Json* pod = nullptr;     // the primary one; nullptr = there is none yet
  std::vector<Json> events;      // of both, in any order; may be empty
  std::string primary;           // the container
};

struct PodWaiting {
  std::string
      reason;  // CamelCase, for a condition: Unschedulable, ImagePullBackOff, QuotaExceeded…
  std::string text;  // what is wrong, as the cluster says it, and what to do about it
  // The experiment or the cluster must be changed before it can start.
  bool never_starts = false;
  // Waiting for this reason so long, the attempt is closed as NEVER_RAN, which costs the trial
  // nothing, and tried again. Infinite where patience is right.
  absl::Duration give_up = absl::InfiniteDuration();
};

// nullopt once the primary container runs or has ended, and while nothing is wrong: it is being
// scheduled, or its image is being pulled, as it should.
std::optional<PodWaiting> WhyWaiting(const WaitingFacts& facts);

// What takes its time though nothing is wrong: volumes are attached and mounted, an image is
// pulled. Worth a word once it has lasted a while. nullopt before there is a node, and once the
// primary container runs.
std::optional<PodWaiting> WhyPreparing(const WaitingFacts& facts);

// Where it has pods, but none whose program counts: they lack the labels of primaryPodLabels, or a
// container of that name. Worth a word once it has lasted a while, since an operator may make that
// pod last. nullopt where it has no pods.
std::optional<PodWaiting> WhyNoPrimary(const std::vector<Json>& pods, const AttemptRecipe& recipe);

// The same for an object that the API server refused to create: quota, admission webhooks, RBAC.
PodWaiting WhyRefused(const std::string& server_words);

}  // namespace shirabe::trial
