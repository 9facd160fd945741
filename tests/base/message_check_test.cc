#include "base/text/message_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "proto/katib/v1beta1/api.pb.h"
#include "proto/shirabe/v1/api.pb.h"
#include "proto/shirabe/v1/pod.pb.h"

namespace shirabe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ProblemOf(const google::protobuf::Message& message, const MessageLimits& limits = {}) {
  return Message(CheckMessage(message, limits));
}

TEST(MessageCheckTest, GoodMessagesPass) {
  v1::SubmitRequest request;
  v1::ExperimentSpec& spec = *request.mutable_experiment()->mutable_spec();
  spec.add_parameters()->set_parameter_type(v1::CATEGORICAL);
  (*spec.mutable_trial_template()->mutable_trial_spec()->mutable_fields())["kind"].set_string_value(
      "Job");
  spec.mutable_metrics_collector_spec()
      ->mutable_source()
      ->mutable_http_get()
      ->mutable_port()
      ->set_number_value(8080);
  request.mutable_experiment()->mutable_metadata()->mutable_creation_timestamp()->set_seconds(1);
  EXPECT_EQ(ProblemOf(request), "");
  EXPECT_EQ(ProblemOf(v1::SyncRequest()), "");
}

TEST(MessageCheckTest, UnknownEnumsAreNamedWithTheirPlace) {
  v1::SubmitRequest request;
  v1::ExperimentSpec& spec = *request.mutable_experiment()->mutable_spec();
  spec.add_parameters();
  spec.add_parameters()->set_parameter_type(static_cast<v1::ParameterType>(7));
  EXPECT_THAT(ProblemOf(request),
              StartsWith("experiment.spec.parameters[1].parameterType: 7 is not a value of "
                         "ParameterType that is known here: give one of PARAMETER_TYPE_UNKNOWN, "
                         "DOUBLE, INT, DISCRETE, CATEGORICAL"));
  spec.mutable_parameters(1)->set_parameter_type(v1::INT);
  spec.mutable_nas_config()
      ->add_operations()
      ->add_parameters()
      ->mutable_feasible_space()
      ->set_distribution(static_cast<v1::Distribution>(-1));
  EXPECT_THAT(ProblemOf(request),
              HasSubstr("nasConfig.operations[0].parameters[0].feasibleSpace.distribution: -1"));
}

TEST(MessageCheckTest, FreeFormValuesMustBeOnesThatJsonHas) {
  using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;
  const auto problem = [](const std::function<void(Fields&)>& fill) {
    google::protobuf::Struct object;
    fill(*object.mutable_fields());
    return ProblemOf(object);
  };
  EXPECT_THAT(problem([](Fields& fields) {
                auto& list = *fields["a b"].mutable_list_value();
                list.add_values()->set_number_value(std::nan(""));
              }),
              HasSubstr("[\"a b\"][0]: must be a finite number, not NaN"));
  EXPECT_THAT(problem([](Fields& fields) { fields["x"]; }), HasSubstr("without a kind"));
  const std::string long_key = problem(
      [](Fields& fields) { fields[std::string(kMaxKeyBytes + 1, 'k')].set_bool_value(true); });
  EXPECT_THAT(long_key, HasSubstr("the key has 1025 bytes"));
  EXPECT_LT(long_key.size(), 300);
}

TEST(MessageCheckTest, DepthIsThatWhichProtobufReadsAgain) {
  const auto with_levels = [](int levels) {
    v1::SubmitRequest request;
    auto* at = &(*request.mutable_experiment()
                      ->mutable_spec()
                      ->mutable_trial_template()
                      ->mutable_trial_spec()
                      ->mutable_fields())["a"];
    for (int i = 1; i < levels; ++i) at = &(*at->mutable_struct_value()->mutable_fields())["a"];
    at->set_bool_value(true);
    return request;
  };
  const v1::SubmitRequest request = with_levels(kMaxFreeLevels);
  EXPECT_EQ(ProblemOf(request), "");
  v1::SubmitRequest again;
  EXPECT_TRUE(again.ParseFromString(request.SerializeAsString()));
  EXPECT_THAT(ProblemOf(with_levels(kMaxFreeLevels + 1)), HasSubstr("more than 30 levels"));
}

TEST(MessageCheckTest, NulIsRefusedWhereItIsNotAllowed) {
  v1::ExperimentRef ref;
  ref.set_name(std::string("a\0b", 3));
  EXPECT_THAT(ProblemOf(ref), StartsWith("name: \"a"));
  EXPECT_EQ(ProblemOf(ref, {.allow_nul = true}), "");
  v1::SyncRequest bytes;
  bytes.set_token(std::string("\0", 1));
  EXPECT_EQ(ProblemOf(bytes), "");
}

TEST(MessageCheckTest, TimesAndDurationsAreThoseOfTheCalendar) {
  v1::ImportRequest::Trial trial;
  trial.mutable_start()->set_seconds(253'402'300'799);
  EXPECT_EQ(ProblemOf(trial), "");
  trial.mutable_start()->set_seconds(253'402'300'800);
  EXPECT_THAT(ProblemOf(trial), HasSubstr("start: 253402300800 s"));
  trial.mutable_start()->set_seconds(0);
  trial.mutable_start()->set_nanos(-1);
  EXPECT_NE(ProblemOf(trial), "");
  v1::AskRequest ask;
  ask.mutable_patience()->set_seconds(-1);
  EXPECT_EQ(ProblemOf(ask), "");
  ask.mutable_patience()->set_nanos(1);
  EXPECT_THAT(ProblemOf(ask), HasSubstr("patience"));
}

TEST(MessageCheckTest, ItemsAreCountedInAllLists) {
  v1::ImportRequest request;
  for (int i = 0; i < 3; ++i) request.add_trials()->add_points();
  EXPECT_EQ(ProblemOf(request, {.items = 6}), "");
  EXPECT_THAT(ProblemOf(request, {.items = 5}), HasSubstr("more than 5 items"));
}

TEST(MessageCheckTest, EnumsOfRecordsAreLookedAtAlone) {
  v1::Attempt attempt;
  attempt.mutable_cursor()->add_files();
  EXPECT_TRUE(CheckEnums(attempt).ok());
  attempt.mutable_stop()->set_cause(static_cast<v1::Cause>(99));
  EXPECT_TRUE(absl::IsUnimplemented(CheckEnums(attempt)));
  EXPECT_THAT(Message(CheckEnums(attempt)), StartsWith("stop.cause: 99 is not a value of Cause"));
  EXPECT_TRUE(CheckEnums(v1::Checkpoint()).ok());
  ::api::v1::beta1::GetSuggestionsRequest request;
  request.add_trials()->mutable_status()->set_condition(
      static_cast<::api::v1::beta1::TrialStatus::TrialConditionType>(77));
  EXPECT_FALSE(CheckEnums(request).ok());
}

}  // namespace
}  // namespace shirabe
