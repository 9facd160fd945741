// Katib's Suggestion service, asked as the controller of Kubeflow Trainer's OptimizationJobs asks
// it: no counts of trials in the specification, the seed as a setting, bounds as the object has
// them, and as the total what there is already, without what is asked for.
#include <gmock/gmock.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "service/katib/katib_suggestion.h"
#include "tests/service/katib_testing.h"

namespace shirabe::service {
namespace {

class OptimizationJobSuggestionTest : public ::testing::Test {
 protected:
  static katib::Experiment Job(const std::string& algorithm) {
    katib::Experiment job;
    job.set_name("tune");
    job.mutable_spec()->mutable_algorithm()->set_algorithm_name(algorithm);
    job.mutable_spec()->mutable_objective()->set_type(katib::MINIMIZE);
    job.mutable_spec()->mutable_objective()->set_objective_metric_name("loss");
    return job;
  }
  static void Spread(katib::Experiment& job, katib::Distribution distribution) {
    auto& all = *job.mutable_spec()->mutable_parameter_specs()->mutable_parameters();
    all.rbegin()->mutable_feasible_space()->set_distribution(distribution);
  }
  static katib::Experiment Random(const std::string& seed) {
    katib::Experiment job = Job("random");
    AddRange(job, "learning_rate", katib::DOUBLE, {"1e-5", "0.1"});
    Spread(job, katib::LOG_UNIFORM);
    AddRange(job, "layers", katib::INT, {"2", "12"});
    Spread(job, katib::UNIFORM);
    AddList(job, "optimizer", katib::CATEGORICAL, {"adam", "sgd"});
    auto& setting = *job.mutable_spec()->mutable_algorithm()->add_algorithm_settings();
    setting.set_name("random_state");
    setting.set_value(seed);
    return job;
  }

  std::vector<Point> Next(const katib::Experiment& job, int count) {
    katib::GetSuggestionsRequest request;
    *request.mutable_experiment() = job;
    *request.mutable_trials() = {trials_.begin(), trials_.end()};
    request.set_current_request_number(count);
    request.set_total_request_number(static_cast<int>(trials_.size()));
    const Answered answered = Ask(*stub_, request);
    EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
    return {answered.reply.parameter_assignments().begin(),
            answered.reply.parameter_assignments().end()};
  }
  // The whole search, two at a time; what it tried.
  std::vector<std::string> Search(const katib::Experiment& job, size_t trials) {
    trials_.clear();
    std::vector<std::string> tried;
    while (tried.size() < trials) {
      const std::vector<Point> points = Next(job, 2);
      if (points.empty()) break;
      for (const Point& point : points) {
        tried.push_back(TextOf(point));
        trials_.push_back(TrialOf(absl::StrCat("tune-trial-", trials_.size()), point));
      }
      // The first of both is told, the other still runs when the next are asked for.
      for (size_t i = 0; i + 1 < trials_.size(); ++i) {
        if (trials_[i].status().condition() == katib::TrialStatus::RUNNING) {
          End(trials_[i], katib::TrialStatus::SUCCEEDED, FormatNumber(1.0 / (1 + i)));
        }
      }
    }
    return tried;
  }

  SuggestionScheduler turns_{SuggestionLimits::Default(), RealClock()};
  InProcess server_{
      MakeKatibSuggestion([](const grpc::ServerContext&,
                             const std::string&) { return StatusOr<std::string>("caller"); },
                          &turns_)};
  std::unique_ptr<katib::Suggestion::Stub> stub_ = katib::Suggestion::NewStub(server_.channel());
  std::vector<katib::Trial> trials_;
};

TEST_F(OptimizationJobSuggestionTest, ARandomSearchIsItsSeedsAndTriesNothingTwice) {
  const std::vector<std::string> tried = Search(Random("7"), 12);
  EXPECT_EQ(std::set<std::string>(tried.begin(), tried.end()).size(), 12u);
  EXPECT_EQ(Search(Random("7"), 12), tried);
  EXPECT_NE(Search(Random("8"), 12), tried);
  int small = 0;
  for (const katib::Trial& trial : trials_) {
    Point point;
    *point.mutable_assignments() = trial.spec().parameter_assignments().assignments();
    const double rate = *ParseNumber(ValueOf(point, "learning_rate"));
    const double layers = *ParseNumber(ValueOf(point, "layers"));
    EXPECT_GE(rate, 1e-5);
    EXPECT_LE(rate, 0.1);
    EXPECT_EQ(layers, static_cast<int>(layers));
    small += rate < 0.001 ? 1 : 0;
  }
  EXPECT_GE(small, 3) << "half of the values of a logarithmic scale are below 0.001";
}

// The schema allows one; what upstream asks by default, Optuna, refuses it as well.
TEST_F(OptimizationJobSuggestionTest, ASeedBelowZeroIsRefusedByItsName) {
  katib::GetSuggestionsRequest request;
  *request.mutable_experiment() = Random("-3");
  request.set_current_request_number(1);
  const grpc::Status status = Ask(*stub_, request).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("random_state"));
}

TEST_F(OptimizationJobSuggestionTest, AGridOfChoicesIsTriedOnceEach) {
  katib::Experiment job = Job("grid");
  AddList(job, "optimizer", katib::CATEGORICAL, {"adam", "sgd"});
  AddList(job, "batch", katib::CATEGORICAL, {"16", "32", "64"});
  const std::vector<std::string> tried = Search(job, 20);
  EXPECT_EQ(tried.size(), 6u);
  EXPECT_EQ(std::set<std::string>(tried.begin(), tried.end()).size(), 6u);
}

// What an image alias gives users of OptimizationJobs: other searches under the name of theirs.
TEST_F(OptimizationJobSuggestionTest, OtherAlgorithmsTakeTheSameRequests) {
  for (const char* name : {"tpe", "bayesianoptimization", "sobol", "cmaes"}) {
    katib::Experiment job = Random("7");
    job.mutable_spec()->mutable_algorithm()->set_algorithm_name(name);
    EXPECT_EQ(Search(job, 8).size(), 8u) << name;
  }
}

}  // namespace
}  // namespace shirabe::service
