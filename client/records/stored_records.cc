#include "client/records/stored_records.h"

namespace shirabe::client {

v1::Experiment WithActor(const v1::Actor& actor, v1::Experiment experiment) {
  const bool named = !experiment.status().shirabe().created_by().name().empty();
  if (!named) *experiment.mutable_status()->mutable_shirabe()->mutable_created_by() = actor;
  return experiment;
}

v1::Intent WithActor(const v1::Actor& actor, v1::Intent intent) {
  if (intent.actor().name().empty()) *intent.mutable_actor() = actor;
  return intent;
}

}  // namespace shirabe::client
