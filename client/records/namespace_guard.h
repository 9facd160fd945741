// Whose records are: of a namespace's uid, where there is a cluster that knows it, and not of its
// name, which may be given to another one. An experiment of a namespace that is gone is as if it
// were not there, and its owner is asked to delete it once it is seen. Records without a uid were
// made where no cluster was, and are of the name. Used by the client over a store; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"

namespace shirabe::client {

// The uid that a namespace has now; kNotFound for a name that nothing has.
using NamespaceUid = std::function<StatusOr<std::string>(const std::string& ns)>;

class NamespaceGuard {
 public:
  // The first two outlive it; `notify` is called once a deletion was asked for.
  NamespaceGuard(db::Store* store, Clock* clock, std::function<void(const ExperimentKey&)> notify)
      : store_(store), clock_(clock), notify_(std::move(notify)) {}

  // Before anything else is called.
  void Set(NamespaceUid uid) { uid_ = std::move(uid); }
  // Of the namespace as it is now; "" where that is not known.
  std::string UidOf(const std::string& ns) const { return uid_ ? uid_(ns).value_or("") : ""; }

  // Whether a namespace that had this uid is gone. Where the cluster cannot be asked it is not.
  bool IsGone(const std::string& ns, const std::string& uid) const;

  // kNotFound for an experiment whose namespace is gone.
  Status CheckNamespaceExists(const v1::Experiment& experiment);
  // The same by name. OK where there is none: the read that follows finds that out.
  Status CheckReadable(const ExperimentKey& key);
  // kAlreadyExists while one of an earlier namespace of this name is being removed.
  Status CheckNotBeingRemoved(const ExperimentKey& key);

 private:
  void Remove(const ExperimentKey& key, const std::string& uid);

  db::Store* const store_;
  Clock* const clock_;
  const std::function<void(const ExperimentKey&)> notify_;
  NamespaceUid uid_;  // none = there are no namespaces but names
  Mutex mutex_;
  // To be deleted, and when.
  std::map<ExperimentKey, absl::Duration> asked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::client
