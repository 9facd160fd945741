// Asynchronous successive halving: L. Li et al., "A System for Massively Parallel Hyperparameter
// Tuning", MLSys 2020, algorithm 2 (ASHA), by promotion: a trial ends at its rung, and goes on as a
// new one, from its checkpoint, if it turns out to be among the best 1/eta that are there.
//
//   η    eta                                integer ≥ 2
//   m_k  trials that ended on rung k         failed ones too
//   ⌊m_k / η⌋ of them may be promoted; none before there are η, so no first arrival gets in free
//
// There is always work: if nothing can be promoted, a new configuration begins. With more than one
// bracket, bracket b begins on rung b, with Hyperband's share of the configurations.
#include <algorithm>
#include <utility>

#include "base/cancellation.h"
#include "base/text/number.h"
#include "suggestion/multifidelity/configuration_sampler.h"
#include "suggestion/multifidelity/rung_ledger.h"

namespace shirabe::suggestion {
namespace {

class Asha : public Algorithm {
 public:
  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
    ASSIGN_OR_RETURN(Rungs rungs, Rungs::Create(problem));
    ASSIGN_OR_RETURN(ConfigSource searcher, ConfigSource::Create(problem, rungs));
    const auto brackets =
        static_cast<int>(*ParseNumber(*FindSetting(problem.settings, "brackets")));
    return std::make_unique<Asha>(std::move(rungs), std::move(searcher), brackets);
  }

  Asha(Rungs rungs, ConfigSource searcher, int brackets)
      : rungs_(std::move(rungs)), source_(std::move(searcher)) {
    for (int b = 0; b < std::min(brackets, rungs_.top() + 1); ++b) {
      standing_.push_back({.first = b, .planned = RungLedger::kUnlimited});
    }
  }

  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    RungLedger book(history, rungs_, standing_);
    ConfigurationSampler newcomers(history, rungs_, source_);
    std::vector<Suggestion> suggestions;
    while (static_cast<int>(suggestions.size()) < count && !IsCancelled()) {
      std::optional<Suggestion> next = Promote(book);
      if (!next && !book.closed()) {
        const int bracket = NextBracket(book);
        next = newcomers.Next(book.brackets()[bracket].first,
                              history.next_ordinal() + suggestions.size(), root);
        if (!next) {
          book.Close();
          continue;
        }
        if (!book.Begin(bracket, *next)) continue;
      }
      if (!next) break;
      suggestions.push_back(*std::move(next));
    }
    return book.Finish(std::move(suggestions));
  }

 private:
  // The highest rung first, as in the paper. Where no configuration is left and no result is still
  // to come, the best of each rung goes on even if fewer than η are there.
  std::optional<Suggestion> Promote(RungLedger& book) const {
    const int64_t least = book.closed() && book.active() == 0 ? 1 : 0;
    for (int k = rungs_.top() - 1; k >= 0; --k) {
      for (int b = 0; b < static_cast<int>(standing_.size()); ++b) {
        const int64_t most = std::max(book.brackets()[b].cells[k].ended / rungs_.eta(), least);
        if (auto promoted = book.Promote(b, k, most)) return promoted;
      }
    }
    return std::nullopt;
  }

  // The bracket that lags most behind its share, Hyperband's n.
  int NextBracket(const RungLedger& book) const {
    int best = 0;
    double most = 0;
    for (int b = 0; b < static_cast<int>(standing_.size()); ++b) {
      const auto begun = static_cast<double>(book.brackets()[b].cells[b].entered);
      const double due = static_cast<double>(rungs_.BracketSize(rungs_.top() - b)) / (begun + 1);
      if (due > most) {
        most = due;
        best = b;
      }
    }
    return best;
  }

  Rungs rungs_;
  ConfigSource source_;
  std::vector<RungBracket> standing_;
};

std::vector<SettingInfo> AshaSettings() {
  using Type = SettingInfo::Type;
  std::vector<SettingInfo> more = ConfigSourceSettings("random");
  more.push_back({.name = "brackets",
                  .type = Type::kInt,
                  .default_value = "1",
                  .min = 1,
                  .max = 64,
                  .help = "bracket b begins on rung b; more of them where early losses mislead"});
  more.push_back({.name = "reduction_factor",
                  .type = Type::kInt,
                  .min = 2,
                  .max = 1e6,
                  .help = "another name of eta"});
  more.push_back({.name = "max_resource",
                  .type = Type::kDouble,
                  .min = 1,
                  .max = 0x1p53,
                  .help = "another name of r_l"});
  return RungSettings(more);
}

SHIRABE_REGISTER(AlgorithmInfo,
                 {.name = "asha",
                  .help = "Successive halving that never waits: trains many configurations briefly "
                          "and promotes the best as results come; for many machines at once.",
                  .settings = AshaSettings(),
                  .create = &Asha::Create,
                  .reshape = &ReshapeToRungs,
                  .several_objectives = true,
                  .constraints = true});

}  // namespace
}  // namespace shirabe::suggestion
