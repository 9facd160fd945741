// Configurations that begin on a rung: points without their resource that nobody has tried with
// any amount of it. They come at random or from another algorithm, the searcher, which sees what
// all brackets together have learned, as the history of a space without the resource.
//
// Which results the searcher sees is the rule of BOHB (S. Falkner, A. Klein, F. Hutter, "BOHB:
// Robust and Efficient Hyperparameter Optimization at Scale", ICML 2018, section 3.2): those of the
// highest rung that has enough of them, since rungs cannot be compared with each other; and a fixed
// fraction of the configurations stays random, since what little training shows can mislead.
// Configurations that failed, on any rung, and those without a result yet are shown as such. Of an
// earlier experiment (warm start) the results of its own highest rung are shown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "suggestion/configurations.h"
#include "suggestion/rungs.h"

namespace shirabe::suggestion {

// Where configurations come from; null is at random. Built once per experiment.
struct Searcher {
  std::unique_ptr<Algorithm> algorithm;
  std::string name;
  double random_fraction = 0;
  int64_t enough = 0;  // results on one rung before it is asked

  // From the settings below. kInvalidArgument if it is no algorithm of points alone.
  static StatusOr<Searcher> Create(const Problem& problem, const Rungs& rungs);
};

// searcher, with this default, and random_fraction.
std::vector<SettingInfo> SearcherSettings(const std::string& searcher);

// Serves one proposal; what it is made from must outlive it.
class Newcomers {
 public:
  Newcomers(const History& history, const Rungs& rungs, const Searcher& searcher);

  // The next one, with the resource of `rung` and an explanation; `ordinal` is that of the
  // suggestion, and chooses its random stream. nullopt if every configuration has been tried.
  std::optional<Suggestion> Next(int rung, uint64_t ordinal, const Rng& root);

 private:
  int RungOf(const Point& point) const;
  void BuildModel();
  void AddPrior();
  std::optional<Suggestion> AskSearcher(const Rng& root);

  const History& history_;
  const Rungs& rungs_;
  const Searcher& searcher_;
  Configurations configurations_;
  std::optional<int> model_rung_;  // nullopt while no rung has enough results
  History model_;                  // what the searcher sees
  bool informed_ = false;          // there is something to see
};

}  // namespace shirabe::suggestion
