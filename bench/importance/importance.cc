// How well importances tell, and what they cost: known functions, histories of random and of
// Bayesian trials, the exact total shares beside what is found (score.h).
//
//   importance_bench [SEEDS]      prints a table; a few minutes
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "bench/importance/score.h"

namespace shirabe::suggestion::analysis {
namespace {

struct Known {
  std::string name;
  Space space;
  Loss loss;
};

double Levels(const Space& space, const Point& x, int j) {
  return static_cast<double>(space.axis(j).Level(x[j]));
}

Space Mixed() {
  return Make({Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM), Double("drop", {0, 0.6}),
               Int("layers", {1, 6}), Categorical("opt", {"sgd", "adam", "lion"}),
               Categorical("act", {"relu", "gelu", "tanh", "silu"}), Double("decay", {0, 1}),
               Int("seed", {1, 100})});
}

// A loss with an optimum within the range of the learning rate, which diverges above it.
double Training(const Space& space, const Point& x) {
  const double lr = x[0] - (x[3] == 0 ? 0.7 : 0.5);
  const double diverged = lr > 0.3 ? 4 * (lr - 0.3) : 0;
  return 0.2 + 2 * lr * lr + diverged + 0.3 * std::abs(Levels(space, x, 2) - 3) / 5 +
         0.1 * (x[1] - 0.4) * (x[1] - 0.4) + (x[4] == 2 ? 0.05 : 0) + 0.02 * x[5];
}

std::vector<Known> KnownFunctions() {
  const Space mixed = Mixed();
  std::vector<Known> known;
  known.push_back({"ishigami, 3 of 6", Reals(6), Ishigami});
  known.push_back({"g-function, 8", Reals(8), [](const Point& x) {
                     return GFunction(x, {0, 1, 4.5, 9, 99, 99, 99, 99});
                   }});
  known.push_back({"sum with a product, 10", Reals(10), [](const Point& x) {
                     return 3 * x[0] + std::sin(5 * x[1]) + 4 * x[2] * x[3] +
                            2 * (x[4] - 0.5) * (x[4] - 0.5);
                   }});
  known.push_back(
      {"training, mixed 7", mixed, [mixed](const Point& x) { return Training(mixed, x); }});
  known.push_back({"log of a valley, 6", Reals(6), [](const Point& x) {
                     double sum = 1e-3;
                     for (size_t j = 0; j < x.size(); ++j) {
                       sum += std::pow(0.4, static_cast<double>(j)) * (x[j] - 0.6) * (x[j] - 0.6);
                     }
                     return std::log(sum);
                   }});
  known.push_back({"ellipsoid, 6", Reals(6), [](const Point& x) {
                     double sum = 0;
                     for (size_t j = 0; j < x.size(); ++j) {
                       const double z = 10 * (x[j] - 0.2 - 0.1 * static_cast<double>(j));
                       sum += std::pow(10, 0.6 * static_cast<double>(j)) * z * z;
                     }
                     return sum;
                   }});
  known.push_back({"rosenbrock, 5", Reals(5), [](const Point& x) {
                     double sum = 0;
                     for (size_t j = 0; j + 1 < x.size(); ++j) {
                       const double a = 4 * x[j] - 2, b = 4 * x[j + 1] - 2;
                       sum += 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a);
                     }
                     return sum;
                   }});
  known.push_back({"rastrigin, 4", Reals(4), [](const Point& x) {
                     double sum = 0;
                     for (size_t j = 0; j < x.size(); ++j) {
                       const double z = (4 * x[j] - 1.5) / static_cast<double>(1 + j);
                       sum += z * z - 3 * std::cos(2 * std::numbers::pi * z);
                     }
                     return sum;
                   }});
  return known;
}

std::vector<double> TrueTotals(const Known& known) {
  const gp::InputLayout layout(known.space);
  std::vector<double> totals;
  for (const auto& index : SobolIndices(layout, Exactly(layout, known.loss), 1 << 15)) {
    totals.push_back(index.total.value);
  }
  return totals;
}

int Run(int seeds) {
  Score::PrintHead("function");
  for (const Known& known : KnownFunctions()) {
    const std::vector<double> truth = TrueTotals(known);
    for (const bool random : {true, false}) {
      for (const int n : {8, 15, 30, 60, 120}) {
        Score score;
        for (int seed = 1; seed <= seeds; ++seed) {
          const auto root = static_cast<uint64_t>(seed);
          score.Add(random ? RandomHistory(known.space, n, known.loss, root)
                           : HistoryOf("bayesianoptimization", known.space, n, {known.loss, root}),
                    truth);
        }
        score.Print(known.name, random ? "random" : "bayesian", n);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace shirabe::suggestion::analysis

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  return shirabe::suggestion::analysis::Run(seeds);
}
