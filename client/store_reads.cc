#include "client/store_reads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process_id.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "client/records/stored_records.h"
#include "client/wire_format.h"
#include "trial/log_file.h"

namespace shirabe::client {
namespace {

constexpr int64_t kTrialsAtOnce = 1024;  // in memory
constexpr size_t kRowsOfBlock = 1000;    // observations in a message
constexpr int64_t kMaxLogBytes = 1 << 20;

}  // namespace

StoreReads::StoreReads(db::Store* store, Clock* clock, const trial::FileLayout* layout,
                       NamespaceGuard* namespaces)
    : store_(store), clock_(clock), layout_(layout), namespaces_(namespaces) {}

void StoreReads::AddTo(MethodTable& table) {
  table.Add("GetExperiment", this, &StoreReads::GetExperiment);
  table.Add("ListExperiments", this, &StoreReads::ListExperiments);
  table.Add("GetTrial", this, &StoreReads::GetTrial);
  table.AddStream<v1::Trial>("ListTrials", this, &StoreReads::ListTrials);
  table.Add("ListAttempts", this, &StoreReads::ListAttempts);
  table.Add("ListCheckpoints", this, &StoreReads::ListCheckpoints);
  table.AddStream<v1::ObservationBlock>("ListObservations", this, &StoreReads::ListObservations);
  table.Add("ListEvents", this, &StoreReads::ListEvents);
  table.Add("AwaitChange", this, &StoreReads::AwaitChange);
  table.AddStream<v1::ChangeRecord>("ListChanges", this, &StoreReads::ListChanges);
  table.Add("GetHolder", this, &StoreReads::GetHolder);
  table.Add("ReadLog", this, &StoreReads::ReadLog);
  table.Add("GetRights", this, &StoreReads::GetRights);
}

namespace {

// Its token is the owner's, as those of other attempts are.
void ClearFollowUpAttempt(v1::Experiment& experiment) {
  if (!experiment.status().shirabe().has_on_success()) return;
  experiment.mutable_status()->mutable_shirabe()->mutable_on_success()->clear_attempt();
}

}  // namespace

StatusOr<v1::Experiment> StoreReads::GetExperiment(const v1::ExperimentRef& ref) {
  auto experiment = OneRecord(store_->GetExperiment(FromWire(ref)));
  if (!experiment.ok()) return experiment;
  RETURN_IF_ERROR(namespaces_->CheckNamespaceExists(*experiment));
  ClearFollowUpAttempt(*experiment);
  return experiment;
}

StatusOr<std::vector<v1::Experiment>> StoreReads::ListExperiments(const v1::ExperimentRef& ref) {
  ASSIGN_OR_RETURN(auto experiments, Records(store_->ListExperiments(ref.namespace_())));
  std::erase_if(experiments,
                [&](const auto& one) { return !namespaces_->CheckNamespaceExists(one).ok(); });
  for (v1::Experiment& experiment : experiments) ClearFollowUpAttempt(experiment);
  return experiments;
}

StatusOr<v1::Trial> StoreReads::GetTrial(const v1::TrialRef& ref) {
  RETURN_IF_ERROR(namespaces_->CheckReadable(ExperimentKeyOf(ref)));
  return OneRecord(store_->GetTrial(FromWire(ref)));
}

Status StoreReads::ListTrials(const v1::ListTrialsRequest& request, const Sink& sink) {
  db::TrialQuery query = FromWire(request);
  RETURN_IF_ERROR(namespaces_->CheckReadable(query.experiment));
  for (int64_t left = query.limit; left != 0;) {
    query.limit = left < 0 ? kTrialsAtOnce : std::min(left, kTrialsAtOnce);
    ASSIGN_OR_RETURN(auto page, store_->ListTrials(query));
    const auto size = static_cast<int64_t>(page.size());
    const bool last = size < query.limit;
    if (!page.empty()) query.after_number = page.back().record.number();
    for (auto& trial : page) RETURN_IF_ERROR(sink(trial.record));
    if (last) break;
    if (left > 0) left -= size;
  }
  return absl::OkStatus();
}

StatusOr<std::vector<v1::Attempt>> StoreReads::ListAttempts(
    const v1::ListAttemptsRequest& request) {
  const db::AttemptQuery query = FromWire(request);
  RETURN_IF_ERROR(namespaces_->CheckReadable(query.experiment));
  auto attempts = Records(store_->ListAttempts(query));
  if (!attempts.ok()) return attempts;
  for (v1::Attempt& attempt : *attempts) attempt.clear_token();
  return attempts;
}

StatusOr<std::vector<v1::Checkpoint>> StoreReads::ListCheckpoints(const v1::TrialRef& ref) {
  RETURN_IF_ERROR(namespaces_->CheckReadable(ExperimentKeyOf(ref)));
  return Records(store_->ListCheckpoints(FromWire(ref)));
}

Status StoreReads::ListObservations(const v1::ListObservationsRequest& request, const Sink& sink) {
  const db::ObservationQuery query = FromWire(request);
  RETURN_IF_ERROR(namespaces_->CheckReadable(query.trial.experiment));
  ASSIGN_OR_RETURN(const auto rows, store_->ListObservations(query));
  for (size_t begin = 0; begin < rows.size(); begin += kRowsOfBlock) {
    v1::ObservationBlock block;
    for (size_t i = begin; i < std::min(rows.size(), begin + kRowsOfBlock); ++i) {
      *block.add_rows() = ToWire(rows[i]);
    }
    RETURN_IF_ERROR(sink(block));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<v1::Event>> StoreReads::ListEvents(const v1::ListEventsRequest& request) {
  const db::EventQuery query = FromWire(request);
  RETURN_IF_ERROR(namespaces_->CheckReadable(query.experiment));
  return store_->ListEvents(query);
}

StatusOr<v1::Revision> StoreReads::AwaitChange(const v1::AwaitChangeRequest& request) {
  v1::Revision revision;
  ASSIGN_OR_RETURN(const int64_t now,
                   store_->AwaitChange(request.after(), FromWire(request.patience())));
  revision.set_revision(now);
  return revision;
}

Status StoreReads::ListChanges(const v1::Revision& after, const Sink& sink) {
  ASSIGN_OR_RETURN(const auto changes, store_->Changes(after.revision(), -1));
  for (const db::Change& change : changes) {
    v1::ChangeRecord record = ToWire(change);
    RETURN_IF_ERROR(sink(record));
  }
  return absl::OkStatus();
}

StatusOr<v1::Text> StoreReads::GetHolder(const v1::ExperimentRef& ref) {
  RETURN_IF_ERROR(namespaces_->CheckReadable(FromWire(ref)));
  ASSIGN_OR_RETURN(const v1::Lease lease, store_->GetLease(FromWire(ref)));
  v1::Text holder;
  if (lease.holder().empty() || FromProto(lease.expiry()) <= clock_->Now()) return holder;
  const auto process = ParseProcessId(lease.holder());
  if (!process || MayBeAlive(*process)) holder.set_text(HolderWords(lease.holder()));
  return holder;
}

StatusOr<v1::LogChunk> StoreReads::ReadLog(const v1::ReadLogRequest& request) {
  const AttemptKey key{FromWire(request.trial()), request.attempt()};
  RETURN_IF_ERROR(ValidateKey(key));
  if (request.offset() < 0) return absl::InvalidArgumentError("offset must be at least 0");
  RETURN_IF_ERROR(namespaces_->CheckReadable(key.trial.experiment));
  const std::string path = layout_->Paths(key).log;
  const int64_t most = std::clamp<int64_t>(request.max_bytes(), 1, kMaxLogBytes);
  ASSIGN_OR_RETURN(trial::LogPiece piece,
                   trial::ReadLog(path, request.offset(), most, layout_->home()));
  v1::LogChunk chunk;
  chunk.set_text(std::move(piece.text));
  chunk.set_next(piece.next);
  chunk.set_at_end(piece.at_end);
  chunk.set_place(path);
  return chunk;
}

StatusOr<v1::CallerRights> StoreReads::GetRights(const v1::RightsRequest& request) {
  return EveryRight(request.namespace_());
}

v1::CallerRights EveryRight(const std::string& ns) {
  v1::CallerRights rights;
  rights.set_namespace_(ns.empty() ? "default" : ns);
  rights.set_read(true);
  rights.set_create(true);
  rights.set_change(true);
  rights.set_delete_(true);
  return rights;
}

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
