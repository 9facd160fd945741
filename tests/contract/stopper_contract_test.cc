// The contract of suggestion/early_stopping.h, for every registered rule. A new rule is tested by
// being registered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "suggestion/early_stopping.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using Reason = std::optional<std::string>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct StopperCase {
  std::string name;
  History history;
  Curves curves;
};

// Every third trial runs, the others have ended.
TrialSummary ViewOf(int i) {
  if (i % 3 == 2) return {};
  return {.state = i % 7 == 6 ? TrialState::kInfeasible : TrialState::kCompleted,
          .early_stopped = i % 5 == 4};
}

// Trial i reports loss(i, step) at its steps 1 … 5 + i % 20.
template <class Loss>
StopperCase FilledTrials(const std::string& name, int trials, Loss loss) {
  StopperCase result{name, History(Make({Double("x", {0, 1})})), {}};
  for (int i = 0; i < trials; ++i) {
    result.history.Add({0.5}, ViewOf(i));
    result.curves.emplace_back();
    for (int64_t step = 1; step <= 5 + i % 20; ++step) {
      result.curves.back().Append(step, loss(i, step));
    }
  }
  return result;
}

std::vector<StopperCase> StopperCases() {
  constexpr int kMany = 60;
  const auto wave = [](int i, int64_t step) {
    return std::sin(i) + 1.0 / static_cast<double>(step);
  };
  std::vector<StopperCase> cases = {
      FilledTrials("one", 1, wave),
      FilledTrials("few", 3, wave),
      FilledTrials("many", kMany, wave),
      FilledTrials("equal", kMany, [](int, int64_t) { return 1.0; }),
      FilledTrials("NaN", kMany, [](int, int64_t) { return kNan; }),
      FilledTrials("infinite", kMany,
                   [](int i, int64_t) { return i % 2 == 0 ? kInfinity : -kInfinity; }),
      FilledTrials("of every kind", kMany,
                   [](int i, int64_t step) {
                     const double values[] = {kNan,   kInfinity, -kInfinity, 1e308,
                                              -1e308, 0,         1e-308};
                     return values[(i + step) % 7];
                   }),
      FilledTrials("huge", kMany,
                   [](int i, int64_t step) { return (step % 2 ? 1 : -1) * 1e306 * i; }),
  };
  StopperCase silent = FilledTrials("no reports", kMany, wave);
  for (Curve& curve : silent.curves) curve = Curve();
  cases.push_back(silent);
  StopperCase short_list = FilledTrials("newest trials without a curve", kMany, wave);
  short_list.curves.resize(kMany / 2);
  cases.push_back(short_list);
  StopperCase far = FilledTrials("steps of any size", 10, wave);
  for (Curve& curve : far.curves) {
    curve = CurveOf({{-5, 1}, {0, 2}, {1, 2}, {INT64_MAX - 1, 3}, {INT64_MAX, 4}});
  }
  cases.push_back(far);
  return cases;
}

class StopperContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Stopper> Build(bool maximize = false) {
    auto stopper = CreateStopper(GetParam(), {.maximize = maximize});
    EXPECT_TRUE(stopper.ok()) << stopper.status();
    return *std::move(stopper);
  }

  static std::vector<Reason> AskAll(Stopper& stopper, const StopperCase& c) {
    std::vector<Reason> reasons;
    for (int64_t i = 0; i < c.history.size(); ++i) {
      if (c.history.trial(i).state != TrialState::kActive) continue;
      const auto reason = stopper.ShouldStop(i, c.history, c.curves);
      EXPECT_TRUE(reason.ok()) << c.name << ": " << reason.status();
      reasons.push_back(reason.ok() ? *reason : std::nullopt);
    }
    return reasons;
  }
};

TEST_P(StopperContract, AnswersWithAReasonForPeople) {
  for (const bool maximize : {false, true}) {
    const auto stopper = Build(maximize);
    for (const StopperCase& c : StopperCases()) {
      for (const Reason& reason : AskAll(*stopper, c)) {
        if (!reason) continue;
        EXPECT_EQ(reason->find("at step "), 0u) << c.name << ": " << *reason;
        EXPECT_EQ(reason->find('\n'), std::string::npos);
        EXPECT_LE(reason->size(), 160u) << *reason;
      }
    }
  }
}

// Neither what it was asked before nor the object matters.
TEST_P(StopperContract, SameQuestionSameAnswer) {
  const auto used = Build();
  for (const StopperCase& c : StopperCases()) {
    const std::vector<Reason> once = AskAll(*used, c);
    EXPECT_EQ(AskAll(*used, c), once) << c.name;
    EXPECT_EQ(AskAll(*Build(), c), once) << c.name;
  }
}

TEST_P(StopperContract, StopsNobodyWhoHasReportedNothing) {
  const auto stopper = Build();
  for (const StopperCase& c : StopperCases()) {
    if (c.name != "no reports") continue;
    for (const Reason& reason : AskAll(*stopper, c)) EXPECT_EQ(reason, std::nullopt) << *reason;
  }
}

// The best of all must never be stopped for being worse than others, only for its own sake.
TEST_P(StopperContract, LetsTheBestTrialGoOn) {
  const auto stopper = Build();
  StopperCase c = FilledTrials("best", 60, [](int i, int64_t step) { return 100.0 - i - step; });
  c.history.Add({0.5}, {});
  c.curves.push_back(CurveOf({{1, 9}, {2, 8}, {3, 7}, {4, 6}, {5, -1e3}}));
  const auto reason = stopper->ShouldStop(c.history.size() - 1, c.history, c.curves);
  ASSERT_TRUE(reason.ok());
  EXPECT_EQ(*reason, std::nullopt) << **reason;
}

// It is asked after every report, so a hundred thousand trials must not slow it down much.
TEST_P(StopperContract, SoonEndsWithALongHistory) {
  const auto stopper = Build();
  const StopperCase c =
      FilledTrials("very many", 100'000, [](int i, int64_t step) { return std::sin(i * step); });
  for (int64_t i = 99'900; i < c.history.size(); ++i) {
    if (c.history.trial(i).state != TrialState::kActive) continue;
    ASSERT_TRUE(stopper->ShouldStop(i, c.history, c.curves).ok());
  }
}

TEST_P(StopperContract, SaysWhatItIs) {
  const StopperInfo& info = *Registry<StopperInfo>::Get().Find(GetParam());
  EXPECT_FALSE(info.help.empty());
  for (const SettingInfo& setting : info.settings) {
    EXPECT_FALSE(setting.help.empty()) << setting.name;
    if (setting.default_value.empty()) continue;
    EXPECT_TRUE(
        ValidateStopperSettings(info.settings, {{setting.name, setting.default_value}}).ok());
  }
  EXPECT_FALSE(CreateStopper(GetParam(), {.settings = {{"no_such_setting", "1"}}}).ok());
}

INSTANTIATE_TEST_SUITE_P(Registry, StopperContract,
                         ::testing::ValuesIn(Registry<StopperInfo>::Get().Names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace shirabe::suggestion
