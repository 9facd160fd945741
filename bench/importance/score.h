// How well the importances of a history tell what is known to be true, for the benchmarks of this
// folder.
//
//   L1       Σ_j |share found - true share|, of shares that sum to 1
//   top 2    how many of the two most important parameters are among the first two found
//   covered  of the true total shares, those within the band of 90 %
//   wrong    of the verdicts other than "too few trials to tell", those that are not true
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "suggestion/algorithm.h"
#include "suggestion/analysis/importance.h"
#include "suggestion/processor_level.h"
#include "tests/suggestion/analysis_data.h"

namespace shirabe::suggestion::analysis {

// As the trials of an experiment with that algorithm, one after another.
inline History HistoryOf(const std::string& algorithm_name, const Space& space, int count,
                         const std::pair<Loss, uint64_t>& loss_and_seed) {
  const auto& [loss, seed] = loss_and_seed;
  const auto algorithm = *CreateAlgorithm(algorithm_name, {.space = space});
  History history(space);
  while (history.size() < count) {
    const Proposal proposal = *algorithm->Propose(history, 1, Rng(seed));
    const Point& point = proposal.suggestions.front().point;
    history.Add(point, {.state = TrialState::kCompleted, .loss = loss(point)});
    history.set_memo(proposal.memo);
  }
  return history;
}

inline std::vector<double> Shares(std::vector<double> totals) {
  const double sum = std::accumulate(totals.begin(), totals.end(), 0.0);
  for (double& total : totals) total = sum > 0 ? total / sum : 0;
  return totals;
}

inline std::vector<size_t> First(const std::vector<double>& values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

inline double L1(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += std::abs(a[j] - b[j]);
  return sum;
}

inline double TopTwo(const std::vector<double>& a, const std::vector<double>& b) {
  const auto first = First(a, 2), second = First(b, 2);
  double both = 0;
  for (const size_t j : first) both += std::count(second.begin(), second.end(), j) > 0 ? 0.5 : 0;
  return both;
}

class Score {
 public:
  // What the analyses find in `history`, beside the true total shares.
  void Add(const History& history, const std::vector<double>& truth) {
    const auto start = std::chrono::steady_clock::now();
    const auto found = AnalysesForThisProcessor().importances(history).answer;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds_ += took.count();
    std::vector<double> totals;
    for (size_t j = 0; j < truth.size(); ++j) {
      totals.push_back(found[j].index.total.value);
      AddBand(found[j], truth[j]);
    }
    l1_ += L1(Shares(totals), Shares(truth));
    top_ += TopTwo(totals, truth);
    const std::vector<double> ped = PedAnovaOf(history).importances;
    ped_l1_ += L1(Shares(ped), Shares(truth));
    ped_top_ += TopTwo(ped, truth);
    runs_ += 1;
  }

  static void PrintHead(const char* what) {
    std::printf("%-24s %-8s %5s | %5s %5s %7s %5s %5s %5s %7s | %5s %5s\n", what, "trials", "n",
                "L1", "top2", "covered", "width", "told", "wrong", "ms", "ped", "top2");
  }
  void Print(const std::string& name, const char* trials, int n) const {
    std::printf("%-24s %-8s %5d | %5.2f %5.2f %7.2f %5.2f %5.2f %5.2f %7.1f | %5.2f %5.2f\n",
                name.c_str(), trials, n, l1_ / runs_, top_ / runs_, covered_ / cells_,
                width_ / cells_, told_ / cells_, told_ > 0 ? wrong_ / told_ : 0,
                1e3 * seconds_ / runs_, ped_l1_ / runs_, ped_top_ / runs_);
    std::fflush(stdout);
  }

 private:
  void AddBand(const ParameterImportance& found, double truth) {
    const Estimate& total = found.index.total;
    cells_ += 1;
    width_ += total.high - total.low;
    // What sampling alone makes of a true 0 is no error.
    covered_ += total.low - 0.005 <= truth && truth <= total.high + 0.005 ? 1 : 0;
    if (found.verdict == Verdict::kTooFewTrials) return;
    told_ += 1;
    wrong_ += (found.verdict == Verdict::kMatters) != (truth > kNegligible) ? 1 : 0;
  }

  double l1_ = 0, top_ = 0, covered_ = 0, told_ = 0, wrong_ = 0, cells_ = 0, width_ = 0, runs_ = 0,
         ped_l1_ = 0, ped_top_ = 0, seconds_ = 0;
};

}  // namespace shirabe::suggestion::analysis
