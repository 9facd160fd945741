// What a model makes of the trials in a store, by the methods of proto/shirabe/v1/analysis.proto:
// importances, ablation, partial dependence. Part of the client over a store (local_client.cc). It
// reads the trials, and computes in the thread that asks; the mathematics is that of
// suggestion/analysis. Thread-safe.
#pragma once

#include "client/method_table.h"
#include "client/records/namespace_guard.h"
#include "db/store.h"

namespace shirabe::client {

class StoreAnalyses {
 public:
  // Both outlive it.
  StoreAnalyses(db::Store* store, NamespaceGuard* namespaces)
      : store_(store), namespaces_(namespaces) {}

  // Its methods; the table lasts no longer than this.
  void AddTo(MethodTable& table);

 private:
  struct Subject;

  StatusOr<Subject> Read(const ExperimentKey& key);
  StatusOr<v1::Importance> GetImportance(const v1::ImportanceRequest& request);
  StatusOr<v1::Ablation> GetAblation(const v1::AblationRequest& request);
  StatusOr<v1::PartialDependence> GetPartialDependence(const v1::PartialDependenceRequest& request);

  db::Store* const store_;
  NamespaceGuard* const namespaces_;
};

}  // namespace shirabe::client
