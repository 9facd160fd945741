// What is done to a cluster for an attempt: make its object, end its pods, let go of what is left.
// Each may be done twice, by any process, after any crash. They take as long as calls of the API
// server take, so callers hold no lock meanwhile. Used by the executor `kubernetes`; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/text/json_fields.h"
#include "kube/api_client.h"
#include "kube/json_access.h"

namespace shirabe::trial {

// What the executor `kubernetes` needs to know of the objects of a cluster: their kinds, how they
// are selected, and what of them is worth keeping in memory. Pure functions.

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

// Take away what is not read here and what makes copies large.
void TrimPod(Json& pod);
void TrimJob(Json& job);
void TrimNode(Json& node);

// What decides about the pods of a node: whether it is there, ready and not about to go. A
// heartbeat changes nothing of it.
std::string NodeSignature(const Json& node);

// The object as it stands once it exists: made now, or before if its id is `id`; kAlreadyExists if
// it is another one's. Other errors are those that Executor::Start may return: kResourceExhausted
// where quota, admission or rights stand in the way, in the server's words, and nothing was made;
// with kAccountRefused (trial/start_error.h) where the namespace's account lacks the right;
// kInvalidArgument where the server refuses the object itself; kUnavailable else.
StatusOr<Json> CreateOrAdopt(kube::Client& client, const kube::Resource& resource,
                             const Json& object, const std::string& id);

// An error of a write of the API server, as Executor::Start may return it: see above.
Status AsStartError(const Status& status);

// The kind that a trial's template names, as the cluster has it. kUnimplemented for one that it has
// not, with what to install; kInvalidArgument for one that is of no namespace.
StatusOr<kube::Resource> TrialKind(kube::Client& client, const std::string& api_version,
                                   const std::string& kind);

// Ends a pod after `grace`. One that is gone is fine.
Status EndPod(kube::Client& client, const Json& pod, absl::Duration grace);

// Takes our finalizer away from a pod, which then goes if it is deleted.
Status RemoveLogFinalizer(kube::Client& client, Json pod);

// Tells the operator of an object to end its pods, and to make no others.
Status SuspendObject(kube::Client& client, const kube::Ref& ref, const std::string& uid);

// Kueue decides what runs, and what gives way to others, where an object is in one of its queues
// (the label kueue.x-k8s.io/queue-name). The annotation kueue.x-k8s.io/priority-boost of the
// object's Workload adds to its priority (KEP-7990).
bool IsQueued(const Json& object);
// Of an attempt that has just saved, and so loses least if it is the one: one below others of its
// priority, but one above that for each attempt that its trial has lost before, at most five.
int PriorityBoost(int32_t attempt);
// OK as well where there is no such Workload, or no Kueue that has them.
Status PublishBoost(kube::Client& client, const Json& object, int boost);

// Deletes an object and, in the background, its pods. `uid` "" = whichever has the name.
Status DeleteObject(kube::Client& client, const kube::Ref& ref, const std::string& uid);

// The same for several Jobs of a namespace, by the ids of their attempts, in one request.
Status DeleteJobsOf(kube::Client& client, const std::string& ns,
                    const std::vector<std::string>& ids);

// What the object of a trial is, as its template says.
struct ObjectKind {
  std::string api_version;
  std::string kind;  // "" = a Job or a Pod
};

// Deletes all Jobs, pods, objects of the kind `other` and claims of an experiment, or of one trial.
Status DeleteAllOf(kube::Client& client, const TrialKey& trial, const ObjectKind& other);

// What a container has printed, at most its last `limit` bytes.
StatusOr<std::string> ReadLogOf(kube::Client& client, const Json& pod, const std::string& container,
                                int64_t limit);

}  // namespace shirabe::trial
