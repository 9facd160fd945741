#include "suggestion/multifidelity/bracket_search.h"

#include <algorithm>
#include <utility>

#include "base/cancellation.h"

namespace shirabe::suggestion {
namespace {

// Shares of the brackets that promote: in a closed one the best goes on, however few there are.
int64_t Promotions(int64_t entered, int64_t eta) {
  return std::max<int64_t>(entered / eta, entered > 0 ? 1 : 0);
}

}  // namespace

StatusOr<std::unique_ptr<Algorithm>> BracketSearch::Create(const Problem& problem) {
  ASSIGN_OR_RETURN(Rungs rungs, Rungs::Create(problem));
  ASSIGN_OR_RETURN(ConfigSource searcher, ConfigSource::Create(problem, rungs));
  return std::make_unique<BracketSearch>(std::move(rungs), std::move(searcher), problem.max_trials);
}

BracketSearch::BracketSearch(Rungs rungs, ConfigSource searcher, int64_t max_trials)
    : rungs_(std::move(rungs)), source_(std::move(searcher)), max_trials_(max_trials) {}

StatusOr<Proposal> BracketSearch::Propose(const History& history, int count, const Rng& root) {
  // The limit was raised after this was built: there is no other left to keep to.
  const bool limited = max_trials_ > history.size();
  const int64_t left = limited ? max_trials_ - history.size() : RungLedger::kUnlimited;
  RungLedger book(history, rungs_, {Plan(0, limited ? max_trials_ : RungLedger::kUnlimited)});
  ConfigurationSampler newcomers(history, rungs_, source_);
  std::vector<Suggestion> suggestions;
  while (static_cast<int>(suggestions.size()) < count && !IsCancelled()) {
    std::optional<Suggestion> next = Promote(book);
    const std::optional<int> room =
        next ? std::nullopt : FindOpenBracket(book, left - book.proposed());
    if (room) {
      const int first = book.brackets()[*room].first;
      next = newcomers.Next(first, history.next_ordinal() + suggestions.size(), root);
      if (!next) {
        book.Close();
        continue;
      }
      if (!book.Begin(*room, *next)) continue;
    }
    if (!next) break;
    suggestions.push_back(*std::move(next));
  }
  return book.Finish(std::move(suggestions));
}

// Bracket `number` of the endless sequence S, S-1, …, 0, S, …; a smaller one, of fewer rungs or
// fewer configurations, where only so many trials are left.
RungBracket BracketSearch::Plan(int64_t number, int64_t trials) const {
  int s = rungs_.top() - static_cast<int>(number % (rungs_.top() + 1));
  const auto fits = [&](int64_t n, int promotions) {
    return rungs_.BracketTrials(n, promotions) <= trials;
  };
  int64_t least = 1;  // η^s: fewer would leave nothing to train to the end
  for (int i = 0; i < s; ++i) least *= rungs_.eta();
  for (; s > 0 && !fits(least, s); --s) least /= rungs_.eta();
  int64_t n = std::min(rungs_.BracketSize(s), std::max<int64_t>(trials, 1));
  while (n > least && !fits(n, s)) --n;
  return {.first = rungs_.top() - s, .planned = n};
}

// How many trials can enter a rung of a bracket at most: as many as it promotes, of those below
// that were or may still be good enough.
int64_t BracketSearch::MaxPromotions(const RungBracket& bracket, int rung) const {
  int64_t cap = bracket.planned, quota = bracket.planned;
  for (int k = bracket.first + 1; k <= rung; ++k) {
    const RungCell& below = bracket.cells[k - 1];
    quota = Promotions(quota, rungs_.eta());
    const int64_t lost = below.ended - static_cast<int64_t>(below.ranked.size());
    const int64_t possible = cap - lost;
    cap = std::max(std::min(quota, possible), bracket.cells[k].entered);
  }
  return cap;
}

// A trial is certain to be promoted if it would be even with all unknown results before its own.
// With several objectives one result can take more than one place from a trial, so that this is no
// longer certain: then no more are promoted than the rung has room for, those chosen first.
std::optional<Suggestion> BracketSearch::Promote(RungLedger& book) const {
  for (int b = 0; b < static_cast<int>(book.brackets().size()); ++b) {
    const RungBracket& bracket = book.brackets()[b];
    for (int k = rungs_.top() - 1; k >= bracket.first; --k) {
      const int64_t unknown = MaxPromotions(bracket, k) - bracket.cells[k].ended;
      int64_t quota = bracket.planned;
      for (int i = bracket.first; i <= k; ++i) quota = Promotions(quota, rungs_.eta());
      if (quota <= unknown || bracket.cells[k + 1].entered >= quota) continue;
      if (auto promoted = book.Promote(b, k, quota - unknown)) return promoted;
    }
  }
  return std::nullopt;
}

// Trials that the brackets there are will still make; kUnlimited where a label of another's, or
// none, says that one is as large as that.
int64_t BracketSearch::PromotionsLeft(const RungLedger& book) const {
  int64_t owed = 0;
  for (const RungBracket& bracket : book.brackets()) {
    for (int k = bracket.first; k <= rungs_.top(); ++k) {
      const int64_t more =
          std::max<int64_t>(MaxPromotions(bracket, k) - bracket.cells[k].entered, 0);
      if (more > RungLedger::kUnlimited - owed) return RungLedger::kUnlimited;
      owed += more;
    }
  }
  return owed;
}

// A bracket in which another configuration can begin, if there is one: opened now if need be.
std::optional<int> BracketSearch::FindOpenBracket(RungLedger& book, int64_t left) const {
  if (book.closed()) return std::nullopt;
  const auto& brackets = book.brackets();
  for (int b = 0; b < static_cast<int>(brackets.size()); ++b) {
    if (brackets[b].cells[brackets[b].first].entered < brackets[b].planned) return b;
  }
  const int64_t free = left - (left == RungLedger::kUnlimited ? 0 : PromotionsLeft(book));
  if (free <= 0 && book.active() > 0) return std::nullopt;
  const int number = static_cast<int>(brackets.size());
  const RungBracket plan = Plan(number, std::max<int64_t>(free, 1));
  book.Open(plan.first, plan.planned);
  return number;
}

}  // namespace shirabe::suggestion
