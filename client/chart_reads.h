// The methods of shirabe.v1.Shirabe that are for charts (proto/shirabe/v1/charts.proto), over a
// store. Part of the client over a store (client/local_client.cc). Thread-safe.
#pragma once

#include <vector>

#include "base/clock.h"
#include "client/charts/capacity_reader.h"
#include "client/charts/column_cache.h"
#include "client/charts/curve_reader.h"
#include "client/charts/summary_board.h"
#include "client/method_table.h"
#include "client/records/namespace_guard.h"
#include "db/store.h"

namespace shirabe::client {

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
