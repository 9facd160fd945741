// Configurations that begin on a rung: points without their resource, not tried yet with any
// amount of it. They come at random or from another algorithm, the searcher, which sees what
// all brackets together have learned, as the history of a space without the resource.
//
// The searcher is shown every configuration once, with its rank among all as the loss: losses of
// different rungs cannot be compared, ranks can (see RankAcrossRungs). BOHB (S. Falkner, A. Klein,
// F. Hutter, "BOHB: Robust and Efficient Hyperparameter Optimization at Scale", ICML 2018, section
// 3.2) shows only the highest rung that has enough results, and so forgets most of what was
// trained; as there, a fixed fraction of the configurations stays random, since what little
// training shows can mislead. With several objectives, or constraints, a configuration's loss on a
// rung is its place there (TrialOrder), so that the searcher needs to know of one only. Those that
// failed, on any rung, and those without a result yet are shown as such. Of an earlier experiment
// (warm start) the results of its own highest rung are shown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "suggestion/history.h"
#include "suggestion/multifidelity/rung_ledger.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {

// What has been tried apart from how long it was trained: the history's points without their
// resource. Serves one proposal. Used by the algorithms that decide for how long a trial trains.
class TriedConfigurations {
 public:
  // `axis` is the resource; nullopt where there is none, and then every point is a configuration.
  TriedConfigurations(const History& history, std::optional<int> axis);
  TriedConfigurations(const TriedConfigurations&) = delete;

  const Space& space() const { return tried_.space(); }
  // Of trial `index`.
  Point at(int64_t index) const { return tried_.point(index); }
  // False if the configuration has been tried or taken.
  bool Claim(const Point& configuration) { return unvisited_.Claim(configuration); }
  // Takes a random one; nullopt if there is none left.
  std::optional<Point> Draw(Rng& rng) { return unvisited_.Draw(rng); }
  // The whole point, with this coordinate of the resource.
  Point With(Point configuration, double resource) const;

 private:
  std::optional<int> axis_;
  History tried_;
  UnvisitedPoints unvisited_;
};

// Where configurations come from; null is at random. Built once per experiment.
struct ConfigSource {
  std::unique_ptr<Algorithm> algorithm;
  std::string name;
  double random_fraction = 0;
  int64_t enough = 0;  // configurations with a result before it is asked

  // From the settings below. kInvalidArgument if it is no algorithm of points alone.
  static StatusOr<ConfigSource> Create(const Problem& problem, const Rungs& rungs);
};

// searcher, with this default, and random_fraction.
std::vector<SettingInfo> ConfigSourceSettings(const std::string& searcher);

// What is known of a configuration: its loss by rung, NaN where there is none.
using RungLosses = std::vector<double>;

// The places 0 … n-1 of n configurations, each with one loss at least, best first. Those that have
// reached the top rung are ordered by their losses there. Then rung by rung downwards: those that
// got no further than this rung are compared, on this rung, with those placed already that were on
// it as well; one that does better than all but m of them comes right behind the m-th in order.
// Of a bracket that means behind those that were promoted, except for whom they were luckier than.
std::vector<int64_t> RankAcrossRungs(const std::vector<RungLosses>& configurations);

// Serves one proposal; what it is made from must outlive it.
class ConfigurationSampler {
 public:
  ConfigurationSampler(const History& history, const Rungs& rungs, const ConfigSource& searcher);

  // The next one, with the resource of `rung` and an explanation; `ordinal` is that of the
  // suggestion, and chooses its random stream. nullopt if every configuration has been tried.
  std::optional<Suggestion> Next(int rung, uint64_t ordinal, const Rng& root);

 private:
  // What the history says of each configuration.
  struct Known {
    std::vector<RungLosses> losses;        // of those with one
    std::vector<int64_t> trial;            // one of theirs, to find the point by
    std::vector<int64_t> without;          // trials without a loss
    absl::flat_hash_set<uint64_t> failed;  // Space::Key of those that failed on some rung
  };

  int RungOf(const Point& point) const;
  Known Collect() const;
  std::vector<double> RungOrder() const;
  void BuildModel();
  void AddPrior();
  std::optional<Suggestion> AskConfigSource(const Rng& root);

  const History& history_;
  const Rungs& rungs_;
  const ConfigSource& source_;
  TriedConfigurations configurations_;
  int64_t ranked_ = 0;     // configurations with a result
  History model_;          // what the searcher sees
  bool informed_ = false;  // there is enough to see
};

}  // namespace shirabe::suggestion
