#include "db/lease_lost.h"

#include "absl/strings/cord.h"

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

}  // namespace shirabe::db
