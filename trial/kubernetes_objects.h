// What the executor `kubernetes` needs to know of the objects of a cluster: their kinds, how they
// are selected, and what of them is worth keeping in memory. Pure functions.
#pragma once

#include <string>

#include "base/names.h"
#include "kube/client.h"
#include "kube/object.h"
#include "trial/pod_json.h"

namespace shirabe::trial {

// The kinds that are always followed. Others are found by kube::Client::FindResource.
const kube::Resource& Jobs();
const kube::Resource& Pods();
const kube::Resource& Nodes();
const kube::Resource& Events();
const kube::Resource& Claims();

using kube::NameOf;
using kube::NamespaceOf;
using kube::UidOf;
std::string AnnotationOf(const Json& object, const char* name);
bool IsDeleting(const Json& object);

// Selects the objects of an experiment, or of one trial of it.
std::string SelectorOf(const ExperimentKey& experiment, int64_t trial);
// The claims that were made for its trials; they are no attempt's.
std::string ClaimSelectorOf(const ExperimentKey& experiment, int64_t trial);

// A finalizer's place in the list of an object; -1 if it does not carry it.
int FinalizerAt(const Json& object, const std::string& finalizer);
// The patch that removes it, if it still stands in that place.
Json FinalizerPatch(int place, const std::string& finalizer);

// Take away what nobody reads here and what makes copies large.
void TrimPod(Json& pod);
void TrimJob(Json& job);
void TrimNode(Json& node);

// What decides about the pods of a node: whether it is there, ready and not about to go. A
// heartbeat changes nothing of it.
std::string NodeSignature(const Json& node);

}  // namespace shirabe::trial
