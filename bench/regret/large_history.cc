// Searches that begin with thousands of results which are there already, as after an import or a
// restart without a memo: what the first suggestion costs, and what the next ones find.
//
//   large_history RESULTS [SEEDS [SUGGESTIONS]]
//
// Ten parameters; the results are those of a local search by chance, a quarter of them anywhere.
// Of each function and algorithm: seconds of processor time of the first suggestion and of each
// later one, which has a memo; and by how many powers of ten the best loss fell, mean over seeds.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "suggestion/algorithm.h"
#include "suggestion/history.h"
#include "tests/suggestion/analysis_data.h"

namespace shirabe::suggestion {
namespace {

constexpr int kParameters = 10;

double Rosenbrock(const Point& x) {
  double sum = 1e-3;
  for (size_t j = 0; j + 1 < x.size(); ++j) {
    const double a = 4 * x[j] - 2, b = 4 * x[j + 1] - 2;
    sum += 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a);
  }
  return sum;
}

double Ellipsoid(const Point& x) {
  double sum = 1e-3;
  for (size_t j = 0; j < x.size(); ++j) {
    const double z = 4 * (x[j] - 0.3 - 0.04 * static_cast<double>(j));
    sum += std::pow(10, 0.4 * static_cast<double>(j)) * z * z;
  }
  return sum;
}

double Rastrigin(const Point& x) {
  double sum = 1e-3;
  for (const double one : x) {
    const double z = 4 * (one - 0.37);
    sum += z * z + 2 * (1 - std::cos(2 * M_PI * z));
  }
  return sum;
}

History Past(const Space& space, const analysis::Loss& loss, int results, uint64_t seed) {
  History history(space);
  Rng rng(seed);
  Point best = space.Sample(rng);
  for (int i = 0; i < results; ++i) {
    Point point = space.Sample(rng);
    if (i % 4 != 0) {
      for (int j = 0; j < space.size(); ++j) {
        point[j] = std::clamp(best[j] + 0.08 * rng.Normal(), 0.0, 1.0);
      }
    }
    if (loss(point) < loss(best)) best = point;
    history.Add(point,
                {.state = TrialState::kCompleted, .loss = loss(point), .ended = i + int64_t{1}});
  }
  return history;
}

double BestOf(const History& history) {
  double best = HUGE_VAL;
  for (int64_t i = 0; i < history.size(); ++i) best = std::min(best, history.trial(i).loss);
  return best;
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// What is there, and how many suggestions are to follow.
struct Begun {
  History history;
  int suggestions;
};

struct Means {
  double first = 0, later = 0, gain = 0;
};

void Search(const std::string& name, const analysis::Loss& loss, const Begun& begun, Means& means) {
  auto [history, suggestions] = begun;
  const auto algorithm = *CreateAlgorithm(name, {.space = history.space()});
  const double before = BestOf(history);
  const auto seed = static_cast<uint64_t>(history.size());
  for (int i = 0; i < suggestions; ++i) {
    const double start = ProcessorSeconds();
    const Proposal proposal = *algorithm->Propose(history, 1, Rng(seed));
    const double took = ProcessorSeconds() - start;
    (i == 0 ? means.first : means.later) += i == 0 ? took : took / (suggestions - 1);
    const Point& point = proposal.suggestions.front().point;
    history.Add(
        point, {.state = TrialState::kCompleted, .loss = loss(point), .ended = history.size() + 1});
    history.set_memo(proposal.memo);
  }
  means.gain += std::log10(before / BestOf(history));
}

int Run(int results, int seeds, int suggestions) {
  const std::pair<const char*, analysis::Loss> functions[] = {
      {"rosenbrock", Rosenbrock}, {"ellipsoid", Ellipsoid}, {"rastrigin", Rastrigin}};
  std::printf("%-12s %-22s %9s %9s %6s\n", "function", "algorithm", "first, s", "later, s", "gain");
  const Space space = analysis::Reals(kParameters);
  for (const auto& [function, loss] : functions) {
    for (const char* name : {"bayesianoptimization", "tpe", "cmaes"}) {
      Means means;
      for (int seed = 1; seed <= seeds; ++seed) {
        Search(name, loss, {Past(space, loss, results, static_cast<uint64_t>(seed)), suggestions},
               means);
      }
      std::printf("%-12s %-22s %9.3f %9.4f %6.2f\n", function, name, means.first / seeds,
                  means.later / seeds, means.gain / seeds);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace shirabe::suggestion

int main(int argc, char** argv) {
  const auto number = [&](int place, int otherwise) {
    return argc > place ? std::max(2, std::atoi(argv[place])) : otherwise;
  };
  if (argc < 2) {
    std::fprintf(stderr, "large_history RESULTS [SEEDS [SUGGESTIONS]]\n");
    return 2;
  }
  return shirabe::suggestion::Run(number(1, 5000), number(2, 3), number(3, 20));
}
