// Population-based training: M. Jaderberg et al., "Population Based Training of Neural Networks",
// arXiv:1711.09846 (2017), algorithm 1, with truncation selection (section 4.1).
//
//   n   n_population, members that train side by side
//   τ   truncation_threshold: the worst ⌊τ·c⌋ of the c trials of a generation lose
//   exploit: a loser goes on from a winner's checkpoint, with the winner's parameters …
//   explore: … perturbed (suggestion/evolution/pbt_population.h); everyone else goes on unchanged
//
// A generation is one trial of each member, until the program ends. With a resource_name the values
// of that parameter say where generations end (epochs 5, 10, 15, …); without one the program must
// know for itself how far to go from a checkpoint. Members do not wait for each other:
// suggestion/evolution/pbt_population.h.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/text/number.h"
#include "suggestion/algorithm.h"
#include "suggestion/evolution/pbt_population.h"
#include "suggestion/multifidelity/configuration_sampler.h"

namespace shirabe::suggestion {
namespace {

std::optional<double> NumberOf(const Settings& settings, const std::string& name) {
  const std::string* text = FindSetting(settings, name);
  return text == nullptr ? std::nullopt : ParseNumber(*text);
}

// The parameter whose levels are the generations; nullopt if none is named.
StatusOr<std::optional<int>> ResourceOf(const Problem& problem) {
  const std::string* name = FindSetting(problem.settings, "resource_name");
  if (name == nullptr) return std::optional<int>();
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("resource_name \"", *name, "\" ", what));
  };
  const Space& space = problem.space;
  for (int i = 0; i < space.size(); ++i) {
    if (space.axis(i).name() != *name) continue;
    if (space.size() == 1) return wrong("is the only parameter; give another one to tune");
    if (space.axis(i).categorical()) return wrong("is categorical; give an int with a step");
    if (space.axis(i).continuous()) return wrong("is continuous; give it a feasibleSpace.step");
    if (space.axis(i).levels() == 1) {
      return wrong(
          "has one value, and each is one generation; give a min, max and step such as "
          "5, 50 and 5");
    }
    return std::optional<int>(i);
  }
  return wrong("is not a parameter; give one of spec.parameters, of type int");
}

class Pbt : public Algorithm {
 public:
  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
    PopulationOptions options;
    ASSIGN_OR_RETURN(options.resource, ResourceOf(problem));
    options.size = static_cast<int64_t>(*NumberOf(problem.settings, "n_population"));
    options.truncation = *NumberOf(problem.settings, "truncation_threshold");
    return std::make_unique<Pbt>(options, NumberOf(problem.settings, "resample_probability"));
  }

  Pbt(const PopulationOptions& options, std::optional<double> resample)
      : options_(options), resample_(resample) {}

  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    Population population(history, options_);
    TriedConfigurations configurations(history, options_.resource);
    Proposal proposal;
    while (static_cast<int>(proposal.suggestions.size()) < count && !IsCancelled()) {
      Rng rng = root.Fork(history.next_ordinal() + proposal.suggestions.size());
      const auto step = population.Next(rng);
      if (!step) break;
      auto suggestion = step->parent ? Continue(history, configurations, *step, rng)
                                     : Begin(history, configurations, rng);
      if (!suggestion) continue;  // there is no new point to begin with: the member is left out
      suggestion->labels = Population::Labels(*step);
      suggestion->explanation =
          absl::StrCat("member ", step->member, ", generation ", step->generation, ": ", step->why);
      proposal.suggestions.push_back(*std::move(suggestion));
    }
    if (proposal.suggestions.empty()) ExplainOutcome(population, proposal);
    return proposal;
  }

 private:
  double ResourceAt(const History& history, int64_t generation) const {
    if (!options_.resource) return 0;
    return history.space().axis(*options_.resource).Coordinate(generation);
  }

  std::optional<Suggestion> Begin(const History& history, TriedConfigurations& configurations,
                                  Rng& rng) const {
    std::optional<Point> point = configurations.Draw(rng);
    if (!point) return std::nullopt;
    return Suggestion{.point = configurations.With(*std::move(point), ResourceAt(history, 0))};
  }

  std::optional<Suggestion> Continue(const History& history,
                                     const TriedConfigurations& configurations,
                                     const Population::Step& step, Rng& rng) const {
    Point point = configurations.at(*step.parent);
    if (step.exploits) point = Perturb(configurations.space(), point, resample_, rng);
    Suggestion suggestion{
        .point = configurations.With(std::move(point), ResourceAt(history, step.generation)),
        .parent = v1::Parent()};
    suggestion.parent->set_trial(*step.parent + 1);  // step 0: its newest checkpoint
    return suggestion;
  }

  static void ExplainOutcome(const Population& population, Proposal& proposal) {
    const bool training = population.active() > 0;
    proposal.outcome = training ? Proposal::Outcome::kWait : Proposal::Outcome::kExhausted;
    proposal.reason =
        training ? absl::StrCat("all members of the population are training or done: ",
                                population.active(), " of ", population.size(), " train")
                 : "every member has been trained to the end of the resource, or every point has "
                   "been tried and none gave a result";
  }

  PopulationOptions options_;
  std::optional<double> resample_;
};

std::vector<SettingInfo> PbtSettings() {
  using Type = SettingInfo::Type;
  return {
      {.name = "n_population",
       .type = Type::kInt,
       .default_value = "40",
       .min = 2,
       .max = 1e5,
       .help = "members that are trained; about as many as machines, and a tenth of the trials"},
      {.name = "truncation_threshold",
       .type = Type::kDouble,
       .default_value = "0.2",
       .min = 0,
       .max = 1,
       .help = "this part of a generation, at most half, is replaced by as many of the best"},
      {.name = "resample_probability",
       .type = Type::kDouble,
       .min = 0,
       .max = 1,
       .help = "a parameter that is taken over is sampled with it; else, and by default always, "
               "it is moved by a fifth"},
      {.name = "resource_name",
       .help = "the parameter that says for how long a trial trains, in all: each of its values "
               "ends a generation; without it the program decides"},
      {.name = "suggestion_trial_dir",
       .help = "the path of the folder where programs of Katib's keep their checkpoint; each trial "
               "has its own there, which begins with a copy of its parent's"},
  };
}

SHIRABE_REGISTER(AlgorithmInfo,
                 {.name = "pbt",
                  .help = "Trains a population, whose worst members again and again go on from the "
                          "checkpoints of the best; for schedules that should change in training.",
                  .settings = PbtSettings(),
                  .create = &Pbt::Create,
                  .several_objectives = true,
                  .constraints = true});

}  // namespace
}  // namespace shirabe::suggestion
