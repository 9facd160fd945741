#include "client/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/number.h"
#include "client/money.h"
#include "client/words.h"

namespace shirabe::client {
namespace {

constexpr size_t kShortDigest = 12;  // as much as people compare by eye

std::string StateCell(const v1::Attempt& attempt) {
  const bool stopping = attempt.has_stop() && attempt.state() != v1::ATTEMPT_CLOSED;
  return stopping ? "stopping" : AttemptStateWord(attempt.state());
}

std::string ExitCell(const v1::Attempt& attempt) {
  if (attempt.signal() > 0) return absl::StrCat("signal ", attempt.signal());
  return attempt.has_exit_code() ? std::to_string(attempt.exit_code()) : "";
}

// The step, and whose it is where the trial started from another one's checkpoint. 0 is said: it is
// an answer too.
std::string ResumedCell(const v1::Attempt& attempt) {
  if (!attempt.has_start_time()) return "";
  const int64_t trial = attempt.resumed_from_trial();
  if (attempt.resumed_from_attempt() == 0 || trial == 0 || trial == attempt.trial()) {
    return std::to_string(attempt.resumed_from_step());
  }
  return absl::StrCat(attempt.resumed_from_step(), " of ",
                      TrialName({ExperimentKeyOf(attempt), trial}));
}

std::string PriceCell(const v1::Placement& placement) {
  const double price = placement.price_per_hour();
  return price > 0 ? AmountText(price) + "/h" : "";
}

}  // namespace

v1::Placement PlacementOf(const v1::Attempt& attempt) {
  const int count = attempt.placements_size();
  return count > 0 ? attempt.placements(count - 1) : v1::Placement();
}

Cells AttemptHeader(const RowStyle& style) {
  Cells cells = {"NAME",    "STATE", "CAUSE",  "NODE",    "CAPACITY",
                 "RESUMED", "STEPS", "REDONE", "SECONDS", "COST"};
  if (style.wide) {
    cells.insert(cells.end(),
                 {"POOL", "EXIT", "PRICE", "START", "END", "DEVICES", "OBSERVATIONS", "MESSAGE"});
  }
  return cells;
}

Cells AttemptRow(const v1::Attempt& attempt, const RowStyle& style) {
  const TrialKey trial{ExperimentKeyOf(attempt), attempt.trial()};
  const v1::Placement placement = PlacementOf(attempt);
  const Spent spent = SpentBy(attempt, style.now);
  Cells cells = {AttemptName({trial, attempt.number()}),
                 StateCell(attempt),
                 CauseWord(attempt.cause()),
                 placement.node(),
                 placement.capacity(),
                 ResumedCell(attempt),
                 std::to_string(attempt.steps_gained()),
                 std::to_string(attempt.steps_redone()),
                 attempt.has_start_time() ? absl::StrFormat("%.1f", spent.seconds) : "",
                 spent.cost > 0 ? AmountText(spent.cost) : ""};
  if (!style.wide) return cells;
  cells.insert(cells.end(),
               {placement.pool(), ExitCell(attempt), PriceCell(placement),
                FormatTime(attempt.start_time()), FormatTime(attempt.end_time()),
                placement.devices(), std::to_string(attempt.rows()), attempt.message()});
  return cells;
}

Cells CheckpointHeader(const RowStyle& style) {
  Cells cells = {"STEP", "ATTEMPT", "SIZE", "AGE", "DIGEST", "GONE"};
  if (style.wide) cells.insert(cells.end(), {"OBJECTIVE", "BYTES", "TIME", "LOCATION"});
  return cells;
}

Cells CheckpointRow(const v1::Checkpoint& checkpoint, const RowStyle& style) {
  const absl::Duration age = style.now - FromProto(checkpoint.time());
  Cells cells = {
      std::to_string(checkpoint.step()),
      absl::StrCat("a", checkpoint.attempt()),
      FormatBytes(checkpoint.bytes()),
      checkpoint.has_time() ? FormatAge(std::max(age, absl::ZeroDuration())) : std::string(),
      checkpoint.digest().substr(0, kShortDigest),
      checkpoint.gone()};
  if (!style.wide) return cells;
  cells.insert(
      cells.end(),
      {checkpoint.has_objective() ? ShortNumber(checkpoint.objective()) : std::string(),
       std::to_string(checkpoint.bytes()), FormatTime(checkpoint.time()), checkpoint.location()});
  return cells;
}

}  // namespace shirabe::client
