// Who asks for something, in what is asked of a store: the user of the client, where no other is
// named. Pure functions.
#pragma once

#include <utility>
#include <vector>

#include "base/status.h"
#include "db/store.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// Of an experiment that is submitted, status.shirabe.createdBy says it.
inline v1::Experiment WithActor(const v1::Actor& actor, v1::Experiment experiment) {
  const bool named = !experiment.status().shirabe().created_by().name().empty();
  if (!named) *experiment.mutable_status()->mutable_shirabe()->mutable_created_by() = actor;
  return experiment;
}
inline v1::Intent WithActor(const v1::Actor& actor, v1::Intent intent) {
  if (intent.actor().name().empty()) *intent.mutable_actor() = actor;
  return intent;
}

// What a store reads, without the revisions, which only writers need. Used by the client over a
// store. Pure functions.

// The records of a list, without their revisions.
template <class Record>
StatusOr<std::vector<Record>> Records(StatusOr<std::vector<db::Versioned<Record>>> list) {
  RETURN_IF_ERROR(list.status());
  std::vector<Record> records;
  records.reserve(list->size());
  for (db::Versioned<Record>& item : *list) records.push_back(std::move(item.record));
  return records;
}

template <class Record>
StatusOr<Record> OneRecord(StatusOr<db::Versioned<Record>> item) {
  RETURN_IF_ERROR(item.status());
  return std::move(item->record);
}

}  // namespace shirabe::client
