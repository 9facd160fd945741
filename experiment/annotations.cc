#include "experiment/annotations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "base/process_id.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/experiment_leases.h"

namespace shirabe::experiment {
namespace {

using Tags = google::protobuf::RepeatedPtrField<std::string>;

constexpr char kAnnotator[] = "annotation by ";
// The longest that a process can take between its two writes.
constexpr absl::Duration kAnnotatorTtl = absl::Seconds(5);
constexpr int kBorrowTries = 10;
constexpr absl::Duration kBorrowPause = absl::Milliseconds(10);

Status Wrong(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// As Printable has it: no control characters but line breaks and tabs.
Status CheckNote(const v1::Intent& intent) {
  const size_t most = intent.trial() > 0 ? kMaxTrialNoteBytes : kMaxNoteBytes;
  if (intent.note().size() > most) {
    return Wrong("note", absl::StrCat("has ", intent.note().size(), " bytes, and at most ", most,
                                      " are taken: shorten it"));
  }
  if (Printable(intent.note()) == intent.note()) return absl::OkStatus();
  return Wrong("note", "holds control characters: only line breaks and tabs are taken");
}

Status CheckTag(const std::string& field, const std::string& tag) {
  if (tag.empty()) return Wrong(field, "must not be empty");
  if (tag.size() > kMaxTagBytes) {
    return Wrong(field, absl::StrCat("has ", tag.size(), " bytes, and at most ", kMaxTagBytes,
                                     " are taken: shorten it"));
  }
  const bool plain = Printable(tag) == tag && tag.find_first_of("\n\t,") == std::string::npos &&
                     absl::StripAsciiWhitespace(tag) == tag;
  if (plain) return absl::OkStatus();
  return Wrong(field, Quoted(Printable(tag)) +
                          " must be one line without commas, and without blanks around it");
}

Status CheckTags(const char* field, const Tags& tags) {
  if (tags.size() > kMaxTags) {
    return Wrong(field, absl::StrCat("has ", tags.size(), " tags, and at most ", kMaxTags,
                                     " are taken: give fewer"));
  }
  for (int i = 0; i < tags.size(); ++i) {
    RETURN_IF_ERROR(CheckTag(absl::StrCat(field, "[", i, "]"), tags[i]));
  }
  return absl::OkStatus();
}

bool Holds(const Tags& tags, const std::string& tag) {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

// What is added twice is there once, in its old place.
StatusOr<Tags> TagsAfter(const v1::Intent& intent, const Tags& before) {
  Tags after;
  for (const std::string& tag : before) {
    if (!Holds(intent.remove_tags(), tag)) after.Add(std::string(tag));
  }
  for (const std::string& tag : intent.add_tags()) {
    if (!Holds(after, tag)) after.Add(std::string(tag));
  }
  if (after.size() <= kMaxTags) return after;
  return Wrong("addTags", absl::StrCat("it would have ", after.size(), " tags, and at most ",
                                       kMaxTags, " are taken: remove some"));
}

template <class Record>
StatusOr<bool> AnnotateRecord(const v1::Intent& intent, Record& record) {
  RETURN_IF_ERROR(CheckAnnotation(intent));
  ASSIGN_OR_RETURN(Tags tags, TagsAfter(intent, record.tags()));
  const bool same_tags =
      std::equal(tags.begin(), tags.end(), record.tags().begin(), record.tags().end());
  const bool same_note = !intent.has_note() || intent.note() == record.note();
  if (intent.has_note()) record.set_note(intent.note());
  *record.mutable_tags() = std::move(tags);
  return !same_tags || !same_note;
}

// The lease for two writes; nullopt if an owner has it. Its holder has a name of its own, so that
// no controller of this process takes it for one of its own; an owner that comes meanwhile tries
// again.
StatusOr<std::optional<v1::Lease>> BorrowLease(db::Store& store, Clock& clock,
                                               const ExperimentKey& key) {
  const std::string holder = absl::StrCat(kAnnotator, ToString(ThisProcess()), " ",
                                          absl::BytesToHexString(RandomBytes(8)));
  for (int i = 0; i < kBorrowTries; ++i) {
    ASSIGN_OR_RETURN(const v1::Lease held, store.GetLease(key));
    const auto dead = EpochOfDead(held);
    const bool free = dead || held.holder().empty() || FromProto(held.expiry()) <= clock.Now();
    if (!free && !absl::StartsWith(held.holder(), kAnnotator)) return std::nullopt;
    auto lease = store.AcquireLease({.experiment = key,
                                     .holder = holder,
                                     .now = clock.Now(),
                                     .ttl = kAnnotatorTtl,
                                     .dead_epoch = dead});
    if (lease.ok()) return *std::move(lease);
    if (!absl::IsAlreadyExists(lease.status())) return lease.status();
    Pause(kBorrowPause);
  }
  return absl::UnavailableError(absl::StrCat(
      "experiment ", ToString(key), " is being annotated by many callers at once: try again"));
}

// What the intent makes of the records, as a batch without a lease; empty if it changes nothing.
StatusOr<db::Batch> BatchFor(db::Store& store, const ExperimentKey& key, const v1::Intent& intent) {
  db::Batch batch;
  batch.experiment = key;
  bool changed = false;
  if (intent.trial() > 0) {
    ASSIGN_OR_RETURN(auto trial, store.GetTrial({key, intent.trial()}));
    ASSIGN_OR_RETURN(changed, Annotate(intent, trial.record));
    if (changed) batch.trials.push_back({std::move(trial.record), trial.revision});
  } else {
    ASSIGN_OR_RETURN(auto experiment, store.GetExperiment(key));
    v1::ShirabeStatus& status = *experiment.record.mutable_status()->mutable_shirabe();
    ASSIGN_OR_RETURN(changed, Annotate(intent, status));
    if (changed) batch.put = {std::move(experiment.record), experiment.revision};
  }
  return batch;
}

}  // namespace

Status CheckAnnotation(const v1::Intent& intent) {
  if (!intent.has_note() && intent.add_tags().empty() && intent.remove_tags().empty()) {
    return absl::InvalidArgumentError("give one of note, addTags and removeTags");
  }
  RETURN_IF_ERROR(CheckNote(intent));
  RETURN_IF_ERROR(CheckTags("addTags", intent.add_tags()));
  return CheckTags("removeTags", intent.remove_tags());
}

StatusOr<bool> Annotate(const v1::Intent& intent, v1::ShirabeStatus& experiment) {
  return AnnotateRecord(intent, experiment);
}

StatusOr<bool> Annotate(const v1::Intent& intent, v1::Trial& trial) {
  return AnnotateRecord(intent, trial);
}

v1::Event AnnotationEvent(const v1::Intent& intent) {
  std::vector<std::string> parts;
  if (intent.has_note()) {
    parts.push_back(intent.note().empty() ? "the note was removed" : "the note was written");
  }
  const auto add = [&parts](const char* word, const Tags& tags) {
    if (!tags.empty()) parts.push_back(absl::StrCat(word, absl::StrJoin(tags, ", ")));
  };
  add("tags removed: ", intent.remove_tags());
  add("tags added: ", intent.add_tags());
  v1::Event event;
  event.set_namespace_(intent.namespace_());
  event.set_experiment(intent.experiment());
  event.set_trial(intent.trial());
  event.set_reason("AnnotationChanged");
  event.set_message(absl::StrJoin(parts, "; "));
  *event.mutable_time() = intent.time();
  if (intent.has_actor()) *event.mutable_actor() = intent.actor();
  return event;
}

StatusOr<bool> AnnotateUnowned(db::Store& store, Clock& clock, const ExperimentKey& key,
                               const v1::Intent& intent) {
  ASSIGN_OR_RETURN(const auto lease, BorrowLease(store, clock, key));
  if (!lease) return false;
  const db::LeaseClaim claim{key, lease->epoch()};
  StatusOr<db::Batch> batch = BatchFor(store, key, intent);
  Status written = batch.status();
  if (batch.ok() && (batch->put || !batch->trials.empty())) {
    batch->epoch = claim.epoch;
    batch->events.push_back(AnnotationEvent(intent));
    written = store.Commit(*batch).status();
  }
  store.ReleaseLease(claim).IgnoreError();
  RETURN_IF_ERROR(written);
  return true;
}

}  // namespace shirabe::experiment
