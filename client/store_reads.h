// What can be read of a store, by the methods of shirabe.v1.Shirabe: records, changes, logs, who
// owns an experiment. Part of the client over a store (local_client.cc). Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "client/charts/capacity_reader.h"
#include "client/charts/column_cache.h"
#include "client/charts/curve_reader.h"
#include "client/charts/summary_board.h"
#include "client/method_table.h"
#include "client/records/namespace_guard.h"
#include "db/store.h"
#include "trial/file_layout.h"

namespace shirabe::client {

class StoreReads {
 public:
  // All of them outlive it.
  StoreReads(db::Store* store, Clock* clock, const trial::FileLayout* layout,
             NamespaceGuard* namespaces);

  // A lease that has run out, or whose process is gone, is as good as none.
  StatusOr<v1::Text> GetHolder(const v1::ExperimentRef& ref);

  // All of them: this is a client of who has the store.
  StatusOr<v1::CallerRights> GetRights(const v1::RightsRequest& request);

  // Its methods; the table lasts no longer than this.
  void AddTo(MethodTable& table);

 private:
  StatusOr<v1::Experiment> GetExperiment(const v1::ExperimentRef& ref);
  StatusOr<std::vector<v1::Experiment>> ListExperiments(const v1::ExperimentRef& ref);
  StatusOr<v1::Trial> GetTrial(const v1::TrialRef& ref);
  Status ListTrials(const v1::ListTrialsRequest& request, const Sink& sink);
  StatusOr<std::vector<v1::Attempt>> ListAttempts(const v1::ListAttemptsRequest& request);
  StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const v1::TrialRef& ref);
  Status ListObservations(const v1::ListObservationsRequest& request, const Sink& sink);
  StatusOr<std::vector<v1::Event>> ListEvents(const v1::ListEventsRequest& request);
  StatusOr<v1::Revision> AwaitChange(const v1::AwaitChangeRequest& request);
  Status ListChanges(const v1::Revision& after, const Sink& sink);
  StatusOr<v1::LogChunk> ReadLog(const v1::ReadLogRequest& request);

  db::Store* const store_;
  Clock* const clock_;
  const trial::FileLayout* const layout_;
  NamespaceGuard* const namespaces_;
};

// Of who may do everything in the namespace; "" = default.
v1::CallerRights EveryRight(const std::string& ns);

// The methods of shirabe.v1.Shirabe that are for charts (proto/shirabe/v1/charts.proto), over a
// store. Part of the client over a store (client/local_client.cc). Thread-safe.
class ChartReads {
 public:
  // All of them outlive it.
  ChartReads(db::Store* store, Clock* clock, NamespaceGuard* namespaces);

  // Its methods; the table lasts no longer than this.
  void AddTo(MethodTable& table);

 private:
  StatusOr<v1::Columns> GetTrialColumns(const v1::ColumnsRequest& request);
  StatusOr<v1::Columns> GetAttemptColumns(const v1::ColumnsRequest& request);
  StatusOr<v1::Columns> ReadColumns(const v1::ColumnsRequest& request, ColumnCache::Rows rows);
  StatusOr<v1::Curves> GetCurves(const v1::CurvesRequest& request);
  StatusOr<v1::Summary> GetSummary(const v1::SummaryRequest& request);
  StatusOr<std::vector<v1::Summary>> ListSummaries(const v1::ListSummariesRequest& request);
  StatusOr<v1::CapacityReport> GetCapacity(const v1::CapacityRequest& request);

  ColumnCache columns_;
  SummaryBoard summaries_;
  CurveReader curves_;
  CapacityReader capacity_;
};

}  // namespace shirabe::client
