#include "suggestion/multifidelity/rung_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "suggestion/space/axes.h"

namespace shirabe::suggestion {

namespace {

constexpr char kBracket[] = "bracket";
constexpr char kSize[] = "bracket-size";
constexpr char kRung[] = "rung";
constexpr char kParent[] = "promoted-from";  // where the wire carries labels, but no parent

// The index of the trial that this one goes on from; an earlier one.
std::optional<int64_t> ParentOf(const History& history, int64_t index) {
  int64_t parent = history.trial(index).parent;
  if (parent == 0) parent = history.number_label(index, kParent).value_or(0);
  if (parent < 1 || parent > index) return std::nullopt;
  return parent - 1;
}

std::string Ordinal(int64_t place) {
  const int64_t last_two = place % 100, ones = place % 10;
  if (place == 1) return "best";
  if (ones == 2 && last_two != 12) return absl::StrCat(place, "nd best");
  if (ones == 3 && last_two != 13) return absl::StrCat(place, "rd best");
  if (ones == 1 && last_two != 11) return absl::StrCat(place, "st best");
  return absl::StrCat(place, "th best");
}

}  // namespace

RungLedger::RungLedger(const History& history, const Rungs& rungs,
                       std::vector<RungBracket> standing)
    : history_(history),
      rungs_(rungs),
      order_(history),
      unvisited_(history),
      promoted_(history.size()) {
  for (const RungBracket& bracket : standing) Open(bracket.first, bracket.planned);
  std::vector<int> bracket_of(history.size(), -1);
  for (int64_t i = 0; i < history.size(); ++i) {
    if (history.trial(i).state == TrialState::kActive) ++active_;
    std::optional<int> bracket = BracketOf(i);
    const auto parent = ParentOf(history, i);
    if (parent && RungOf(*parent) < RungOf(i)) {
      promoted_[*parent] = true;
      if (!bracket && bracket_of[*parent] >= 0) bracket = bracket_of[*parent];
    }
    if (!bracket) {
      unassigned_.push_back(i);
      continue;
    }
    bracket_of[i] = *bracket;
    Plan(i, *bracket);
    AssignToRung(i, *bracket);
  }
  for (size_t b = 0; b < standing.size(); ++b) AssignUnlabelled(static_cast<int>(b));
  for (RungBracket& bracket : brackets_) {
    for (RungCell& cell : bracket.cells) Rank(cell);
  }
}

int RungLedger::RungOf(int64_t index) const {
  const Axis& axis = history_.space().axis(rungs_.axis());
  return static_cast<int>(axis.Level(history_.coordinate(index, rungs_.axis())));
}

// Brackets are numbered as they are opened, so a number that skips some is none of ours.
std::optional<int> RungLedger::BracketOf(int64_t index) const {
  const auto number = history_.number_label(index, kBracket);
  if (!number || *number > static_cast<int64_t>(brackets_.size())) return std::nullopt;
  return static_cast<int>(*number);
}

// A bracket is what it was when its first trial was made, whatever has been changed since.
void RungLedger::Plan(int64_t index, int bracket) {
  if (bracket == static_cast<int>(brackets_.size())) Open(RungOf(index), kUnlimited);
  if (size_known_[bracket]) return;
  const auto size = history_.number_label(index, kSize);
  if (size) brackets_[bracket].planned = *size;
  if (size && !ParentOf(history_, index)) brackets_[bracket].first = RungOf(index);
  size_known_[bracket] = true;
}

void RungLedger::AssignToRung(int64_t index, int bracket) {
  RungCell& cell = brackets_[bracket].cells[RungOf(index)];
  ++cell.entered;
  const TrialSummary& trial = history_.trial(index);
  if (trial.state == TrialState::kActive) return;
  ++cell.ended;
  if (order_.HasResult(index)) cell.ranked.push_back(index);
}

void RungLedger::Open(int first, int64_t planned) {
  brackets_.push_back({first, planned, std::vector<RungCell>(rungs_.top() + 1)});
  size_known_.push_back(false);
}

// A bracket of unlimited size takes trials of every rung; any other only such as it begins with,
// since how many it promotes follows from its size.
void RungLedger::AssignUnlabelled(int bracket) {
  const RungBracket& to = brackets_[bracket];
  std::vector<int64_t> left;
  for (const int64_t index : unassigned_) {
    const int rung = RungOf(index);
    const bool fits = rung == to.first || (rung > to.first && to.planned == kUnlimited);
    if (fits && to.cells[to.first].entered < to.planned) {
      AssignToRung(index, bracket);
    } else {
      left.push_back(index);
    }
  }
  unassigned_ = std::move(left);
}

// Of equals, the older one is the better.
void RungLedger::Rank(RungCell& cell) const {
  std::sort(cell.ranked.begin(), cell.ranked.end());
  cell.ranked = order_.Sort(std::move(cell.ranked));
}

void RungLedger::Close() {
  for (RungBracket& bracket : brackets_) bracket.planned = bracket.cells[bracket.first].entered;
  closed_ = true;
}

// The index in `ranked` of the best that has not been promoted.
std::optional<int64_t> RungLedger::Next(int bracket, int rung, int64_t most) {
  const RungCell& cell = brackets_[bracket].cells[rung];
  const auto end = std::min<int64_t>(most, static_cast<int64_t>(cell.ranked.size()));
  for (int64_t place = 0; place < end; ++place) {
    if (!promoted_[cell.ranked[place]]) return place;
  }
  return std::nullopt;
}

std::optional<Suggestion> RungLedger::Promote(int bracket, int rung, int64_t most) {
  CHECK(rung < rungs_.top());
  RungBracket& in = brackets_[bracket];
  while (const auto place = Next(bracket, rung, most)) {
    const int64_t index = in.cells[rung].ranked[*place];
    promoted_[index] = true;
    RungCell& next = in.cells[rung + 1];
    ++next.entered;
    Point point = history_.point(index);
    point[rungs_.axis()] = history_.space().axis(rungs_.axis()).Coordinate(rung + 1);
    if (!unvisited_.Claim(point)) {  // another trial has been there: it ended here as it did there
      ++next.ended;
      continue;
    }
    ++active_;
    ++proposed_;
    Suggestion suggestion{.point = std::move(point), .parent = v1::Parent()};
    suggestion.parent->set_trial(index + 1);  // step 0: its newest checkpoint
    suggestion.labels = {{kBracket, absl::StrCat(bracket)},
                         {kRung, absl::StrCat(rung + 1)},
                         {kParent, absl::StrCat(index + 1)}};
    suggestion.explanation = absl::StrCat("promoted to rung ", rung + 1, " of ", rungs_.top(), ", ",
                                          rungs_.Describe(rung + 1), ": trial ", index + 1,
                                          " is the ", Ordinal(*place + 1), " of ",
                                          in.cells[rung].ended, " with ", rungs_.Describe(rung));
    return suggestion;
  }
  return std::nullopt;
}

bool RungLedger::Begin(int bracket, Suggestion& suggestion) {
  if (!unvisited_.Claim(suggestion.point)) return false;
  RungBracket& in = brackets_[bracket];
  ++in.cells[in.first].entered;
  ++active_;
  ++proposed_;
  suggestion.labels.emplace_back(kBracket, absl::StrCat(bracket));
  suggestion.labels.emplace_back(kRung, absl::StrCat(in.first));
  if (in.planned != kUnlimited) suggestion.labels.emplace_back(kSize, absl::StrCat(in.planned));
  suggestion.explanation = absl::StrCat("begins on rung ", in.first, " of ", rungs_.top(), ", ",
                                        rungs_.Describe(in.first), ": ", suggestion.explanation);
  return true;
}

Proposal RungLedger::Finish(std::vector<Suggestion> suggestions) const {
  Proposal proposal;
  proposal.suggestions = std::move(suggestions);
  if (!proposal.suggestions.empty()) return proposal;
  if (active_ > 0) {
    proposal.outcome = Proposal::Outcome::kWait;
    proposal.reason =
        absl::StrCat(active_ == 1 ? "one trial decides" : absl::StrCat(active_, " trials decide"),
                     " what is promoted next, and ",
                     closed_ ? "every configuration has been tried"
                             : "the other trials of maxTrialCount are kept for promotions");
  } else {
    proposal.outcome = Proposal::Outcome::kExhausted;
    proposal.reason = "every configuration has been tried, and the best have been promoted";
  }
  return proposal;
}

// L. Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 18
// (2018), algorithm 1: n = ⌈(S+1)·η^s / (s+1)⌉ and n_i = ⌊n·η^-i⌋.

namespace {

constexpr double kMaxResource = 0x1p53;  // beyond it neighbouring integers are the same double
constexpr char kDefaultEta[] = "3";

// The number of the setting `name`, else that of `other`, which means the same.
StatusOr<std::optional<int64_t>> Whole(const Settings& settings, const std::string& name,
                                       const std::string& other) {
  const std::string* first = FindSetting(settings, name);
  const std::string* second = FindSetting(settings, other);
  const bool by_default = name == "eta" && first != nullptr && *first == kDefaultEta;
  if (first != nullptr && second != nullptr && *first != *second && !by_default) {
    return absl::InvalidArgumentError(absl::StrCat(name, " ", *first, " and ", other, " ", *second,
                                                   " are two names for one setting; remove one"));
  }
  const std::string* text = second != nullptr ? second : first;
  if (text == nullptr) return std::optional<int64_t>();
  const auto number = ParseNumber(*text);
  if (!number || !std::isfinite(*number))
    return absl::InvalidArgumentError(absl::StrCat(name, " is not a number"));
  return std::optional<int64_t>(static_cast<int64_t>(std::floor(*number)));
}

StatusOr<int> ResourceAxis(const Problem& problem, const std::string* name) {
  const Space& space = problem.space;
  if (name == nullptr || name->empty()) {
    return absl::InvalidArgumentError(
        "resource_name is missing; give the name of the parameter that says for how long a trial "
        "trains, such as epochs; to stop trials that have no such parameter while they run, use "
        "earlyStopping asha-stop with any algorithm");
  }
  std::vector<std::string> names;
  for (int i = 0; i < space.size(); ++i) {
    names.push_back(space.axis(i).name());
    if (space.axis(i).name() != *name) continue;
    if (space.axis(i).categorical()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "resource_name \"", *name, "\" is categorical; give an int parameter, such as epochs"));
    }
    if (space.size() == 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "resource_name \"", *name, "\" is the only parameter; give another one to tune"));
    }
    return i;
  }
  const auto near = Nearest(*name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "resource_name \"", *name, "\" is not a parameter; ",
      near ? "did you mean \"" + *near + "\"?" : "give one of spec.parameters, of type int"));
}

// The end of the feasible space, where r_l is not given.
int64_t GreatestOf(const Axis& axis) {
  const StatusOr<double> greatest = NumberOf(axis.Decode(1));
  return greatest.ok() && *greatest >= 1
             ? static_cast<int64_t>(std::floor(std::min(*greatest, kMaxResource)))
             : 0;
}

Status CheckRungs(int64_t max, int64_t min, int64_t eta) {
  if (max < 1) {
    return absl::InvalidArgumentError(
        "r_l is missing, and the resource has no value of 1 or more; give r_l, the "
        "resource of a trial that is trained to its end");
  }
  if (max / eta >= min) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("r_l ", max, " with eta ", eta, " and min_resource ", min,
                   " leaves one rung, from which nothing is promoted; raise r_l to at "
                   "least ",
                   min * eta));
}

}  // namespace

std::vector<int64_t> RungTable(int64_t max, int64_t min, int64_t eta) {
  CHECK(min >= 1 && max >= min && eta >= 2);
  std::vector<int64_t> resources;
  for (int64_t r = max; r >= min; r /= eta) resources.push_back(r);
  std::reverse(resources.begin(), resources.end());
  return resources;
}

std::vector<SettingInfo> RungSettings(const std::vector<SettingInfo>& more) {
  using Type = SettingInfo::Type;
  std::vector<SettingInfo> all = {
      {.name = "resource_name",
       .help = "required: the parameter that says for how long a trial trains, in all; its values "
               "are those of the rungs, whatever its feasibleSpace says"},
      {.name = "r_l",
       .type = Type::kDouble,
       .min = 1,
       .max = kMaxResource,
       .help = "resource of a trial that is trained to its end; by default the max of the "
               "resource's feasibleSpace"},
      {.name = "eta",
       .type = Type::kInt,
       .default_value = kDefaultEta,
       .min = 2,
       .max = 1e6,
       .help = "one of eta trials goes on, with eta times the resource"},
      {.name = "min_resource",
       .type = Type::kInt,
       .default_value = "1",
       .min = 1,
       .max = kMaxResource,
       .help = "no trial gets less: the rungs are r_l divided by eta again and again, down to it"},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

StatusOr<Rungs> Rungs::Create(const Problem& problem) {
  Rungs rungs;
  const std::string* name = FindSetting(problem.settings, "resource_name");
  ASSIGN_OR_RETURN(rungs.axis_, ResourceAxis(problem, name));
  rungs.name_ = *name;
  ASSIGN_OR_RETURN(const auto eta, Whole(problem.settings, "eta", "reduction_factor"));
  ASSIGN_OR_RETURN(const auto max, Whole(problem.settings, "r_l", "max_resource"));
  ASSIGN_OR_RETURN(const auto min, Whole(problem.settings, "min_resource", "min_resource"));
  rungs.eta_ = eta.value_or(3);
  const int64_t greatest = max.value_or(GreatestOf(problem.space.axis(rungs.axis_)));
  const Status checked = CheckRungs(greatest, min.value_or(1), rungs.eta_);
  const bool counted = max || !problem.space.axis(rungs.axis_).continuous();
  RETURN_IF_ERROR(counted ? checked
                          : Prefix("resource_name \"" + *name + "\" is not of type int; give a " +
                                       "parameter that is, such as epochs",
                                   checked));
  rungs.resources_ = RungTable(greatest, min.value_or(1), rungs.eta_);
  return rungs;
}

std::string Rungs::Describe(int rung) const { return absl::StrCat(name_, "=", resources_[rung]); }

int64_t Rungs::BracketSize(int s) const {
  int64_t power = 1;  // η^s ≤ η^S ≤ R
  for (int i = 0; i < s; ++i) power *= eta_;
  const auto numerator = static_cast<__int128>(top() + 1) * power;
  return static_cast<int64_t>((numerator + s) / (s + 1));
}

int64_t Rungs::BracketTrials(int64_t n, int s) const {
  int64_t trials = 0;
  for (int i = 0; i <= s; ++i, n /= eta_) trials += n;
  return trials;
}

StatusOr<Space> ReshapeToRungs(const Problem& problem) {
  ASSIGN_OR_RETURN(const Rungs rungs, Rungs::Create(problem));
  return problem.space.WithValues(rungs.axis(), rungs.resources());
}

}  // namespace shirabe::suggestion
