// The default: chooses another algorithm by the space, the budget and the history, and says which
// and why. The choice is a pure function of those, so it is the same after a restart; it changes
// only with the number of trials, and the next algorithm then starts from all that was found.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "suggestion/algorithm.h"

namespace shirabe::suggestion {
namespace {

// Up to here a Gaussian process uses every result; a suggestion costs the square of their number.
constexpr int64_t kModelled = 1000;
constexpr int kModelledDimensions = 200;

struct Choice {
  std::string name;
  std::string why;
};

Choice Choose(const Problem& problem, int64_t trials) {
  const Space& space = problem.space;
  int categorical = 0;
  for (int i = 0; i < space.size(); ++i) categorical += space.axis(i).categorical() ? 1 : 0;
  if (problem.max_trials > 1 && problem.parallel >= problem.max_trials) {
    return {"sobol", absl::StrCat("all ", problem.max_trials,
                                  " trials may run at once, so none can learn from another")};
  }
  if (space.size() > kModelledDimensions) {
    return {"tpe", absl::StrCat(space.size(), " parameters are too many for a model of them all")};
  }
  if (trials < kModelled) {
    return {"bayesianoptimization",
            absl::StrCat("up to ", kModelled, " trials a Gaussian process finds the best points")};
  }
  if (problem.objectives > 1 || problem.constraints > 0) {
    return {"motpe", absl::StrCat("after ", kModelled, " trials, ",
                                  problem.objectives > 1 ? "several objectives" : "constraints")};
  }
  if (categorical == 0 && space.size() > 1 && !space.has_rules() && space.priors() == nullptr) {
    return {"cmaes", absl::StrCat("after ", kModelled, " trials, numbers only: evolution goes on")};
  }
  return {"multivariate-tpe", absl::StrCat("after ", kModelled, " trials, with ",
                                           space.has_rules()           ? "rules between parameters"
                                           : space.priors() != nullptr ? "priors"
                                                                       : "categories")};
}

class Auto : public Algorithm {
 public:
  explicit Auto(const Problem& problem) : problem_(problem) {}

  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
    return std::make_unique<Auto>(problem);
  }

  // The memo is the chosen one's, after a line with its name.
  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    const Choice choice = Choose(problem_, history.size());
    ASSIGN_OR_RETURN(Algorithm * algorithm, Member(choice.name));
    ASSIGN_OR_RETURN(Proposal proposal, algorithm->Propose(Own(history, choice), count, root));
    if (!proposal.memo.empty()) proposal.memo = Head(choice) + proposal.memo;
    if (proposal.memo.size() > kMaxMemo) proposal.memo.clear();
    proposal.algorithm = absl::StrCat(choice.name, " (", choice.why, ")");
    return proposal;
  }

  // By the one that chose the last trial; of its own, since Propose may be using the members.
  StatusOr<std::optional<Recommendation>> Recommend(const History& history) const override {
    const Choice choice = Choose(problem_, std::max<int64_t>(0, history.size() - 1));
    ASSIGN_OR_RETURN(const std::unique_ptr<Algorithm> algorithm, Make(choice.name));
    return algorithm->Recommend(Own(history, choice));
  }

  StatusOr<std::optional<double>> BoundRegret(const History& history,
                                              const Rng& root) const override {
    const Choice choice = Choose(problem_, std::max<int64_t>(0, history.size() - 1));
    ASSIGN_OR_RETURN(const std::unique_ptr<Algorithm> algorithm, Make(choice.name));
    return algorithm->BoundRegret(Own(history, choice), root);
  }
  static bool BoundsRegret(const Problem& problem) {
    return problem.objectives == 1 && problem.constraints == 0 &&
           Choose(problem, 0).name == "bayesianoptimization";
  }

 private:
  static std::string Head(const Choice& choice) { return choice.name + "\n"; }

  // The history with the chosen one's own memo.
  static History Own(const History& history, const Choice& choice) {
    const std::string head = Head(choice);
    const bool own = history.memo().compare(0, head.size(), head) == 0;
    History mine = history;
    mine.set_memo(own ? history.memo().substr(head.size()) : "");
    return mine;
  }

  StatusOr<Algorithm*> Member(const std::string& name) {
    std::unique_ptr<Algorithm>& member = members_[name];
    if (member == nullptr) {
      ASSIGN_OR_RETURN(member, Make(name));
    }
    return member.get();
  }

  StatusOr<std::unique_ptr<Algorithm>> Make(const std::string& name) const {
    Problem problem = problem_;
    problem.settings.clear();
    return CreateAlgorithm(name, problem);
  }

  Problem problem_;
  std::map<std::string, std::unique_ptr<Algorithm>> members_;
};

SHIRABE_REGISTER(AlgorithmInfo, {.name = "auto",
                                 .help = "Chooses an algorithm by the space, the budget and the "
                                         "number of trials, and says which and why.",
                                 .create = &Auto::Create,
                                 .bounds_regret = &Auto::BoundsRegret,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true,
                                 .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
