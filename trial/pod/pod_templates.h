// The pod templates of an object of any kind: a Pod is one, a Job has one, a training operator's
// object one for each role, wherever they lie. Used by trial/pod/pod_build.cc and its neighbours,
// and by trial/kubernetes/volume_jobs.cc. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text/json_fields.h"

namespace shirabe::trial {

constexpr char kTrialSpecPath[] = "spec.trialTemplate.trialSpec";

struct PodTemplate {
  Json* root = nullptr;   // has metadata and spec; lies in the object
  Json* owner = nullptr;  // what holds it as `template`; null for a Pod
  std::string path;       // of root in the experiment
  int64_t pods = 1;       // that will be made of it

  Json& spec() const { return (*root)["spec"]; }
  std::string ContainerPath(size_t index) const;
};

// In the order of their paths. They point into the object: nothing above them may move.
std::vector<PodTemplate> FindTemplates(Json& object);

// Index of the container of that name; -1 if it has none.
int IndexOfContainer(const PodTemplate& from, const std::string& name);

}  // namespace shirabe::trial
