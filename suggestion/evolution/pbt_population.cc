#include "suggestion/evolution/pbt_population.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "suggestion/space/axes.h"

namespace shirabe::suggestion {
namespace {

constexpr char kMember[] = "member";
constexpr char kGeneration[] = "generation";
constexpr char kMove[] = "move";  // begin, continue or exploit

}  // namespace

Population::Population(const History& history, const PopulationOptions& options)
    : history_(history), order_(history), options_(options) {
  for (int64_t i = 0; i < history.size(); ++i) {
    const bool active = history.trial(i).state == TrialState::kActive;
    if (active) ++active_;
    const auto member = MemberOf(i);
    if (!member) continue;
    if (*member == size()) members_.emplace_back();
    members_[*member] = {.trial = i, .generation = GenerationOf(i), .busy = active};
    if (active) continue;
    Generation& generation = generations_[GenerationOf(i)];
    ++generation.ended;
    if (order_.HasResult(i)) generation.ranked.push_back(i);
  }
  // Of equals, the older one is the better.
  for (auto& [number, generation] : generations_) {
    generation.ranked = order_.Sort(std::move(generation.ranked));
  }
}

// Members are numbered as they begin, so a number that skips some is none of ours.
std::optional<int64_t> Population::MemberOf(int64_t index) const {
  const auto number = history_.number_label(index, kMember);
  if (number && *number <= size()) return number;
  if (size() < options_.size) return size();
  return std::nullopt;
}

int64_t Population::GenerationOf(int64_t index) const {
  if (!options_.resource) return history_.number_label(index, kGeneration).value_or(0);
  const Axis& axis = history_.space().axis(*options_.resource);
  return static_cast<int64_t>(axis.Level(history_.coordinate(index, *options_.resource)));
}

// The generation after which a member is done; nullopt if there is none.
std::optional<int64_t> Population::Last() const {
  if (!options_.resource) return std::nullopt;
  return static_cast<int64_t>(history_.space().axis(*options_.resource).levels()) - 1;
}

std::optional<Population::Step> Population::Next(Rng& rng) {
  if (size() < options_.size) {
    members_.push_back({.busy = true});
    return Step{.member = size() - 1, .why = "a new member"};
  }
  int64_t next = -1;
  for (int64_t m = 0; m < size(); ++m) {
    const bool failed = members_[m].trial >= 0 && !order_.HasResult(members_[m].trial);
    if (members_[m].busy || (Last() && members_[m].generation >= *Last() && !failed)) continue;
    if (next < 0 || Before(members_[m], members_[next])) next = m;
  }
  if (next < 0) return std::nullopt;
  members_[next].busy = true;
  return GoOn(next, rng);
}

int64_t Population::Losers(const Generation& generation) const {
  const double part = std::min(options_.truncation, 0.5);
  return static_cast<int64_t>(std::floor(part * static_cast<double>(generation.ended)));
}

// Truncation selection among the trials that have made the same generation: they alone have been
// trained as long. One that ends early is compared with fewer, but does not wait for others.
Population::Step Population::GoOn(int64_t member, Rng& rng) const {
  const Member& from = members_[member];
  Step step{.member = member, .generation = from.generation + 1};
  const auto found = generations_.find(from.generation);
  if (!order_.HasResult(from.trial)) {
    step.why = absl::StrCat(
        "trial ", from.trial + 1,
        history_.trial(from.trial).outside ? " is outside of the ranges" : " gave no result");
    return Follow(std::move(step), from.generation, rng);
  }
  const Generation& generation = found->second;
  const auto place = std::find(generation.ranked.begin(), generation.ranked.end(), from.trial) -
                     generation.ranked.begin();
  const int64_t losers = Losers(generation);
  if (place >= generation.ended - losers) {
    step.why = absl::StrCat("trial ", from.trial + 1, " is among the worst ", losers, " of ",
                            generation.ended, " of its generation");
    return Follow(std::move(step), from.generation, rng);
  }
  step.parent = from.trial;
  step.why = absl::StrCat("trial ", from.trial + 1, " is number ", place + 1, " of ",
                          generation.ended, " of its generation, and goes on as it is");
  return step;
}

// One of the best of this generation, or of the last one before it that has any, is the parent. If
// none has a result the member starts over.
Population::Step Population::Follow(Step step, int64_t generation, Rng& rng) const {
  for (auto it = generations_.upper_bound(generation); it != generations_.begin();) {
    --it;
    const std::vector<int64_t>& ranked = it->second.ranked;
    if (ranked.empty() || (Last() && it->first >= *Last())) continue;
    const auto winners = std::min<int64_t>(std::max<int64_t>(Losers(it->second), 1),
                                           static_cast<int64_t>(ranked.size()));
    step.parent = ranked[rng.Below(static_cast<uint64_t>(winners))];
    step.generation = it->first + 1;
    step.exploits = true;
    absl::StrAppend(&step.why, "; it takes over the checkpoint of trial ", *step.parent + 1,
                    ", one of the best ", winners, ", and its parameters, perturbed");
    return step;
  }
  step.generation = 0;
  absl::StrAppend(&step.why, ", nor has any other; it starts from scratch");
  return step;
}

std::vector<std::pair<std::string, std::string>> Population::Labels(const Step& step) {
  const char* move = !step.parent ? "begin" : step.exploits ? "exploit" : "continue";
  return {{kMember, absl::StrCat(step.member)},
          {kGeneration, absl::StrCat(step.generation)},
          {kMove, move}};
}

namespace {

constexpr double kFactor = 0.2;
constexpr double kShift = 0.1;  // of the range
constexpr double kOtherCategory = 0.25;

// Up or down from `value`, and back where that leaves the range.
double Moved(const Axis& axis, double value, bool up) {
  const double min = ValueAt(axis, 0), max = ValueAt(axis, 1);
  const auto to = [&](bool upwards) {
    const double sign = upwards ? 1 : -1;
    const double moved =
        min > 0 ? value * (1 + sign * kFactor) : value + sign * kShift * (max - min);
    return std::clamp(moved, min, max);
  };
  return to(up) != value ? to(up) : to(!up);
}

// The level whose value is nearest; of two equally near ones the lower.
uint64_t NearestLevel(const Axis& axis, double value) {
  uint64_t low = 0, high = axis.levels() - 1;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (ValueAt(axis, axis.Coordinate(middle)) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return 0;
  const double above = ValueAt(axis, axis.Coordinate(low)) - value;
  const double below = value - ValueAt(axis, axis.Coordinate(low - 1));
  return below <= above ? low - 1 : low;
}

double PerturbLevel(const Axis& axis, double x, bool up) {
  const uint64_t from = axis.Level(x), last = axis.levels() - 1;
  if (last == 0) return x;
  const double value = ValueAt(axis, x), moved = Moved(axis, value, up);
  uint64_t to = NearestLevel(axis, moved);
  if (to == from) to = (moved > value && from < last) || from == 0 ? from + 1 : from - 1;
  return axis.Coordinate(to);
}

double PerturbContinuous(const Axis& axis, double x, bool up) {
  v1::Assignment moved;
  moved.set_name(axis.name());
  moved.set_number(Moved(axis, ValueAt(axis, x), up));
  return axis.Encode(moved).value_or(x);
}

double PerturbCategory(const Axis& axis, double x, Rng& rng) {
  const bool stay = rng.Uniform() >= kOtherCategory;
  if (stay || axis.levels() == 1) return x;
  const uint64_t other = rng.Below(axis.levels() - 1);
  return axis.Coordinate(other >= axis.Level(x) ? other + 1 : other);
}

}  // namespace

Point Perturb(const Space& space, const Point& point, std::optional<double> resample, Rng& rng) {
  const Point fresh = space.Sample(rng);
  Point perturbed = point;
  for (int i = 0; i < space.size(); ++i) {
    const Axis& axis = space.axis(i);
    const bool resampled = rng.Uniform() < resample.value_or(0);
    const bool up = rng.Below(2) == 1;
    if (resampled) {
      perturbed[i] = fresh[i];
    } else if (axis.categorical()) {
      perturbed[i] = PerturbCategory(axis, point[i], rng);
    } else {
      perturbed[i] = axis.continuous() ? PerturbContinuous(axis, point[i], up)
                                       : PerturbLevel(axis, point[i], up);
    }
  }
  return space.Canonical(perturbed);
}

}  // namespace shirabe::suggestion
