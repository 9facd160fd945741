#include "db/commit_rules.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/sorting.h"
#include "base/timestamp.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace shirabe::db {
namespace {

constexpr char kType[] = "shirabe.dev/lease-lost";

}  // namespace

Status LeaseLostError(const std::string& message) {
  Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kType, absl::Cord());
  return status;
}

bool IsLeaseLost(const Status& status) { return status.GetPayload(kType).has_value(); }

namespace {

using google::protobuf::FieldDescriptor;
using Proto = google::protobuf::Message;

ExperimentKey KeyOf(const v1::Experiment& experiment) {
  return {experiment.metadata().namespace_(), experiment.metadata().name()};
}

template <class Record>
ExperimentKey KeyOf(const Record& record) {
  return ExperimentKeyOf(record);
}

// The part of a record's key that follows its experiment. All of it must be positive but the step.
int64_t NumberOf(const v1::Trial& trial) { return trial.number(); }
std::tuple<int64_t, int32_t> NumberOf(const v1::Attempt& attempt) {
  return {attempt.trial(), attempt.number()};
}
std::tuple<int64_t, int32_t, int64_t> NumberOf(const v1::Checkpoint& checkpoint) {
  return {checkpoint.trial(), checkpoint.attempt(), checkpoint.step()};
}

bool IsNumbered(const v1::Trial& trial) { return trial.number() >= 1; }
bool IsNumbered(const v1::Attempt& attempt) {
  return attempt.trial() >= 1 && attempt.number() >= 1;
}
bool IsNumbered(const v1::Checkpoint& checkpoint) {
  return checkpoint.trial() >= 1 && checkpoint.attempt() >= 1;
}

bool IsUtf8(const std::string& text) {
  return google::protobuf::internal::IsStructurallyValidUTF8(text.data(),
                                                             static_cast<int>(text.size()));
}

std::string BadText(const Proto& message, const FieldDescriptor& field);

// The name of a text field that is not UTF-8; "" if there is none. Parsing refuses a message with
// such a field, by this very test, but serialising does not.
std::string BadText(const Proto& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    std::string bad = BadText(message, *field);
    if (!bad.empty()) return bad;
  }
  return "";
}

std::string BadText(const Proto& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const bool text = field.type() == FieldDescriptor::TYPE_STRING;
  if (!text && field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return "";
  const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  for (int i = 0; i < size; ++i) {
    if (!text) {
      const std::string bad =
          BadText(field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, i)
                                      : reflection.GetMessage(message, &field));
      if (!bad.empty()) return absl::StrCat(field.name(), ".", bad);
      continue;
    }
    std::string scratch;
    const std::string& value =
        field.is_repeated() ? reflection.GetRepeatedStringReference(message, &field, i, &scratch)
                            : reflection.GetStringReference(message, &field, &scratch);
    if (!IsUtf8(value)) return field.name();
  }
  return "";
}

template <class Record>
Status CheckText(const Record& record) {
  return CheckUtf8(record, Describe(record));
}

template <class Record>
Status CheckRecord(const Record& record, const ExperimentKey& key) {
  const ExperimentKey found = KeyOf(record);
  if (found == key) return CheckText(record);
  return absl::InvalidArgumentError(absl::StrCat(Describe(record), " belongs to experiment ",
                                                 ToString(found), ", but the batch to ",
                                                 ToString(key), ": commit them separately"));
}

template <class Record>
Status CheckRecords(const std::vector<Record>& records, const ExperimentKey& key) {
  for (const Record& record : records) RETURN_IF_ERROR(CheckRecord(record, key));
  return absl::OkStatus();
}

template <class Record>
Status CheckNumbers(const std::vector<Write<Record>>& writes) {
  std::vector<decltype(NumberOf(writes[0].record))> numbers;
  for (const Write<Record>& write : writes) {
    if (!IsNumbered(write.record)) {
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(write.record), ": trials and attempts are numbered from 1"));
    }
    numbers.push_back(NumberOf(write.record));
  }
  StableSort(numbers);
  if (std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the batch writes one record twice, beside ",
                                                 Describe(writes[0].record), ": put each once"));
}

template <class Record>
Status CheckWrites(const std::vector<Write<Record>>& writes, const ExperimentKey& key) {
  for (const Write<Record>& write : writes) RETURN_IF_ERROR(CheckRecord(write.record, key));
  return CheckNumbers(writes);
}

Status CheckObservations(const Batch& batch) {
  for (const StoredObservation& row : batch.observations) {
    if (row.metric.empty() || row.trial < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an observation of ", TrialName({batch.experiment, row.trial}), " at step ", row.step,
          " needs a trial number from 1 and the name of a metric, not \"", row.metric, "\""));
    }
  }
  return absl::OkStatus();
}

// What only the holder of the lease may write, as is the deletion.
bool WritesRecords(const Batch& batch) {
  return batch.put || !batch.trials.empty() || !batch.attempts.empty() ||
         !batch.checkpoints.empty() || !batch.observations.empty() || !batch.supersede.empty() ||
         !batch.intents_done.empty() || !batch.fences.empty();
}

bool WritesAnything(const Batch& batch) {
  return WritesRecords(batch) || !batch.events.empty() || !batch.intents.empty();
}

}  // namespace

Status CheckUtf8(const Proto& message, const std::string& what) {
  const std::string field = BadText(message);
  if (field.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": the text in ", field,
                   " is not UTF-8 and could not be read back: replace the bytes that are not"));
}

Status ValidateBatch(const Batch& batch) {
  if (batch.delete_experiment && WritesAnything(batch)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch that deletes experiment ", ToString(batch.experiment), " must hold nothing else"));
  }
  if (batch.put) RETURN_IF_ERROR(CheckRecord(batch.put->record, batch.experiment));
  RETURN_IF_ERROR(CheckWrites(batch.trials, batch.experiment));
  RETURN_IF_ERROR(CheckWrites(batch.attempts, batch.experiment));
  RETURN_IF_ERROR(CheckWrites(batch.checkpoints, batch.experiment));
  RETURN_IF_ERROR(CheckRecords(batch.events, batch.experiment));
  RETURN_IF_ERROR(CheckRecords(batch.intents, batch.experiment));
  return CheckObservations(batch);
}

bool Creates(const Batch& batch) { return batch.put && batch.put->expected == 0; }

Status CheckEpoch(const Batch& batch, const v1::Lease& lease) {
  if (!WritesRecords(batch) && !batch.delete_experiment) return absl::OkStatus();
  if (batch.epoch.value_or(0) == lease.epoch()) return absl::OkStatus();
  const std::string holder =
      lease.holder().empty() ? "nobody" : absl::StrCat("\"", lease.holder(), "\"");
  const std::string writer =
      batch.epoch ? absl::StrCat("under epoch ", *batch.epoch) : "without a lease";
  return LeaseLostError(absl::StrCat(
      "lease lost: experiment ", ToString(batch.experiment), " is now held by ", holder, " (epoch ",
      lease.epoch(), "), and this write was made ", writer, ": acquire the lease first"));
}

Status CheckClaim(const LeaseClaim& claim, const v1::Lease& lease) {
  Batch deletion{.experiment = claim.experiment, .epoch = claim.epoch};
  deletion.delete_experiment = true;
  return CheckEpoch(deletion, lease);
}

StatusOr<v1::Lease> GrantLease(const LeaseRequest& request, const v1::Lease& lease) {
  CHECK(!request.holder.empty());
  const bool free = lease.holder().empty();
  const bool ours = !free && lease.holder() == request.holder;
  const bool expired = request.now >= FromProto(lease.expiry());
  const bool dead = request.dead_epoch == lease.epoch();
  if (!free && !ours && !expired && !dead) {
    return absl::AlreadyExistsError(
        absl::StrCat("experiment ", ToString(request.experiment), " is held by \"", lease.holder(),
                     "\" (epoch ", lease.epoch(), ") until ", FormatTime(lease.expiry()),
                     ": stop that process, or wait until its lease has expired"));
  }
  v1::Lease granted = lease;
  granted.set_holder(request.holder);
  if (!ours) granted.set_epoch(lease.epoch() + 1);
  *granted.mutable_expiry() = ToProto(request.now + request.ttl);
  return granted;
}

v1::Lease LeaseUntil(v1::Lease lease, absl::Time renewed) {
  if (renewed > FromProto(lease.expiry())) *lease.mutable_expiry() = ToProto(renewed);
  return lease;
}

v1::Lease LeaseAfterDeletion(v1::Lease lease) {
  if (lease.epoch() > 0) lease.set_epoch(lease.epoch() + 1);
  lease.clear_holder();
  lease.clear_expiry();
  return lease;
}

v1::Lease NoLease(const ExperimentKey& key) {
  v1::Lease lease;
  lease.set_namespace_(key.ns);
  lease.set_experiment(key.name);
  return lease;
}

Status CheckFence(const Batch& batch, const Batch::Fence& fence, const v1::Attempt* attempt) {
  const bool current = attempt != nullptr && IsOpen(*attempt) && attempt->token() == fence.token;
  if (current) return absl::OkStatus();
  const std::string why = attempt == nullptr ? "does not exist"
                          : IsOpen(*attempt) ? "has another token"
                                             : "has ended";
  return absl::PermissionDeniedError(
      absl::StrCat("attempt ", AttemptName({{batch.experiment, fence.trial}, fence.attempt}), " ",
                   why, ": what it writes is refused"));
}

bool HasConditions(const Batch& batch) {
  return std::any_of(batch.intents.begin(), batch.intents.end(),
                     [](const v1::Intent& intent) { return intent.generation() != 0; });
}

Status CheckConditions(const Batch& batch, int64_t generation,
                       const std::vector<v1::Intent>& waiting) {
  const auto change = std::find_if(waiting.begin(), waiting.end(), [](const v1::Intent& intent) {
    return intent.verb() == v1::Intent::SCALE;
  });
  for (const v1::Intent& intent : batch.intents) {
    if (intent.generation() == 0) continue;
    if (intent.generation() != generation) {
      return absl::AbortedError(absl::StrCat(
          "experiment ", ToString(batch.experiment), " was changed meanwhile (metadata.generation ",
          generation, ", not ", intent.generation(), "): read it again"));
    }
    if (change == waiting.end()) continue;
    return absl::AbortedError(absl::StrCat(
        "experiment ", ToString(batch.experiment), " is being changed: what was asked for at ",
        FormatTime(change->time()), " is not done yet (its owner does it): read it again then"));
  }
  return absl::OkStatus();
}

bool Supersedes(const Batch::Supersede& supersede, const StoredObservation& row) {
  if (row.attempt > supersede.attempt) return false;
  if (!row.implicit_step) return row.step > supersede.past_step;
  const auto count = supersede.counts.find(row.metric);
  return row.step > (count == supersede.counts.end() ? 0 : count->second);
}

Status Conflict(const std::string& what, int64_t expected, int64_t current) {
  if (expected == 0) {
    return absl::AbortedError(absl::StrCat(what, " exists at revision ", current));
  }
  const std::string found =
      current == 0 ? " does not exist" : absl::StrCat(" is at revision ", current);
  return absl::AbortedError(
      absl::StrCat(what, found, ", not at ", expected, " as when it was read: read it again"));
}

Status NoExperiment(const ExperimentKey& key) {
  return absl::NotFoundError(
      absl::StrCat("no experiment \"", key.name, "\" in namespace \"", key.ns, "\""));
}

Status NoTrial(const TrialKey& key) {
  return absl::NotFoundError(
      absl::StrCat("no trial ", TrialName(key), " in namespace \"", key.experiment.ns, "\""));
}

Status ReadOnly(const std::string& address) {
  return absl::PermissionDeniedError(
      absl::StrCat("database ", address, " was opened for reading only"));
}

std::string Describe(const v1::Experiment& experiment) {
  return absl::StrCat("experiment ", ToString(KeyOf(experiment)));
}

std::string Describe(const v1::Trial& trial) {
  return absl::StrCat("trial ", TrialName({KeyOf(trial), trial.number()}));
}

std::string Describe(const v1::Attempt& attempt) {
  return absl::StrCat("attempt ",
                      AttemptName({{KeyOf(attempt), attempt.trial()}, attempt.number()}));
}

std::string Describe(const v1::Checkpoint& checkpoint) {
  return absl::StrCat("checkpoint of ",
                      AttemptName({{KeyOf(checkpoint), checkpoint.trial()}, checkpoint.attempt()}),
                      " at step ", checkpoint.step());
}

std::string Describe(const v1::Event& event) { return absl::StrCat("event ", event.reason()); }

std::string Describe(const v1::Intent& intent) {
  return absl::StrCat("intent ", v1::Intent::Verb_Name(intent.verb()));
}

bool IsLive(const v1::Trial& trial) {
  return trial.phase() == v1::TRIAL_PENDING || trial.phase() == v1::TRIAL_RUNNING;
}

bool IsOpen(const v1::Attempt& attempt) { return attempt.state() != v1::ATTEMPT_CLOSED; }

bool AddChange(const Change& change, int64_t limit, std::vector<Change>* changes) {
  if (limit == 0) return false;
  if (limit > 0 && static_cast<int64_t>(changes->size()) >= limit) {
    const int64_t last = changes->back().revision;
    if (change.revision != last) return false;
    if (changes->front().revision != last) {
      while (changes->back().revision == last) changes->pop_back();
      return false;
    }
  }
  changes->push_back(change);
  return true;
}

}  // namespace shirabe::db
