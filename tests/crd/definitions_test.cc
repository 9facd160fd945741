// The definitions: what is written beside them in the tree is what they are, and they keep what the
// API server asks of a structural schema.
#include "crd/resource_kinds.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file_io.h"
#include "tests/support/paths.h"
#include "view/record_json.h"

namespace shirabe::crd {
namespace {

const OrderedJson& SchemaOf(const Definition& definition) {
  return definition.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

OrderedJson ExperimentSpec() { return SchemaOf(Definitions()[0])["properties"]["spec"]; }

// Calls `visit` for every schema in it, with its path.
template <class Visit>
void ForEach(const OrderedJson& schema, const std::string& path, const Visit& visit) {
  visit(schema, path);
  const OrderedJson properties = schema.value("properties", OrderedJson::object());
  for (const auto& [name, child] : properties.items()) {
    ForEach(child, path + "." + name, visit);
  }
  if (schema.contains("items")) ForEach(schema["items"], path + "[]", visit);
}

TEST(DefinitionsTest, AreWhatTheFilesHold) {
  for (const Definition& definition : Definitions()) {
    const std::string path = SourceDir() + "/deploy/kubernetes/crds/" + definition.plural + ".yaml";
    const auto file = ReadFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*file, view::PrintYaml(definition.object))
        << "write it anew: shirabe crds " << definition.plural << " > " << path;
  }
}

TEST(DefinitionsTest, EveryValueHasATypeOrTakesAny) {
  for (const Definition& definition : Definitions()) {
    ForEach(SchemaOf(definition), definition.plural,
            [](const OrderedJson& schema, const std::string& path) {
              const bool any = schema.value("x-kubernetes-preserve-unknown-fields", false);
              const bool number = schema.value("x-kubernetes-int-or-string", false);
              EXPECT_TRUE(schema.contains("type") || any || number) << path;
              EXPECT_FALSE(schema.contains("type") && number) << path;
            });
  }
}

TEST(DefinitionsTest, ObjectsKeepWhatTheyDoNotKnow) {
  for (const Definition& definition : Definitions()) {
    ForEach(SchemaOf(definition), definition.plural,
            [](const OrderedJson& schema, const std::string& path) {
              if (schema.value("type", "") != "object" || schema.contains("additionalProperties") ||
                  path.ends_with(".metadata")) {
                return;
              }
              EXPECT_TRUE(schema.value("x-kubernetes-preserve-unknown-fields", false)) << path;
            });
  }
}

TEST(DefinitionsTest, EveryFieldIsDescribed) {
  ForEach(ExperimentSpec(), "spec", [](const OrderedJson& schema, const std::string& path) {
    if (path.ends_with("[]")) return;
    EXPECT_NE(schema.value("description", ""), "") << path;
  });
}

// Of the shape .status.trials, or .status.conditions[-1:].type.
TEST(DefinitionsTest, ColumnsShowFieldsThatThereAre) {
  for (const Definition& definition : Definitions()) {
    for (const OrderedJson& column :
         definition.object["spec"]["versions"][0]["additionalPrinterColumns"]) {
      const std::string path = column["jsonPath"];
      if (path == ".metadata.creationTimestamp") continue;
      OrderedJson schema = SchemaOf(definition);
      for (const absl::string_view part : absl::StrSplit(path.substr(1), '.')) {
        const std::string word(absl::StripSuffix(part, "[-1:]"));
        ASSERT_TRUE(schema["properties"].contains(word)) << path;
        schema = OrderedJson(schema["properties"][word]);
        if (word != part) schema = OrderedJson(schema["items"]);
      }
    }
  }
}

TEST(DefinitionsTest, NumbersMayBeText) {
  const OrderedJson spec = ExperimentSpec()["properties"];
  EXPECT_TRUE(spec["maxTrialCount"]["x-kubernetes-int-or-string"]);
  EXPECT_EQ(spec["maxTrialCount"]["minimum"], 1);
  const OrderedJson space =
      spec["parameters"]["items"]["properties"]["feasibleSpace"]["properties"];
  for (const char* name : {"min", "max", "step"}) EXPECT_FALSE(space[name].contains("type"));
  EXPECT_FALSE(space["list"]["items"].contains("type"));
  const OrderedJson setting =
      spec["algorithm"]["properties"]["algorithmSettings"]["items"]["properties"];
  EXPECT_FALSE(setting["value"].contains("type"));
  EXPECT_EQ(setting["name"]["type"], "string");
}

TEST(DefinitionsTest, WordsAndRequiredFieldsAreRefusedAtTheDoor) {
  const OrderedJson objective = ExperimentSpec()["properties"]["objective"];
  EXPECT_EQ(objective["properties"]["type"]["enum"], OrderedJson({"minimize", "maximize"}));
  EXPECT_EQ(objective["required"], OrderedJson({"type", "objectiveMetricName"}));
  EXPECT_FALSE(objective.contains("nullable"));
  EXPECT_TRUE(ExperimentSpec()["properties"]["nasConfig"]["nullable"]);
}

TEST(DefinitionsTest, EveryListThatPeopleWriteIsBoundedAndSaysSo) {
  int lists = 0;
  ForEach(ExperimentSpec(), "spec", [&](const OrderedJson& schema, const std::string& path) {
    if (schema.value("type", "") != "array") return;
    ++lists;
    const int most = schema.value("maxItems", 0);
    EXPECT_GT(most, 0) << path;
    EXPECT_TRUE(
        absl::StrContains(schema.value("description", ""), absl::StrCat("; at most ", most)))
        << path;
  });
  EXPECT_GE(lists, 20);
}

TEST(DefinitionsTest, EveryRuleSaysWhatIsWrong) {
  int rules = 0;
  ForEach(ExperimentSpec(), "spec", [&](const OrderedJson& schema, const std::string& path) {
    if (!schema.contains("x-kubernetes-validations")) return;
    for (const OrderedJson& rule : schema["x-kubernetes-validations"]) {
      ++rules;
      EXPECT_NE(rule["rule"], "") << path;
      EXPECT_NE(rule["message"], "") << path;
    }
  });
  EXPECT_EQ(rules, 10) << "each has its place in the schema";
}

TEST(DefinitionsTest, WhatOnlyWeWriteRequiresNothingAndRefusesNoWord) {
  for (const Definition& definition : Definitions()) {
    const OrderedJson& properties = SchemaOf(definition)["properties"];
    ForEach(properties["status"], definition.plural + ".status",
            [](const OrderedJson& schema, const std::string& path) {
              EXPECT_FALSE(schema.contains("required")) << path;
              EXPECT_FALSE(schema.contains("enum")) << path;
            });
  }
}

}  // namespace
}  // namespace shirabe::crd
