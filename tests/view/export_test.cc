#include "view/csv_export.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/records.h"

namespace shirabe::view {
namespace {

TEST(ExportTest, CsvCellsAreQuotedWhereRfc4180WantsIt) {
  EXPECT_EQ(CsvCell("plain"), "plain");
  EXPECT_EQ(CsvCell(""), "");
  EXPECT_EQ(CsvCell("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvCell("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(CsvCell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(CsvCell(" blank"), "\" blank\"");
}

TEST(ExportTest, ALineHasAsManyCellsAsTheHeader) {
  const v1::Experiment experiment = MakeExperiment();
  EXPECT_EQ(CsvHeader(experiment),
            "trial,state,objective,step,metric.loss,metric.acc,param.lr,param.bs,param.opt,"
            "attempts,start_time,completion_time\n");
  EXPECT_EQ(
      CsvLine(experiment, MakeTrial(7, v1::TRIAL_SUCCEEDED, 0.1 + 0.2, {.opt = "it's, \"adam\""})),
      "digits-7,Succeeded,0.30000000000000004,2,0.30000000000000004,0.75,0.0031,32,"
      "\"it's, \"\"adam\"\"\",1,2023-11-14T22:13:40Z,2023-11-14T22:14:40Z\n");
  EXPECT_EQ(CsvLine(experiment, MakeTrial(8, v1::TRIAL_PENDING)),
            "digits-8,Pending,,,,,0.0031,32,sgd,0,,\n");
}

TEST(ExportTest, JsonLinesHaveTypedValues) {
  const v1::Experiment experiment = MakeExperiment();
  EXPECT_EQ(JsonLine(experiment, MakeTrial(7, v1::TRIAL_SUCCEEDED, 0.5)),
            R"({"trial":"digits-7","state":"Succeeded","objective":0.5,"step":2,)"
            R"("metrics":{"loss":0.5,"acc":0.75},"params":{"lr":0.0031,"bs":32,"opt":"sgd"},)"
            R"("attempts":1,"start_time":"2023-11-14T22:13:40Z",)"
            R"("completion_time":"2023-11-14T22:14:40Z"})"
            "\n");
  EXPECT_EQ(JsonLine(experiment, MakeTrial(8, v1::TRIAL_PENDING)),
            R"({"trial":"digits-8","state":"Pending","objective":null,"step":null,)"
            R"("metrics":{"loss":null,"acc":null},"params":{"lr":0.0031,"bs":32,"opt":"sgd"},)"
            R"("attempts":0})"
            "\n");
}

TEST(ExportTest, WhatJsonHasNoNumberForIsText) {
  v1::Trial trial = MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5);
  trial.mutable_observation()->mutable_metrics(1)->set_latest(
      std::numeric_limits<double>::quiet_NaN());
  const std::string line = JsonLine(MakeExperiment(), trial);
  EXPECT_NE(line.find(R"("acc":"NaN")"), std::string::npos) << line;
  EXPECT_NE(CsvLine(MakeExperiment(), trial).find(",NaN,"), std::string::npos);
}

}  // namespace
}  // namespace shirabe::view
