#include "tracking/tensorboard_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_io.h"
#include "metrics/tf_event.h"
#include "proto/tensorboard/v2/event_file.pb.h"
#include "tests/support/stored.h"

namespace shirabe::tracking {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class TensorboardLogTest : public ::testing::Test {
 protected:
  TensorboardLogTest() { folder_ = stored_.home() + "/runs"; }

  std::unique_ptr<TensorboardLog> Open() {
    auto log = TensorboardLog::Open({stored_.client(), stored_.key(), folder_});
    EXPECT_TRUE(log.ok()) << log.status();
    return std::move(log).value();
  }

  void AddValue(int32_t attempt, int64_t step, double value) {
    db::Batch batch;
    batch.experiment = stored_.key();
    batch.observations.push_back({.trial = 1,
                                  .attempt = attempt,
                                  .metric = "loss",
                                  .step = step,
                                  .value = value,
                                  .time = At(30 + step)});
    stored_.Commit(batch);
    trial_.set_last_step(step);
    stored_.Put(trial_);
  }

  // A later attempt resumed at this step.
  void Supersede(int64_t past_step) {
    db::Batch batch;
    batch.experiment = stored_.key();
    batch.supersede.push_back({.trial = 1, .attempt = 1, .past_step = past_step});
    stored_.Commit(batch);
  }

  // All records of a file, each of which must be whole.
  std::vector<tensorboard::Event> EventsIn(const std::string& path) {
    const std::string bytes = ReadFile(path).value_or("");
    std::vector<tensorboard::Event> events;
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const metrics::Record record = metrics::RecordAt(rest);
      EXPECT_EQ(record.state, metrics::Record::State::kWhole);
      if (record.state != metrics::Record::State::kWhole) break;
      EXPECT_TRUE(events.emplace_back().ParseFromString(std::string(record.data)));
      rest.remove_prefix(record.bytes);
    }
    return events;
  }

  // The scalars of a run as a reader has them, who knows the mark; as step:value.
  std::vector<std::string> Scalars() {
    std::vector<std::string> scalars;
    for (const tensorboard::Event& event : EventsIn(RunFile())) {
      if (event.has_session_log()) scalars.clear();
      for (const auto& value : event.summary().value()) {
        if (value.tag() != "loss") continue;
        scalars.push_back(std::to_string(event.step()) + ":" +
                          std::to_string(static_cast<int>(value.simple_value())));
      }
    }
    return scalars;
  }

  std::string RunFile() const {
    return folder_ + "/digits-1/events.out.tfevents.1700000000.shirabe";
  }

  // What the plugin keeps under a tag.
  std::vector<tensorboard::HParamsPluginData> PluginData(const std::string& path,
                                                         const std::string& tag) {
    std::vector<tensorboard::HParamsPluginData> found;
    for (const tensorboard::Event& event : EventsIn(path)) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() != tag) continue;
        EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "hparams");
        found.emplace_back().ParseFromString(value.metadata().plugin_data().content());
      }
    }
    return found;
  }

  Stored stored_;
  std::string folder_;
  v1::Trial trial_ = MakeTrial(1, v1::TRIAL_RUNNING);
};

TEST_F(TensorboardLogTest, TheExperimentStandsAboveItsRuns) {
  Open();
  const auto found = PluginData(folder_ + "/events.out.tfevents.1700000000.shirabe.digits",
                                "_hparams_/experiment");
  ASSERT_EQ(found.size(), 1u);
  const tensorboard::HParamsExperiment& experiment = found[0].experiment();
  EXPECT_EQ(experiment.name(), "digits");
  ASSERT_EQ(experiment.hparam_infos_size(), 3);
  EXPECT_EQ(experiment.hparam_infos(0).domain_interval().max_value(), 0.1);
  EXPECT_EQ(experiment.hparam_infos(2).domain_discrete().values(0).string_value(), "sgd");
  ASSERT_EQ(experiment.metric_infos_size(), 2);
  EXPECT_EQ(experiment.metric_infos(1).name().tag(), "acc");
}

TEST_F(TensorboardLogTest, ATrialIsASessionFromItsStartToItsEnd) {
  const auto log = Open();
  stored_.Put(MakeTrial(2, v1::TRIAL_PENDING));
  stored_.Put(trial_);
  ASSERT_TRUE(log->Update().ok());
  EXPECT_EQ(log->trials(), 1) << "one that waits has no run";
  const auto begun = PluginData(RunFile(), "_hparams_/session_start_info");
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].session_start_info().group_name(), "digits-1");
  EXPECT_EQ(begun[0].session_start_info().hparams().at("bs").number_value(), 32);
  EXPECT_THAT(PluginData(RunFile(), "_hparams_/session_end_info"), IsEmpty());
  stored_.Put(MakeTrial(1, v1::TRIAL_FAILED));
  ASSERT_TRUE(log->Update().ok());
  ASSERT_TRUE(log->Update().ok());
  const auto ended = PluginData(RunFile(), "_hparams_/session_end_info");
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].session_end_info().status(), tensorboard::STATUS_FAILURE);
}

TEST_F(TensorboardLogTest, ValuesAreAppendedAsTheyCome) {
  const auto log = Open();
  stored_.Put(trial_);
  AddValue(1, 1, 10);
  ASSERT_TRUE(log->Update().ok());
  const auto size = fs::file_size(RunFile());
  EXPECT_THAT(Scalars(), ElementsAre("1:10"));
  ASSERT_TRUE(log->Update().ok());
  EXPECT_EQ(fs::file_size(RunFile()), size) << "nothing has changed";
  AddValue(1, 2, 20);
  ASSERT_TRUE(log->Update().ok());
  EXPECT_THAT(Scalars(), ElementsAre("1:10", "2:20"));
  EXPECT_EQ(EventsIn(RunFile()).size(), 4u) << "version, start, and each value once";
}

TEST_F(TensorboardLogTest, OfStepsDoneAgainTheLaterAttemptCounts) {
  const auto log = Open();
  stored_.Put(trial_);
  for (int step = 1; step <= 3; ++step) AddValue(1, step, step);
  ASSERT_TRUE(log->Update().ok());
  Supersede(1);
  AddValue(2, 2, 22);
  ASSERT_TRUE(log->Update().ok());
  EXPECT_THAT(Scalars(), ElementsAre("1:1", "2:22"));
  AddValue(2, 3, 33);
  ASSERT_TRUE(log->Update().ok());
  EXPECT_THAT(Scalars(), ElementsAre("1:1", "2:22", "3:33"));
}

TEST_F(TensorboardLogTest, AValueThatComesLateIsNotLost) {
  const auto log = Open();
  stored_.Put(trial_);
  AddValue(1, 5, 5);
  ASSERT_TRUE(log->Update().ok());
  AddValue(1, 4, 4);
  ASSERT_TRUE(log->Update().ok());
  EXPECT_THAT(Scalars(), ElementsAre("4:4", "5:5"));
}

TEST_F(TensorboardLogTest, AnEarlierLogOfTheSameExperimentIsReplaced) {
  stored_.Put(trial_);
  AddValue(1, 1, 10);
  ASSERT_TRUE(Open()->Update().ok());
  fs::create_directory(folder_ + "/digits-9");
  ASSERT_TRUE(
      WriteFileAtomic(folder_ + "/digits-9/events.out.tfevents.0000000001.shirabe", "old").ok());
  ASSERT_TRUE(WriteFileAtomic(folder_ + "/digits-9/mine.txt", "mine").ok());
  ASSERT_TRUE(Open()->Update().ok());
  EXPECT_THAT(Scalars(), ElementsAre("1:10"));
  EXPECT_FALSE(fs::exists(folder_ + "/digits-9/events.out.tfevents.0000000001.shirabe"));
  EXPECT_TRUE(fs::exists(folder_ + "/digits-9/mine.txt"));
}

TEST_F(TensorboardLogTest, EventFilesOfSomethingElseAreLeftAlone) {
  fs::create_directories(folder_);
  ASSERT_TRUE(WriteFileAtomic(folder_ + "/events.out.tfevents.17.host", "theirs").ok());
  const auto log = TensorboardLog::Open({stored_.client(), stored_.key(), folder_});
  EXPECT_EQ(log.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Message(log.status()), HasSubstr("choose another folder"));
  EXPECT_EQ(ReadFile(folder_ + "/events.out.tfevents.17.host").value_or(""), "theirs");
}

// attacks: a link where a run is to be written
TEST_F(TensorboardLogTest, NoLinkIsFollowed) {
  const std::string outside = stored_.home() + "/outside";
  fs::create_directories(folder_);
  fs::create_directories(outside);
  fs::create_directory_symlink(outside, folder_ + "/digits-1");
  stored_.Put(trial_);
  const auto log = Open();
  EXPECT_EQ(log->Update().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(fs::is_empty(outside));
}

}  // namespace
}  // namespace shirabe::tracking
