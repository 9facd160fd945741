// What a suggestion costs and finds where there are two objectives, or three: whole searches of
// functions whose fronts are known in kind.
//
//   front_speed [SEEDS [TRIALS [ALGORITHM [FUNCTION]]]]    by default 3, 150, bayesianoptimization
//                                                          and all functions
//
// Of each function: milliseconds of processor time of a suggestion, the mean over trials 1 to 50,
// to 100 and to 150 (thirds of TRIALS), and the largest; then the hypervolume after as many, and
// that of all that the searches of the run found together. `mixed` has whole numbers and
// categories, as tables of trained networks have.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/memory.h"
#include "suggestion/algorithm.h"
#include "suggestion/history.h"
#include "suggestion/pareto/hypervolume.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

constexpr int kThirds = 3;

Space Reals(int count) {
  std::vector<v1::ParameterSpec> parameters;
  for (int i = 0; i < count; ++i) parameters.push_back(Double("x" + std::to_string(i), {0, 1}));
  return Make(parameters);
}

Space Mixed() {
  return Make({Int("depth", {1, 16}), Int("width", {4, 256}, v1::LOG_UNIFORM),
               Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM), Int("batch", {8, 512}, v1::LOG_UNIFORM),
               Categorical("kind", {"a", "b", "c"})});
}

double Sphere(const Point& x, double at, double steep) {
  double sum = 0;
  for (size_t j = 0; j < x.size(); ++j) {
    sum += std::pow(steep, static_cast<double>(j) / static_cast<double>(x.size() - 1)) *
           (x[j] - at) * (x[j] - at);
  }
  return sum;
}

double Ripples(const Point& x, double at) {
  double sum = 0;
  for (const double one : x) sum += 1 - std::cos(6 * M_PI * (one - at));
  return sum;
}

Losses Spheres(const Point& x) { return {Sphere(x, 0.3, 1), Sphere(x, 0.7, 30)}; }
Losses Rippled(const Point& x) {
  return {Sphere(x, 0.25, 1) + 0.05 * Ripples(x, 0.25), Sphere(x, 0.75, 10)};
}

Losses Dtlz2(const Point& x, size_t objectives) {
  double g = 1;
  for (size_t j = objectives - 1; j < x.size(); ++j) g += (x[j] - 0.5) * (x[j] - 0.5);
  Losses losses(objectives, g);
  for (size_t k = 0; k < objectives; ++k) {
    for (size_t j = 0; j + k + 1 < objectives; ++j) losses[k] *= std::cos(x[j] * M_PI / 2);
    if (k > 0) losses[k] *= std::sin(x[objectives - 1 - k] * M_PI / 2);
  }
  return losses;
}
Losses Dtlz2Of2(const Point& x) { return Dtlz2(x, 2); }
Losses Dtlz2Of3(const Point& x) { return Dtlz2(x, 3); }

// An error that falls with size, and the size.
Losses Network(const Point& x) {
  const double size = 0.5 * x[0] + 0.5 * x[1], off = x[2] - 0.6 + 0.2 * size;
  const double penalty = x[4] == 0 ? 0.1 : x[4] == 1 ? 0.02 * (1 + x[0]) : 0.05;
  return {std::exp(-3 * size) + 2 * off * off + 0.1 * std::abs(x[3] - 0.4) + penalty,
          size + 0.02 * x[4]};
}

struct Function {
  const char* name;
  Losses (*losses)(const Point& x);
  Losses reference;
  Space space;
};

double ProcessorMilliseconds() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Search {
  double spent[kThirds] = {}, most = 0;
  std::vector<Losses> found;
};

struct Asked {
  std::string algorithm;
  int trials;
  uint64_t seed;
};

Search Run(const Function& function, const Asked& asked) {
  const auto objectives = static_cast<int>(function.reference.size());
  const auto algorithm =
      CreateAlgorithm(asked.algorithm, {.space = function.space, .objectives = objectives}).value();
  History history(function.space);
  Search search;
  for (int i = 0; i < asked.trials; ++i) {
    const double start = ProcessorMilliseconds();
    const Proposal proposal = algorithm->Propose(history, 1, Rng(asked.seed)).value();
    const double took = ProcessorMilliseconds() - start;
    search.spent[i * kThirds / asked.trials] += took;
    search.most = std::max(search.most, took);
    const Point& point = proposal.suggestions.at(0).point;
    Losses losses = function.losses(point);
    search.found.push_back(losses);
    history.Add(point, {.state = TrialState::kCompleted,
                        .loss = losses[0],
                        .ended = i + int64_t{1},
                        .further_losses = {losses.begin() + 1, losses.end()}});
    history.set_memo(proposal.memo);
  }
  return search;
}

void Compare(const Function& function, const Asked& asked) {
  std::vector<Search> searches;
  std::vector<Losses> all;
  for (uint64_t seed = 1; seed <= asked.seed; ++seed) {
    searches.push_back(Run(function, {asked.algorithm, asked.trials, seed}));
    all.insert(all.end(), searches.back().found.begin(), searches.back().found.end());
  }
  const double whole = Hypervolume(all, function.reference);
  const auto seeds = static_cast<double>(searches.size());
  double spent = 0, most = 0;
  std::printf("%-10s", function.name);
  for (int third = 0; third < kThirds; ++third) {
    for (const Search& search : searches) spent += search.spent[third];
    std::printf(" %7.2f", spent * kThirds / (third + 1) / asked.trials / seeds);
  }
  for (const Search& search : searches) most = std::max(most, search.most);
  std::printf(" %7.1f", most);
  for (int third = 1; third <= kThirds; ++third) {
    double sum = 0;
    for (const Search& search : searches) {
      const auto end = search.found.begin() + asked.trials * third / kThirds;
      sum += Hypervolume({search.found.begin(), end}, function.reference) / seeds;
    }
    std::printf(" %9.5f", sum);
  }
  std::printf("  of %.5f\n", whole);
  std::fflush(stdout);
}

}  // namespace
}  // namespace shirabe::suggestion

int main(int argc, char** argv) {
  using namespace shirabe::suggestion;
  shirabe::KeepFreedMemory();
  const Asked asked{argc > 3 ? argv[3] : "bayesianoptimization",
                    argc > 2 ? std::atoi(argv[2]) : 150,
                    argc > 1 ? static_cast<uint64_t>(std::atoi(argv[1])) : 3};
  std::printf("%-10s %7s %7s %7s %7s %9s\n", "function", "ms, 1/3", "2/3", "all", "most",
              "hypervolume after 1/3, 2/3 and all trials, of what all found");
  const std::string only = argc > 4 ? argv[4] : "";
  for (const Function& function : {Function{"spheres", Spheres, {1.5, 20}, Reals(5)},
                                   Function{"rippled", Rippled, {2, 8}, Reals(5)},
                                   Function{"dtlz2", Dtlz2Of2, {1.1, 1.1}, Reals(6)},
                                   Function{"mixed", Network, {1.2, 1.1}, Mixed()},
                                   Function{"dtlz2-m3", Dtlz2Of3, {1.1, 1.1, 1.1}, Reals(7)}}) {
    if (only.empty() || only == function.name) Compare(function, asked);
  }
  return 0;
}
