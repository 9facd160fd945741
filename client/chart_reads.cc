#include "client/chart_reads.h"

#include "absl/strings/str_cat.h"

namespace shirabe::client {

ChartReads::ChartReads(db::Store* store, Clock* clock, NamespaceGuard* namespaces)
    : columns_(store, namespaces),
      summaries_(store, clock, namespaces),
      curves_(store, &columns_),
      capacity_(clock, &summaries_, &columns_) {}

void ChartReads::AddTo(MethodTable& table) {
  table.Add("GetTrialColumns", this, &ChartReads::GetTrialColumns);
  table.Add("GetAttemptColumns", this, &ChartReads::GetAttemptColumns);
  table.Add("GetCurves", this, &ChartReads::GetCurves);
  table.Add("GetSummary", this, &ChartReads::GetSummary);
  table.Add("ListSummaries", this, &ChartReads::ListSummaries);
  table.Add("GetCapacity", this, &ChartReads::GetCapacity);
}

StatusOr<v1::Columns> ChartReads::GetTrialColumns(const v1::ColumnsRequest& request) {
  return ReadColumns(request, ColumnCache::Rows::kTrials);
}

StatusOr<v1::Columns> ChartReads::GetAttemptColumns(const v1::ColumnsRequest& request) {
  return ReadColumns(request, ColumnCache::Rows::kAttempts);
}

StatusOr<v1::Columns> ChartReads::ReadColumns(const v1::ColumnsRequest& request,
                                              ColumnCache::Rows rows) {
  v1::Columns reply;
  RETURN_IF_ERROR(
      columns_.Read(ExperimentKeyOf(request), rows, [&](const ColumnSnapshot& snapshot) -> Status {
        if (request.since() > snapshot.revision) {
          return absl::OutOfRangeError(absl::StrCat("since: revision ", request.since(),
                                                    " is not of this store, which is at ",
                                                    snapshot.revision, ": ask without it"));
        }
        const bool unchanged = request.known() == snapshot.version;
        if (!unchanged) {
          ASSIGN_OR_RETURN(reply, snapshot.table.Read(request));
        }
        reply.set_version(snapshot.version);
        reply.set_revision(snapshot.revision);
        *reply.mutable_created() = snapshot.experiment.metadata().creation_timestamp();
        return absl::OkStatus();
      }));
  return reply;
}

StatusOr<v1::Curves> ChartReads::GetCurves(const v1::CurvesRequest& request) {
  return curves_.Read(request);
}

StatusOr<v1::Summary> ChartReads::GetSummary(const v1::SummaryRequest& request) {
  ASSIGN_OR_RETURN(v1::Summary summary, summaries_.Get(ExperimentKeyOf(request)));
  if (request.known() != summary.version()) return summary;
  v1::Summary unchanged;
  unchanged.set_version(summary.version());
  return unchanged;
}

StatusOr<std::vector<v1::Summary>> ChartReads::ListSummaries(
    const v1::ListSummariesRequest& request) {
  return summaries_.List(request.namespace_());
}

StatusOr<v1::CapacityReport> ChartReads::GetCapacity(const v1::CapacityRequest& request) {
  return capacity_.Read(request);
}

}  // namespace shirabe::client
