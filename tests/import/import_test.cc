// Results of other tools, from the bytes that they leave behind to records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/local_client.h"
#include "client/wire_format.h"
#include "experiment/annotations.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "import/import_readers.h"
#include "tests/import/optuna_tables.h"

namespace shirabe::import {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class ImportTest : public testing::Test {
 protected:
  ImportTest() {
    folder_ = testing::TempDir() + "/shirabe-import-XXXXXX";
    CHECK(mkdtemp(folder_.data()) != nullptr);
    location_ = {.home = folder_, .db = "sqlite:" + folder_ + "/shirabe.db", .ns = "default"};
  }
  ~ImportTest() override { std::filesystem::remove_all(folder_); }

  // As a client reads it after it was stored.
  std::unique_ptr<client::LocalClient> Store(client::Imported& imported) {
    auto client =
        client::LocalClient::Open({.place = location_, .read_only = false, .clock = RealClock()})
            .value();
    const auto reply =
        client->Get<v1::ImportReply>("ImportExperiment", client::ToWire("default", imported));
    EXPECT_TRUE(reply.ok()) << reply.status();
    imported.notes.insert(imported.notes.end(), reply->notes().begin(), reply->notes().end());
    return client;
  }

  std::string Sqlite(const std::string& name, const std::string& sql) const {
    const std::string path = folder_ + "/" + name;
    WriteSqlite(path, sql);
    return path;
  }

  std::string folder_;
  client::StateLocation location_;
};

constexpr char kOptunaRows[] = R"sql(
INSERT INTO studies VALUES (1, 'My Study_1');
INSERT INTO study_directions VALUES (1, 'MAXIMIZE', 0);
INSERT INTO trials VALUES
  (1, 0, 1, 'COMPLETE', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:10.500000'),
  (2, 1, 1, 'PRUNED', '2026-01-01 00:00:00', '2026-01-01 00:00:02'),
  (3, 2, 1, 'FAIL', '2026-01-01 00:00:00', '2026-01-01 00:00:01'),
  (4, 3, 1, 'RUNNING', '2026-01-01 00:00:00', NULL);
INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) SELECT
  t.trial_id, p.name, p.value, p.distribution FROM trials t, (
  SELECT 'lr' AS name, 0.01 AS value,
    '{"name": "FloatDistribution",
      "attributes": {"low": 0.001, "high": 0.1, "log": true, "step": null}}' AS distribution
  UNION ALL SELECT 'n', 4,
    '{"name": "IntDistribution", "attributes": {"low": 1, "high": 9, "log": false, "step": 1}}'
  UNION ALL SELECT 'opt', 1,
    '{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", null, 3]}}') p;
INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (1, 'extra',
  1, '{"name": "IntDistribution", "attributes": {"low": 0, "high": 2, "log": false, "step": 1}}');
INSERT INTO trial_intermediate_values VALUES (1, 1, 0.5, 'FINITE'), (1, 2, 0.6, 'FINITE'),
  (2, 1, 0.2, 'FINITE'), (2, 2, NULL, 'NAN');
INSERT INTO trial_values VALUES (1, 0, 0.9, 'FINITE');
)sql";

TEST_F(ImportTest, AStudyOfOptunaBecomesAnEndedExperiment) {
  const std::string path = Sqlite("optuna.db", std::string(kOptunaTables) + kOptunaRows);
  auto studies = ReadOptuna(path, "");
  ASSERT_TRUE(studies.ok()) << studies.status();
  ASSERT_EQ(studies->size(), 1u);
  client::Imported& study = (*studies)[0];
  EXPECT_EQ(study.name, "my-study-1");
  EXPECT_THAT(study.notes,
              ElementsAre("1 trials had not ended",
                          "parameter extra is left out: 1 trials have it, and no other "
                          "parameter tells which"));
  const auto client = Store(study);
  const ExperimentKey key{"default", "my-study-1"};
  const auto experiment = client->GetExperiment(key);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_TRUE(experiment::IsEnded(*experiment));
  EXPECT_EQ(experiment->spec().objective().type(), v1::MAXIMIZE);
  EXPECT_EQ(experiment->status().trials(), 3);
  EXPECT_EQ(experiment->status().trials_early_stopped(), 1);
  EXPECT_EQ(experiment->status().trials_failed(), 1);
  EXPECT_DOUBLE_EQ(experiment->status().current_optimal_trial().objective(), 0.9);
  const auto trials = client->ListTrials({.experiment = key});
  ASSERT_TRUE(trials.ok());
  ASSERT_EQ(trials->size(), 3u);
  EXPECT_DOUBLE_EQ((*trials)[0].assignments(0).number(), 0.01);
  EXPECT_EQ((*trials)[0].assignments(1).integer(), 4);
  EXPECT_EQ((*trials)[0].assignments(2).category(), "null");
  EXPECT_DOUBLE_EQ((*trials)[0].point().x(0), 0.5);
  EXPECT_DOUBLE_EQ((*trials)[0].seconds(), 10.5);
  EXPECT_EQ((*trials)[1].phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(client->ListObservations({.trial = {key, 1}})->size(), 3u);
  EXPECT_EQ(client->ListAttempts({.experiment = key})->size(), 3u);
  // A second time there is no room for it.
  const Status again =
      client->Get<v1::ImportReply>("ImportExperiment", client::ToWire("default", study)).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
}

// Optuna keeps an infinity as NULL: what was reported before it is not the trial's result.
TEST_F(ImportTest, ATrialOfOptunaThatDivergedHasNoResult) {
  const std::string diverged =
      "UPDATE trial_values SET value = NULL, value_type = 'INF_POS' WHERE trial_id = 1;";
  const std::string path = Sqlite("inf.db", absl::StrCat(kOptunaTables, kOptunaRows, diverged));
  auto studies = ReadOptuna(path, "");
  ASSERT_TRUE(studies.ok()) << studies.status();
  const auto client = Store((*studies)[0]);
  const ExperimentKey key{"default", "my-study-1"};
  const auto trial = client->GetTrial({key, 1});
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->phase(), v1::TRIAL_SUCCEEDED);
  EXPECT_TRUE(trial->infeasible());
  EXPECT_FALSE(trial->has_objective());
  EXPECT_EQ(client->GetExperiment(key)->status().current_optimal_trial().number(), 2);
}

// To Optuna a pruned trial is never the best one, whatever it said last.
TEST_F(ImportTest, APrunedTrialThatSeemsBestIsLeftOut) {
  const std::string rows =
      "INSERT INTO studies VALUES (1, 's'); INSERT INTO study_directions VALUES (1, 'MAXIMIZE', 0);"
      "INSERT INTO trials VALUES (1, 0, 1, 'COMPLETE', '', ''), (2, 1, 1, 'PRUNED', '', ''),"
      "  (3, 2, 1, 'PRUNED', '', '');"
      "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) SELECT"
      "  trial_id, 'x', trial_id / 10.0, '{\"name\": \"FloatDistribution\", \"attributes\":"
      "  {\"low\": 0, \"high\": 1}}' FROM trials;"
      "INSERT INTO trial_intermediate_values VALUES (2, 0, 0.1, 'FINITE'), (2, 1, 5, 'FINITE'),"
      "  (3, 0, 5, 'FINITE'), (3, 1, 0.1, 'FINITE');"
      "INSERT INTO trial_values VALUES (1, 0, 0.9, 'FINITE')";
  const std::string path = Sqlite("pruned.db", kOptunaTables + rows);
  auto studies = ReadOptuna("sqlite:///" + path, "");
  ASSERT_TRUE(studies.ok()) << studies.status();
  client::Imported& study = (*studies)[0];
  EXPECT_THAT(study.notes, ElementsAre("1 pruned trials are left out: what they reported last is "
                                       "better than the best result of the study"));
  const auto experiment = Store(study)->GetExperiment({"default", "s"});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->status().trials(), 2);
  EXPECT_EQ(experiment->status().trials_early_stopped(), 1);
  EXPECT_DOUBLE_EQ(experiment->status().current_optimal_trial().objective(), 0.9);
}

TEST_F(ImportTest, WhatIsNoStudyIsRefusedInWords) {
  EXPECT_EQ(ReadOptuna(folder_ + "/nothing", "").status().code(), absl::StatusCode::kNotFound);
  const std::string other = Sqlite("other.db", "CREATE TABLE t (x)");
  EXPECT_THAT(Message(ReadOptuna(other, "").status()), HasSubstr("not a storage of Optuna"));
  const std::string optuna = Sqlite("optuna.db", std::string(kOptunaTables) + kOptunaRows);
  EXPECT_THAT(Message(ReadOptuna(optuna, "yours").status()), HasSubstr("it has My Study_1"));
}

TEST_F(ImportTest, SeveralObjectivesAndConstraintsOfOptunaAreTaken) {
  const std::string path = Sqlite("optuna.db", std::string(kOptunaTables) + kOptunaRows + R"sql(
INSERT INTO study_directions VALUES (1, 'MINIMIZE', 1);
UPDATE trials SET state = 'COMPLETE' WHERE trial_id IN (2, 3);
INSERT INTO trial_values VALUES (1, 1, 40, 'FINITE'), (2, 0, 0.8, 'FINITE'), (2, 1, 10, 'FINITE'),
  (3, 0, 0.95, 'FINITE'), (3, 1, 5, 'FINITE');
CREATE TABLE study_system_attributes (study_id INTEGER, key TEXT, value_json TEXT);
INSERT INTO study_system_attributes VALUES (1, 'study:metric_names', '["accuracy", "latency"]');
CREATE TABLE trial_system_attributes (trial_id INTEGER, key TEXT, value_json TEXT);
INSERT INTO trial_system_attributes VALUES (1, 'constraints', '[-1.0, 0.0]'),
  (2, 'constraints', '[-2.0, -1.0]'), (3, 'constraints', '[3.0, -1.0]'),
  (1, 'constraints:memory', '-5.0'), (2, 'constraints:memory', '-1.0'),
  (3, 'constraints:memory', '-1.0'), (1, 'nsga2:generation', '3');
)sql");
  auto studies = ReadOptuna(path, "");
  ASSERT_TRUE(studies.ok()) << studies.status();
  const auto client = Store((*studies)[0]);
  const auto experiment = client->GetExperiment({"default", "my-study-1"});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  const v1::ShirabeSpec& spec = experiment->spec().shirabe();
  EXPECT_EQ(experiment->spec().objective().objective_metric_name(), "accuracy");
  ASSERT_EQ(spec.additional_objectives_size(), 1);
  EXPECT_EQ(spec.additional_objectives(0).metric_name(), "latency");
  EXPECT_EQ(spec.additional_objectives(0).type(), v1::MINIMIZE);
  ASSERT_EQ(spec.constraints_size(), 3);
  EXPECT_EQ(spec.constraints(2).metric_name(), "constraint.memory");
  EXPECT_EQ(spec.constraints(2).max(), 0);
  // The third breaks the first constraint; the other two are better in one objective each.
  const v1::ResultFront& front = experiment->status().shirabe().front();
  ASSERT_EQ(front.trials_size(), 2);
  EXPECT_THAT(front.trials(0).values(), ElementsAre(0.9, 40));
  EXPECT_THAT(front.trials(1).values(), ElementsAre(0.8, 10));
  EXPECT_EQ(experiment->status().current_optimal_trial().objective(), 0.9);
}

// What programs keep there of a study and its trials is not lost; it is text of any kind and size.
TEST_F(ImportTest, UserAttributesOfOptunaBecomeNotes) {
  const std::string path = Sqlite("optuna.db", std::string(kOptunaTables) + kOptunaRows + R"sql(
CREATE TABLE study_user_attributes (study_id INTEGER, key TEXT, value_json TEXT);
INSERT INTO study_user_attributes VALUES (1, 'people', '["Akiba"]'), (2, 'of', '"another"');
CREATE TABLE trial_user_attributes (trial_id INTEGER, key TEXT, value_json TEXT);
INSERT INTO trial_user_attributes VALUES (1, 'seed', '7'), (1, 'commit', '"ab' || char(27) || 'c"'),
  (99, 'of', '"another"'), (2, 'log', replace(hex(zeroblob(2500)), '00', 'é')), (2, 'seed', '8');
)sql");
  auto studies = ReadOptuna(path, "");
  ASSERT_TRUE(studies.ok()) << studies.status();
  // As it comes over the wire, too.
  auto sent = client::FromWire(client::ToWire("default", (*studies)[0]));
  ASSERT_TRUE(sent.ok()) << sent.status();
  const auto client = Store(*sent);
  const ExperimentKey key{"default", "my-study-1"};
  EXPECT_EQ(client->GetExperiment(key)->status().shirabe().note(), "- people: [\"Akiba\"]\n");
  EXPECT_EQ(client->GetTrial({key, 1})->note(), "- commit: \"ab c\"\n- seed: 7\n");
  EXPECT_EQ(client->GetTrial({key, 2})->note(), "- seed: 8\n");
  EXPECT_THAT((*studies)[0].notes, testing::Contains(HasSubstr("1 user attributes are left out")));
}

// Another client may send any.
TEST_F(ImportTest, ANoteThatIsTooLongIsCut) {
  const std::string path = Sqlite("optuna.db", std::string(kOptunaTables) + kOptunaRows);
  auto studies = ReadOptuna(path, "");
  client::Imported& study = (*studies)[0];
  study.note = std::string(1 << 20, 'n');
  for (int i = 0; i < 3000; ++i) study.trials[0].note += "é";
  const auto client = Store(study);
  const ExperimentKey key{"default", "my-study-1"};
  const std::string note = client->GetExperiment(key)->status().shirabe().note();
  EXPECT_EQ(note.size(), experiment::kMaxNoteBytes);
  const std::string of_trial = client->GetTrial({key, 1})->note();
  EXPECT_LE(of_trial.size(), experiment::kMaxTrialNoteBytes);
  EXPECT_THAT(of_trial, testing::EndsWith("…"));
}

// As Optuna's tutorial of conditional parameters has it: a classifier, what each kind has, and as
// many layers as there are.
TEST_F(ImportTest, ParametersThatNotEveryTrialHasGetConditions) {
  std::string rows = R"sql(
INSERT INTO studies VALUES (1, 'branches');
INSERT INTO study_directions VALUES (1, 'MAXIMIZE', 0);
)sql";
  int64_t parameter = 0;
  const auto add = [&](int trial, const char* name, double value, const std::string& kind,
                       const std::string& attributes) {
    absl::StrAppend(&rows, "INSERT INTO trial_params VALUES (", ++parameter, ", ", trial, ", '",
                    name, "', ", value, ", '{\"name\": \"", kind, "\", \"attributes\": {",
                    attributes, "}}');\n");
  };
  const std::string kFloat = "\"low\": 0, \"high\": 1, \"log\": false, \"step\": null";
  const std::string kInt = "\"low\": 1, \"high\": 3, \"log\": false, \"step\": 1";
  for (int trial = 1; trial <= 12; ++trial) {
    const bool failed = trial == 12;  // before more than the model was suggested
    absl::StrAppend(&rows, "INSERT INTO trials VALUES (", trial, ", ", trial - 1, ", 1, '",
                    failed ? "FAIL" : "COMPLETE",
                    "', '2026-01-01 00:00:00', '2026-01-01 00:00:09');\n"
                    "INSERT INTO trial_values VALUES (",
                    trial, ", 0, 0.", trial, ", 'FINITE');\n");
    add(trial, "model", trial % 2, "CategoricalDistribution", R"("choices": ["svm", "net"])");
    if (failed) continue;
    if (trial % 2 == 0) {
      add(trial, "kernel", trial / 2 % 2, "CategoricalDistribution",
          R"("choices": ["rbf", "line"])");
      if (trial / 2 % 2 == 0) add(trial, "gamma", 0.5, "FloatDistribution", kFloat);
    } else {
      const int layers = 1 + trial / 2 % 3;
      add(trial, "layers", layers, "IntDistribution", kInt);
      add(trial, "units1", 2, "IntDistribution", kInt);
      if (layers > 1) add(trial, "units2", 3, "IntDistribution", kInt);
      if (trial < 6) add(trial, "whim", 1, "IntDistribution", kInt);
    }
  }
  auto studies = ReadOptuna(Sqlite("optuna.db", kOptunaTables + rows), "");
  ASSERT_TRUE(studies.ok()) << studies.status();
  const auto client = Store((*studies)[0]);
  EXPECT_THAT((*studies)[0].notes,
              ElementsAre("parameter whim is left out: 3 trials have it, and no other parameter "
                          "tells which",
                          HasSubstr("1 trials are left out (trial 11: parameter")));
  const ExperimentKey key{"default", "branches"};
  const auto experiment = client->GetExperiment(key);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  std::vector<std::string> conditions;
  for (const auto& condition : experiment->spec().shirabe().space().conditions()) {
    conditions.push_back(condition.parameter() + ": " + condition.when().ShortDebugString());
  }
  EXPECT_THAT(conditions, UnorderedElementsAre(
                              AllOf(StartsWith("kernel: "), HasSubstr("model"), HasSubstr("svm")),
                              AllOf(StartsWith("gamma: "), HasSubstr("kernel"), HasSubstr("rbf")),
                              AllOf(StartsWith("layers: "), HasSubstr("model"), HasSubstr("net")),
                              AllOf(StartsWith("units1: "), HasSubstr("model")),
                              AllOf(StartsWith("units2: "), HasSubstr("layers"), HasSubstr("min"),
                                    HasSubstr("2"))));
  const auto trials = client->ListTrials({.experiment = key});
  ASSERT_TRUE(trials.ok());
  ASSERT_EQ(trials->size(), 11u);
  EXPECT_EQ((*trials)[0].assignments_size(), 3);  // a net of one layer
  EXPECT_EQ((*trials)[3].assignments_size(), 3);  // svm, rbf, gamma
  EXPECT_EQ((*trials)[1].assignments_size(), 2);  // svm, line
}

TEST_F(ImportTest, OfTheFurtherFieldsOnlyThoseOfResultsAreTaken) {
  const std::string path = Sqlite("optuna.db", std::string(kOptunaTables) + kOptunaRows);
  auto studies = ReadOptuna(path, "");
  ASSERT_TRUE(studies.ok());
  client::Imported& study = (*studies)[0];
  const auto refused = [&](const nlohmann::ordered_json& further) {
    study.further = further;
    return Message(client::MakeBatch("default", study, absl::Now()).status());
  };
  EXPECT_THAT(refused({{"budget", {{"maxCost", 1}}}}),
              HasSubstr("\"budget\" is not additionalObjectives"));
  EXPECT_THAT(refused(nlohmann::ordered_json::array({1})), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused({{"constraints", {{{"metricName", "x"}}}}}), HasSubstr("give min, max"));
}

constexpr char kKatib[] = R"(apiVersion: v1
kind: List
items:
- apiVersion: kubeflow.org/v1beta1
  kind: Experiment
  metadata: {name: random, namespace: kubeflow, uid: u, labels: {a: b}}
  spec:
    objective: {type: minimize, objectiveMetricName: loss, additionalMetricNames: [acc]}
    algorithm: {algorithmName: random}
    nasConfig: {graphConfig: {numLayers: 3}}
    parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.05"}}
- apiVersion: kubeflow.org/v1beta1
  kind: Trial
  metadata: {name: random-abc, labels: {katib.kubeflow.org/experiment: random}}
  spec: {parameterAssignments: [{name: lr, value: "0.02"}]}
  status:
    startTime: "2026-01-01T00:00:00Z"
    completionTime: "2026-01-01T00:01:00Z"
    conditions: [{type: Created, status: "True"}, {type: Succeeded, status: "True"}]
    observation:
      metrics: [{name: loss, min: "0.2", max: "0.9", latest: "0.3"},
                {name: acc, min: "0.1", max: "0.2", latest: unavailable}]
- apiVersion: kubeflow.org/v1beta1
  kind: Trial
  metadata: {name: random-def, labels: {katib.kubeflow.org/experiment: random}}
  spec: {parameterAssignments: [{name: lr, value: "0.03"}]}
  status: {conditions: [{type: Running, status: "True"}]}
)";

TEST_F(ImportTest, ADumpOfKatibBecomesExperiments) {
  auto read = ReadKatib("dump.yaml", kKatib);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  ASSERT_EQ((*read)[0].trials.size(), 1u);
  const auto client = Store((*read)[0]);
  const auto trial = client->GetTrial({{"default", "random"}, 1});
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_DOUBLE_EQ(trial->objective(), 0.2);
  EXPECT_DOUBLE_EQ(trial->seconds(), 60);
  EXPECT_THAT(trial->explanation(), HasSubstr("random-abc"));
  EXPECT_THAT(Message(ReadKatib("dump.yaml", "kind: List\nitems: []\n").status()),
              HasSubstr("has no Experiment"));
  EXPECT_THAT(Message(ReadKatib("dump.yaml", "a: [\n").status()), HasSubstr("dump.yaml:"));
}

// As kubectl writes those of all namespaces.
TEST_F(ImportTest, ExperimentsOfOneNameInTwoNamespacesKeepTheirTrials) {
  std::string dump;
  for (const std::string ns : {"a", "b"}) {
    absl::StrAppend(
        &dump, "---\nkind: Experiment\nmetadata: {name: e, namespace: ", ns,
        "}\nspec: {objective: {type: minimize, objectiveMetricName: loss}, parameters: "
        "[{name: x, parameterType: double, feasibleSpace: {min: \"0\", max: \"1\"}}]}\n");
    for (const std::string number : {"1", "2"}) {
      absl::StrAppend(
          &dump, "---\nkind: Trial\nmetadata: {name: ", ns, number, ", namespace: ", ns,
          ", labels: {katib.kubeflow.org/experiment: e}}\nspec: {parameterAssignments: [{name: x, "
          "value: \"0.",
          number, "\"}]}\nstatus: {conditions: [{type: ", number == "1" ? "Succeeded" : "Running",
          ", status: \"True\"}], observation: {metrics: [{name: loss, latest: \"1\", min: "
          "\"1\"}]}}\n");
    }
  }
  const auto read = ReadKatib("dump.yaml", dump);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  // One's own file, which has none, beside trials of the cluster.
  const auto own =
      ReadKatib("dump.yaml", absl::StrReplaceAll(dump, {{"name: e, namespace: a", "name: e"},
                                                        {"name: e, namespace: b", "name: f"}}));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ((*own)[0].trials.size(), 2u);
  for (const client::Imported& one : *read) {
    ASSERT_EQ(one.trials.size(), 1u) << one.ns;
    EXPECT_EQ(one.trials[0].name, "trial " + one.ns + "1");
    EXPECT_THAT(one.notes, ElementsAre("1 trials had not ended"));
  }
}

// As `shirabe export` writes those of a conditional space.
TEST_F(ImportTest, AnEmptyCellIsAParameterThatDoesNotExist) {
  auto read = ReadCsv("t.csv", "loss,C,depth,model,z\n0.5,0.1,,svm,1\n0.4,,7,rf,\n0.3,1.5,,svm,\n",
                      {.name = "cells", .metric = "loss"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->parameters[0]["parameterType"], "double");
  EXPECT_EQ(read->further["space"]["conditions"].dump(),
            R"([{"parameter":"C","when":{"model":["svm"]}},)"
            R"({"parameter":"depth","when":{"model":["rf"]}}])");
  EXPECT_THAT(read->notes,
              ElementsAre("column C has empty cells: it is taken to exist where "
                          "{\"model\":[\"svm\"]}",
                          "column depth has empty cells: it is taken to exist where "
                          "{\"model\":[\"rf\"]}",
                          "column z has empty cells, and no other column tells where: it is "
                          "categorical, and \"\" one of its values"));
  // A name that each trial has for itself tells of none.
  const auto named =
      ReadCsv("t.csv", "Name,lr,loss\na,0.1,1\nb,0.2,2\nc,,3\n", {.name = "t", .metric = "loss"});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_FALSE(named->further.contains("space"));
  const auto client = Store(*read);
  const auto trials = client->ListTrials({.experiment = {"default", "cells"}});
  ASSERT_TRUE(trials.ok()) << trials.status();
  ASSERT_EQ(trials->size(), 3u);
  EXPECT_EQ((*trials)[0].assignments_size(), 3) << "C, model, z";
}

TEST_F(ImportTest, WhatIsLeftOutIsNotCounted) {
  auto read = ReadCsv("t.csv", "lr,loss\n1,2\n2,3\n", {.name = "few", .metric = "loss"});
  ASSERT_TRUE(read.ok()) << read.status();
  read->trials[1].values[0].second = "7";  // outside of the space
  const auto experiment = Store(*read)->GetExperiment({"default", "few"});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->status().trials(), 1);
  EXPECT_EQ(experiment->spec().max_trial_count(), 1);
}

TEST_F(ImportTest, ATableBecomesTheSpaceThatHoldsIt) {
  const std::string text =
      "lr,n,opt,fixed,loss\n0.5,1,a,7,0.25\n0.75,3,\"b, \"\"c\"\"\",7,0.5\r\n\n1.5,2,a,7,\n";
  auto read = ReadCsv("t.csv", text, {.name = "table", .metric = "loss"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->parameters[0]["parameterType"], "double");
  EXPECT_EQ(read->parameters[1]["parameterType"], "int");
  EXPECT_EQ(read->parameters[2]["feasibleSpace"]["list"][1], "b, \"c\"");
  EXPECT_EQ(read->parameters[3]["parameterType"], "categorical");
  const auto client = Store(*read);
  const auto experiment = client->GetExperiment({"default", "table"});
  ASSERT_TRUE(experiment.ok());
  EXPECT_EQ(experiment->status().trials_succeeded(), 2);
  EXPECT_EQ(experiment->status().trials_failed(), 1);
  EXPECT_DOUBLE_EQ(experiment->status().current_optimal_trial().objective(), 0.25);
}

TEST_F(ImportTest, ATableWithMistakesNamesTheLine) {
  const CsvOptions options{.name = "t", .metric = "loss"};
  const auto marked = ReadCsv("t.csv", "\xEF\xBB\xBFloss,a\n1,2\n3,4\n", options);
  EXPECT_TRUE(marked.ok()) << marked.status() << ": the mark of Excel is no part of a name";
  const auto message = [&](const std::string& text) {
    return Message(ReadCsv("t.csv", text, options).status());
  };
  EXPECT_THAT(message("lr,los\n1,2\n"), HasSubstr("did you mean los?"));
  EXPECT_THAT(message("lr,loss\n1\n"), HasSubstr("t.csv:2: 1 cells, but the header has 2"));
  EXPECT_THAT(message("lr,loss\n1,x\n"), HasSubstr("t.csv:2: loss is not a number: \"x\""));
  EXPECT_THAT(message("lr,loss\n\"1,2\n"), HasSubstr("t.csv:2: a quote is not closed"));
  EXPECT_THAT(message("lr,loss\n"), HasSubstr("no rows"));
  EXPECT_THAT(message("loss\n1\n"), HasSubstr("no column of a parameter"));
  EXPECT_THAT(message("lr,loss,loss\n1,2,3\n"), HasSubstr("t.csv has two columns \"loss\""));
}

TEST_F(ImportTest, ColumnsAreChosenByNameAndAWrongOneIsNamed) {
  CsvOptions options{.name = "t", .metric = "loss", .parameters = {"a"}};
  const auto plain = ReadCsv("t.csv", "a,b,loss\n1,2,3\n", options);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->parameters.size(), 1u);
  options.parameters = {"param.a"};  // as the header of an export says it
  const auto exported = ReadCsv("t.csv", "param.a,param.b,loss\n1,2,3\n", options);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->parameters[0]["name"], "a");
  options.parameters = {"a", "bb"};
  EXPECT_THAT(Message(ReadCsv("t.csv", "a,b,loss\n1,2,3\n", options).status()),
              HasSubstr("t.csv has no column \"bb\"; it has a, b, loss"));
}

// As pandas writes Study.trials_dataframe() of Optuna 4.6: an index, dates, attributes of the user.
TEST_F(ImportTest, ATableOfOptunaHasItsParametersByPrefix) {
  const std::string header =
      ",number,value,datetime_start,datetime_complete,duration,params_lr,params_opt,"
      "user_attrs_note,state\n";
  const std::string times = ",2026-11-28 10:00:00.1,2026-11-28 10:01:00.2,0 days 00:01:00.100000,";
  const std::string text = header + "0,0,0.5" + times + "0.01,adam,a,COMPLETE\n" + "1,1,0.75" +
                           times + "0.1,sgd,,PRUNED\n" + "2,2," + times + ",,,FAIL\n" +
                           "3,3,,2026-11-28 10:03:00.1,,,0.3,sgd,,RUNNING\n4,4,,,,,,,,WAITING\n";
  CsvOptions options{.name = "study", .metric = "value"};
  const auto read = ReadCsv("t.csv", text, options);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->parameters.size(), 2u);
  EXPECT_EQ(read->parameters[0]["name"], "lr");
  EXPECT_EQ(read->parameters[0]["parameterType"], "double");
  EXPECT_EQ(read->parameters[1]["name"], "opt");
  ASSERT_EQ(read->trials.size(), 3u);
  EXPECT_EQ(read->trials[0].phase, v1::TRIAL_SUCCEEDED);
  EXPECT_EQ(read->trials[1].phase, v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(read->trials[2].phase, v1::TRIAL_FAILED) << "before it had its parameters";
  EXPECT_THAT(read->notes, ElementsAre("2 trials had not ended"));
  options.maximize = true;  // to which 0.75 is the better value
  const auto best = ReadCsv("t.csv", text, options);
  EXPECT_THAT(best->notes, Contains(HasSubstr("1 pruned trials are left out")));
  EXPECT_EQ(best->trials.size(), 2u);
  options.parameters = {"params_lr"};
  EXPECT_EQ(ReadCsv("t.csv", text, options)->parameters.size(), 1u);
  EXPECT_THAT(Message(ReadCsv("t.csv", header + "0,0,,,,,0.1,a,,RUNNING\n", options).status()),
              HasSubstr("t.csv has no trial that had ended"));
  // Without Optuna's other columns it is a name like any other.
  EXPECT_EQ(ReadCsv("t.csv", "params_m,lr,value\n1,2,3\n", {.name = "t", .metric = "value"})
                ->parameters.size(),
            2u);
}

TEST_F(ImportTest, ATableOfRayTuneHasItsParametersByPrefix) {
  const auto read = ReadCsv(
      "t.csv",
      "loss,timestamp,done,training_iteration,trial_id,config/lr\n0.5,17,True,3,ab_0,0.01\n",
      {.name = "t", .metric = "loss"});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->parameters.size(), 1u);
  EXPECT_EQ(read->parameters[0]["name"], "lr");
}

TEST(ExperimentName, IsMadeOfWhatThereIs) {
  EXPECT_EQ(client::ExperimentNameFrom("My Study_1"), "my-study-1");
  EXPECT_EQ(client::ExperimentNameFrom("--"), "imported");
  EXPECT_EQ(client::ExperimentNameFrom(std::string(60, 'a')).size(), 40u);
}

}  // namespace
}  // namespace shirabe::import
