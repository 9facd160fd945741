#include "trial/kubernetes/orphan_finder.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {

bool OrphanFinder::OnTimer(absl::Duration now) {
  if (now < next_) return false;
  const absl::Duration patience = context_.timeouts.orphan;
  next_ = now + patience / 4;
  std::map<AttemptKey, absl::Duration> still;
  std::set<ExperimentKey> unowned;
  for (const AttemptKey& key : context_.view->Attempts()) {
    if (attempts_.Knows(key) || teardowns_.Knows(key)) continue;
    const kube::Ref ref{Jobs(), key.trial.experiment.ns, AttemptName(key)};
    const auto job = context_.view->FindObject(ref);
    const bool stays = !job || IsDeleting(*job) || RecipeOf(*job).retain;
    const bool owned = attempts_.Owns(key.trial.experiment);
    // Nothing of it waits for us, unless its experiment was deleted: that is asked once.
    const bool retained = stays && HeldPods(*context_.view, key).empty();
    if (retained && (owned || asked_.count(key.trial.experiment) > 0)) continue;
    const auto since = orphans_.find(key);
    still[key] = since == orphans_.end() ? now : since->second;
    if (now < still[key] + patience) continue;
    if (owned) {
      Release(key, {.ref = ref, .uid = job ? UidOf(*job) : "", .deleted = stays});
    } else {
      unowned.insert(key.trial.experiment);
    }
  }
  orphans_ = std::move(still);
  asked_.insert(unowned.begin(), unowned.end());
  for (const ExperimentKey& key : unowned) {
    std::error_code error;
    if (!std::filesystem::is_directory(context_.layout->ExperimentDir(key), error)) continue;
    context_.run([this, key] { context_.notify(key); });
  }
  return true;
}

// A start of that name finds the teardown or is known here, whichever comes first.
void OrphanFinder::Release(const AttemptKey& key, const Teardowns::Object& object) {
  teardowns_.Add(key, object);
  if (attempts_.Knows(key)) return teardowns_.Cancel(key);
  Log(LogLevel::kWarning, "released an orphaned pod", {{"attempt", AttemptName(key)}});
  teardowns_.Continue(key);
}

}  // namespace shirabe::trial
