// The contract of suggestion/algorithm.h, for every registered algorithm. A new algorithm is tested
// by being registered. An algorithm may refuse a problem when it is built (a grid refuses
// continuous parameters), but not all of them, and only with kInvalidArgument and a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "suggestion/algorithm.h"
#include "tests/suggestion/cpu_time.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;
using Outcome = Proposal::Outcome;

struct NamedSpace {
  std::string name;
  Space space;
};

std::vector<NamedSpace> Spaces() {
  std::vector<v1::ParameterSpec> twenty;
  for (int i = 0; i < 20; ++i) twenty.push_back(Double("x" + std::to_string(i), {-1, 1}));
  return {
      {"one continuous", Make({Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM)})},
      {"mixed", Make({Double("lr", {1e-5, 1e-1}, v1::LOG_NORMAL),
                      Int("n", {1, 512}, v1::LOG_UNIFORM), Discrete("bs", {16, 32, 64}),
                      Categorical("opt", {"sgd", "adam", "lion"}), Double("drop", {0, 0.5, 0.1})})},
      {"finite mixed", Make({Int("n", {1, 9, 2}), Double("m", {0.1, 0.9, 0.2}, v1::NORMAL),
                             Categorical("opt", {"sgd", "adam"}), Discrete("bs", {1, 10})})},
      {"categories only", Make({Categorical("a", {"x", "y", "z"}), Categorical("b", {"p", "q"})})},
      {"one point", Make({Int("n", {3, 3}), Categorical("c", {"only"})})},
      {"two points", Make({Int("n", {0, 1})})},
      {"a million points", Make({Int("a", {1, 1000}), Int("b", {1, 1000})})},
      {"2^64 points", Make({Int("a", {0, 0x1p32 - 1}), Int("b", {1, 0x1p32})})},
      {"twenty dimensions", Make(twenty)},
      {"conditions", Make({Categorical("opt", {"sgd", "adam", "lion"}), Double("m", {0, 1}),
                           Int("layers", {1, 4}), Double("drop", {0, 0.5}),
                           Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM)},
                          R"({"conditions": [{"parameter": "m", "when": {"opt": ["sgd"]}},
                               {"parameter": "drop",
                                "when": {"m": {"min": 0.3}, "layers": [2, 3]}}],
                              "forbidden": [{"opt": ["lion"], "layers": {"min": 3}}]})")},
      {"finite conditions",
       Make({Categorical("opt", {"sgd", "adam"}), Int("n", {1, 9, 2}), Discrete("bs", {1, 10})},
            R"({"conditions": [{"parameter": "n", "when": {"opt": "sgd"}}],
                                     "forbidden": [{"n": [3], "bs": 10}]})")},
      {"sums",
       Make({Double("a", {0, 1}), Double("b", {0, 1}), Double("c", {0, 1}), Int("n", {1, 9})},
            R"({"linear": [{"sum": {"a": 1, "b": 1, "c": 1}, "max": 0.6},
                                   {"sum": {"n": 0.1, "a": -1}, "min": 0.1}]})")},
      {"priors",
       Make({Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM), Categorical("opt", {"sgd", "adam"}),
             Int("n", {1, 9})},
            R"({"priors": {"lr": {"center": 1e-4, "confidence": "high"}, "opt": {"value": "adam"},
                           "n": {"center": 9, "confidence": "low"}},
                "conditions": [{"parameter": "n", "when": {"opt": "sgd"}}]})")},
  };
}

struct NamedHistory {
  std::string name;
  History history;
};

// `trials` random points; the view of each from `view`.
template <class View>
History Filled(const Space& space, int trials, View view) {
  History history(space);
  Rng rng(11);
  for (int i = 0; i < trials;) {
    const Point point = space.Sample(rng);
    if (space.Allows(point)) history.Add(point, view(i++));
  }
  return history;
}

TrialSummary Completed(double loss) {
  return {.state = TrialState::kCompleted, .loss = loss, .last_step = 10};
}

// Two earlier experiments had the same space.
History WithPrior(History history, double scale) {
  std::vector<PriorTrial> prior;
  Rng rng(13);
  for (int i = 0; i < 40; ++i) {
    prior.push_back(
        {.point = history.space().Sample(rng), .loss = scale * std::sin(i), .source = i / 20});
  }
  history.SetPrior(std::move(prior));
  return history;
}

std::vector<NamedHistory> Histories(const Space& space) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr int kMany = 30;
  const auto wave = [](int i) { return Completed(std::sin(i) + 0.01 * i); };
  std::vector<NamedHistory> histories = {
      {"nothing", History(space)},
      {"one completed", Filled(space, 1, wave)},
      {"one active", Filled(space, 1, [](int) { return TrialSummary{}; })},
      {"many completed", Filled(space, kMany, wave)},
      {"all infeasible",
       Filled(space, kMany, [](int) { return TrialSummary{.state = TrialState::kInfeasible}; })},
      {"all active", Filled(space, kMany, [](int) { return TrialSummary{}; })},
      {"NaN losses", Filled(space, kMany, [&](int) { return Completed(kNan); })},
      {"infinite losses",
       Filled(space, kMany, [&](int i) { return Completed(i % 2 == 0 ? kInfinity : -kInfinity); })},
      {"huge and tiny losses",
       Filled(space, kMany, [](int i) { return Completed(i % 2 == 0 ? 1e308 : -1e-308); })},
      {"equal losses", Filled(space, kMany, [](int) { return Completed(1); })},
      {"of every state", Filled(space, kMany,
                                [](int i) {
                                  return TrialSummary{.state = static_cast<TrialState>(i % 3),
                                                      .early_stopped = i % 2 == 0,
                                                      .loss = 1.0 * i,
                                                      .last_step = i};
                                })},
  };
  History duplicates(space);
  Rng rng(12);
  const Point point = space.Sample(rng);
  for (int i = 0; i < kMany; ++i) duplicates.Add(point, wave(i));
  histories.push_back({"one point again and again", duplicates});
  // The ranges were changed: some lie outside now, and labels are of another space.
  histories.push_back({"of ranges that were changed", Filled(space, kMany, [](int i) {
                         return TrialSummary{.state = static_cast<TrialState>(i % 3),
                                             .loss = 1.0 * i,
                                             .last_step = i,
                                             .earlier = i < 20,
                                             .outside = i < 20 && i % 2 == 0};
                       })});
  histories.push_back(
      {"all outside", Filled(space, kMany, [](int i) {
         return TrialSummary{
             .state = TrialState::kCompleted, .loss = 1.0 * i, .earlier = true, .outside = true};
       })});
  histories.push_back({"a prior and no trial", WithPrior(History(space), 1)});
  histories.push_back({"a prior of huge losses", WithPrior(Filled(space, kMany, wave), 1e308)});
  histories.push_back({"a prior of equal losses", WithPrior(Filled(space, 3, wave), 0)});
  return histories;
}

// Where an algorithm decides for how long a trial trains, the parameter that says so.
constexpr char kResourceName[] = "resource_name";

// What the algorithm cannot do without: the first numeric parameter as its resource, with the
// rungs 1, 3 and 9, which are feasible values of hardly any of them.
Settings NeededSettings(const std::string& algorithm, const Space& space) {
  const auto* info = Registry<AlgorithmInfo>::Get().Find(algorithm);
  if (info->reshape == nullptr) return {};
  for (int i = 0; i < space.size(); ++i) {
    if (!space.axis(i).categorical()) return {{kResourceName, space.axis(i).name()}, {"r_l", "9"}};
  }
  return {};
}

// A configuration is a point without its resource: all that an algorithm of rungs has to try.
bool AllTried(const History& history, const Settings& settings) {
  const std::string* resource = FindSetting(settings, kResourceName);
  const Space& space = history.space();
  int axis = 0;
  while (axis < space.size() && (!resource || space.axis(axis).name() != *resource)) ++axis;
  const Space configurations = axis < space.size() ? space.Without(axis) : space;
  std::set<uint64_t> tried;
  for (int64_t i = 0; i < history.size(); ++i) {
    if (history.trial(i).outside) continue;
    Point point = history.point(i);
    if (axis < space.size()) point.erase(point.begin() + axis);
    tried.insert(configurations.Key(point));
  }
  const Cardinality all = configurations.cardinality();
  return all.finite && tried.size() >= all.count;
}

// A parent is an earlier trial that has ended.
void ExpectGoodParent(const v1::Parent& parent, const History& history) {
  ASSERT_GE(parent.trial(), 1);
  ASSERT_LE(parent.trial(), history.size());
  EXPECT_NE(history.trial(parent.trial() - 1).state, TrialState::kActive);
  EXPECT_FALSE(history.trial(parent.trial() - 1).outside);
}

// What must hold of every proposal.
void ExpectGood(const Proposal& proposal, const History& history, int count,
                const Settings& settings) {
  const Space& space = history.space();
  EXPECT_LE(proposal.suggestions.size(), static_cast<size_t>(count));
  EXPECT_LE(proposal.memo.size(), kMaxMemo);
  EXPECT_EQ(proposal.suggestions.empty(), proposal.outcome != Outcome::kOk);
  EXPECT_EQ(proposal.reason.empty(), proposal.outcome == Outcome::kOk);
  if (proposal.outcome == Outcome::kExhausted) {
    EXPECT_TRUE(AllTried(history, settings)) << proposal.reason;
  }
  std::set<uint64_t> keys;
  for (const Suggestion& suggestion : proposal.suggestions) {
    ASSERT_EQ(static_cast<int>(suggestion.point.size()), space.size());
    EXPECT_EQ(space.Canonical(suggestion.point), suggestion.point) << "not canonical";
    for (int i = 0; i < space.size(); ++i) {
      const double most = space.axis(i).categorical() ? space.axis(i).levels() - 1.0 : 1;
      EXPECT_TRUE(suggestion.point[i] >= 0 && suggestion.point[i] <= most);
    }
    if (suggestion.parent) {
      ExpectGoodParent(*suggestion.parent, history);
    } else {
      EXPECT_FALSE(history.Visited(suggestion.point)) << "proposed a second time";
      EXPECT_TRUE(keys.insert(space.Key(suggestion.point)).second) << "twice in one proposal";
    }
    EXPECT_FALSE(suggestion.explanation.empty());
    EXPECT_EQ(suggestion.explanation.find('\n'), std::string::npos);
  }
}

void ExpectSame(const Proposal& a, const Proposal& b) {
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.memo, b.memo);
  ASSERT_EQ(a.suggestions.size(), b.suggestions.size());
  for (size_t i = 0; i < a.suggestions.size(); ++i) {
    EXPECT_EQ(a.suggestions[i].point, b.suggestions[i].point);  // to the bit
    EXPECT_EQ(a.suggestions[i].labels, b.suggestions[i].labels);
    EXPECT_EQ(a.suggestions[i].parent.value_or(v1::Parent()).trial(),
              b.suggestions[i].parent.value_or(v1::Parent()).trial());
    EXPECT_EQ(a.suggestions[i].explanation, b.suggestions[i].explanation);
  }
}

class AlgorithmContract : public ::testing::TestWithParam<std::string> {
 protected:
  static Problem ProblemWith(const Space& space) {
    return {.space = space, .settings = NeededSettings(GetParam(), space), .max_trials = 100};
  }

  // The spaces that it searches; without those that it refuses.
  static std::vector<NamedSpace> Accepted() {
    std::vector<NamedSpace> accepted;
    for (const auto& [name, space] : Spaces()) {
      if (Build(space) == nullptr) continue;
      accepted.push_back({name, *SearchSpace(GetParam(), ProblemWith(space))});
    }
    EXPECT_FALSE(accepted.empty()) << "it refuses every space";
    return accepted;
  }

  static void ExpectGood(const Proposal& proposal, const History& history, int count) {
    suggestion::ExpectGood(proposal, history, count, NeededSettings(GetParam(), history.space()));
  }

  // Null if the algorithm refuses the space.
  static std::unique_ptr<Algorithm> Build(const Space& space) {
    auto algorithm = CreateAlgorithm(GetParam(), ProblemWith(space));
    if (algorithm.ok()) return *std::move(algorithm);
    EXPECT_TRUE(absl::IsInvalidArgument(algorithm.status())) << algorithm.status();
    EXPECT_FALSE(algorithm.status().message().empty());
    return nullptr;
  }

  static Proposal Ask(Algorithm& algorithm, const History& history, int count) {
    StatusOr<Proposal> proposal = algorithm.Propose(history, count, Rng(42));
    EXPECT_TRUE(proposal.ok()) << proposal.status();
    return proposal.ok() ? *std::move(proposal) : Proposal{};
  }

  // Calls `test` for each space that the algorithm accepts, with each history.
  template <class Test>
  static void ForAll(Test test) {
    for (const auto& [space_name, space] : Accepted()) {
      for (const auto& [history_name, history] : Histories(space)) {
        SCOPED_TRACE(space_name + ", " + history_name);
        test(space, history);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_P(AlgorithmContract, ProposesFewEnoughNewPointsOfTheSpace) {
  ForAll([](const Space& space, const History& history) {
    const auto algorithm = Build(space);
    for (int count : {1, 2, 7, 64}) ExpectGood(Ask(*algorithm, history, count), history, count);
  });
}

TEST_P(AlgorithmContract, IsAFunctionOfHistoryAndSeedAlone) {
  ForAll([](const Space& space, const History& history) {
    const auto algorithm = Build(space);
    const Proposal first = Ask(*algorithm, history, 3);
    ExpectSame(Ask(*algorithm, history, 3), first);
    Ask(*algorithm, History(space), 5);  // what it was asked in between leaves no trace
    ExpectSame(Ask(*algorithm, history, 3), first);
    ExpectSame(Ask(*Build(space), history, 3), first);  // after a restart
  });
}

// Two objectives and two bounds of constraints, results of every kind.
TEST_P(AlgorithmContract, TakesSeveralObjectivesAndConstraintsOrRefuses) {
  const AlgorithmInfo& info = *Registry<AlgorithmInfo>::Get().Find(GetParam());
  for (const auto& [name, space] : Accepted()) {
    SCOPED_TRACE(name);
    Problem problem = ProblemWith(space);
    problem.objectives = 2;
    problem.constraints = 2;
    const auto algorithm = CreateAlgorithm(GetParam(), problem);
    ASSERT_EQ(algorithm.ok(), info.several_objectives && info.constraints) << algorithm.status();
    if (!algorithm.ok()) return;
    const History history = Filled(space, 40, [](int i) {
      TrialSummary view{.state = static_cast<TrialState>(i % 3), .loss = std::sin(i)};
      if (view.state != TrialState::kCompleted) return view;
      view.further_losses = {std::cos(3 * i)};
      view.margins = {std::sin(5 * i) + 0.5, i % 7 == 0 ? -1e6 : 1.0};
      return view;
    });
    for (const int count : {1, 5}) {
      const Proposal proposal = Ask(**algorithm, history, count);
      ExpectGood(proposal, history, count);
      ExpectSame(Ask(**algorithm, history, count), proposal);
    }
  }
}

TEST_P(AlgorithmContract, RecommendsATrialThatHasAResult) {
  ForAll([](const Space& space, const History& history) {
    const auto found = Build(space)->Recommend(history);
    ASSERT_TRUE(found.ok()) << found.status();
    if (!found->has_value()) return;
    const Recommendation& recommended = **found;
    ASSERT_GE(recommended.trial, 0);
    ASSERT_LT(recommended.trial, history.size());
    EXPECT_EQ(history.trial(recommended.trial).state, TrialState::kCompleted);
    EXPECT_FALSE(history.trial(recommended.trial).outside);
    EXPECT_TRUE(std::isfinite(recommended.loss));
    EXPECT_GE(recommended.deviation, 0);
    EXPECT_FALSE(recommended.reason.empty());
  });
}

// Counts from 1 to 64, each time with what came of the one before.
TEST_P(AlgorithmContract, HonoursTheCount) {
  for (const auto& [name, space] : Accepted()) {
    const auto algorithm = Build(space);
    SCOPED_TRACE(name);
    History history(space);
    for (int count = 1; count <= 64 && !HasFailure(); count += 9) {
      const Proposal proposal = Ask(*algorithm, history, count);
      ExpectGood(proposal, history, count);
      for (const Suggestion& suggestion : proposal.suggestions) {
        history.Add(suggestion.point, Completed(suggestion.point[0]));
        history.SetLabels(history.size() - 1, suggestion.labels);
      }
      history.set_memo(proposal.memo);
    }
  }
}

TEST_P(AlgorithmContract, AMemoIsAHelpNotANeed) {
  ForAll([](const Space& space, History history) {
    const auto algorithm = Build(space);
    const Proposal first = Ask(*algorithm, history, 2);
    for (const Suggestion& suggestion : first.suggestions) history.Add(suggestion.point, {});
    for (const std::string& memo : {first.memo, std::string(), std::string("no memo of mine"),
                                    std::string("\0\xFF\n", 3), std::string(kMaxMemo, '9')}) {
      history.set_memo(memo);
      ExpectGood(Ask(*algorithm, history, 2), history, 2);
    }
  });
}

// Some rules about the first two parameters, of whatever type.
Space WithSomeRules(const Space& space, Rng& rng) {
  v1::SpaceRules rules;
  const auto add = [&](google::protobuf::Struct& to, int axis) {
    const Axis& parent = space.axis(axis);
    const v1::Assignment value = parent.Decode(parent.Coordinate(rng.Below(parent.levels())));
    google::protobuf::Value& field = (*to.mutable_fields())[parent.name()];
    if (value.value_case() == v1::Assignment::kCategory) {
      field.set_string_value(value.category());
    } else {
      field.set_number_value(value.number() + static_cast<double>(value.integer()));
    }
  };
  if (rng.Below(3) > 0) {
    v1::ParameterCondition& condition = *rules.add_conditions();
    condition.set_parameter(space.axis(1).name());
    add(*condition.mutable_when(), 0);
  }
  if (rng.Below(2) > 0) {
    google::protobuf::Struct& combination = *rules.add_forbidden();
    add(combination, 0);
    add(combination, 1);
  }
  if (rng.Below(4) == 0 && !space.axis(0).categorical()) {
    v1::LinearConstraint& bound = *rules.add_linear();
    (*bound.mutable_sum()->mutable_fields())[space.axis(0).name()].set_number_value(1);
    bound.set_max(1);
  }
  const auto ruled = space.WithRules(rules);
  return ruled.ok() ? *ruled : space;  // everything may be forbidden
}

// A finite space of few points, of any mix of types, half of those of several with rules.
Space SmallSpace(Rng& rng) {
  constexpr v1::Distribution kDistributions[] = {v1::UNIFORM, v1::LOG_UNIFORM, v1::NORMAL,
                                                 v1::LOG_NORMAL};
  std::vector<v1::ParameterSpec> parameters;
  const int axes = 1 + static_cast<int>(rng.Below(3));
  for (int i = 0; i < axes; ++i) {
    const std::string name = "p" + std::to_string(i);
    const auto levels = static_cast<double>(1 + rng.Below(axes == 1 ? 12 : 3));
    const v1::Distribution distribution = kDistributions[rng.Below(4)];
    switch (rng.Below(4)) {
      case 0: parameters.push_back(Int(name, {1, levels}, distribution)); break;
      case 1: parameters.push_back(Double(name, {0.1, 0.1 * levels, 0.1}, distribution)); break;
      case 2: parameters.push_back(Discrete(name, {-1, levels, 100})); break;
      default: parameters.push_back(Categorical(name, {"a", "b"}));
    }
  }
  const Space space = Make(parameters);
  return space.size() > 1 && rng.Below(2) > 0 ? WithSomeRules(space, rng) : space;
}

// Trains what has been tried further, as a population may for ever.
bool OnlyGoesOn(const Proposal& proposal, const History& history) {
  return std::all_of(proposal.suggestions.begin(), proposal.suggestions.end(),
                     [&](const auto& s) { return s.parent && history.Visited(s.point); });
}

// Runs an experiment until the algorithm says that it is exhausted. Trials end in every way.
void ExpectEveryPointOnce(Algorithm& algorithm, const Space& space, const Settings& settings,
                          Rng& rng) {
  History history(space);
  const uint64_t all = space.cardinality().count;
  for (uint64_t round = 0; round < 4 * all + 10; ++round) {
    const int count = 1 + static_cast<int>(rng.Below(5));
    const auto proposal = algorithm.Propose(history, count, Rng(42));
    ASSERT_TRUE(proposal.ok()) << proposal.status();
    ExpectGood(*proposal, history, count, settings);
    if (proposal->outcome == Outcome::kExhausted) return;
    if (AllTried(history, settings) && OnlyGoesOn(*proposal, history)) return;
    for (const Suggestion& suggestion : proposal->suggestions) {
      TrialSummary view = Completed(rng.Uniform());
      if (rng.Below(4) == 0) view.state = TrialState::kInfeasible;
      if (suggestion.parent) view.parent = suggestion.parent->trial();
      history.Add(suggestion.point, view);
      history.SetLabels(history.size() - 1, suggestion.labels);
    }
    history.set_memo(rng.Below(3) == 0 ? "" : proposal->memo);
  }
  FAIL() << "no end after " << history.size() << " trials of " << all << " points";
}

// SHIRABE_SPACES=n tries more of them.
TEST_P(AlgorithmContract, TriesEveryPointOfASmallSpaceOnceAndThenSaysSo) {
  const char* wanted = std::getenv("SHIRABE_SPACES");
  const int spaces = wanted != nullptr ? std::atoi(wanted) : 1000;
  Rng rng(7);
  int accepted = 0;
  for (int i = 0; i < spaces && !HasFailure(); ++i) {
    const Space specified = SmallSpace(rng);
    SCOPED_TRACE("space " + std::to_string(i));
    const auto algorithm = Build(specified);
    if (algorithm == nullptr) continue;
    ++accepted;
    const Space space = *SearchSpace(GetParam(), ProblemWith(specified));
    ExpectEveryPointOnce(*algorithm, space, NeededSettings(GetParam(), space), rng);
  }
  if (accepted == 0) GTEST_SKIP() << "it accepts no finite space";
}

TEST_P(AlgorithmContract, EndsSoonAfterAHundredThousandTrials) {
  for (const auto& [name, space] : Accepted()) {
    if (name != "mixed" && name != "a million points" && name != "2^64 points") continue;
    const auto algorithm = Build(space);
    SCOPED_TRACE(name);
    const auto seconds_after = [&](int trials, double scale) {
      const History history =
          Filled(space, trials, [scale](int i) { return Completed(scale * std::sin(i)); });
      const double begin = CpuSeconds();
      const Proposal proposal = Ask(*algorithm, history, 8);
      const double seconds = CpuSeconds() - begin;
      ExpectGood(proposal, history, 8);
      return seconds;
    };
    const double seconds = seconds_after(100000, 1);
    if (seconds < 20) continue;
    // Of this thread's time. Where that is not so, fifty times as many trials cost at most a few
    // times as much; of other losses, so that nothing is found in a cache.
    EXPECT_LT(seconds, 8 * seconds_after(2000, 2));
  }
}

TEST_P(AlgorithmContract, KnowsItsSettingsAndNoOthers) {
  for (const auto& [name, space] : Accepted()) {
    const auto with = [&space = space](const char* setting, const char* value) {
      Problem problem = ProblemWith(space);
      problem.settings.emplace_back(setting, value);
      return CreateAlgorithm(GetParam(), problem).status();
    };
    EXPECT_TRUE(with("random_state", "7").ok()) << with("random_state", "7");
    const Status unknown = with("no_such_setting", "7");
    EXPECT_TRUE(absl::IsInvalidArgument(unknown));
    EXPECT_THAT(Message(unknown), HasSubstr("\"no_such_setting\" is not known"));
    EXPECT_THAT(Message(unknown), HasSubstr("random_state"));
    EXPECT_TRUE(absl::IsInvalidArgument(with("random_state", "seven")));
  }
}

std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registry, AlgorithmContract,
                         ::testing::ValuesIn(Registry<AlgorithmInfo>::Get().Names()), TestName);

}  // namespace
}  // namespace shirabe::suggestion
