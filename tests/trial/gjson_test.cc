#include "trial/gjson/gjson.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shirabe::trial {
namespace {

using testing::HasSubstr;

const Json& People() {
  static const Json people = Json::parse(R"({
    "name": {"first": "Tom", "last": "Anderson"}, "age": 37,
    "children": ["Sara", "Alex", "Jack"], "fav.movie": "Deer Hunter", "none": null, "no": false,
    "friends": [
      {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
      {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
      {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}]})");
  return people;
}

// What it selects, as JSON; the message of an error.
std::string Select(const std::string& path, const Json& object = People()) {
  const auto selected = SelectGjson(path, object);
  return selected.ok() ? selected->dump() : Message(selected.status());
}

struct Case {
  const char* path;
  const char* selected;
};

class GjsonPath : public testing::TestWithParam<Case> {};

TEST_P(GjsonPath, Selects) { EXPECT_EQ(Select(GetParam().path), GetParam().selected); }

INSTANTIATE_TEST_SUITE_P(
    Names, GjsonPath,
    testing::Values(Case{"name.last", R"("Anderson")"}, Case{"name|last", R"("Anderson")"},
                    Case{"age", "37"}, Case{"children.1", R"("Alex")"}, Case{"children.3", "null"},
                    Case{"children.first", "null"}, Case{"child*.2", R"("Jack")"},
                    Case{"c?ildren.0", R"("Sara")"}, Case{"fav\\.movie", R"("Deer Hunter")"},
                    Case{"friends.1.last", R"("Craig")"}, Case{"nobody.at.home", "null"},
                    Case{"age.years", "null"}));

INSTANTIATE_TEST_SUITE_P(
    Lists, GjsonPath,
    testing::Values(Case{"children.#", "3"}, Case{"friends.#.age", "[44,68,47]"},
                    Case{"friends.#.nets.0", R"(["ig","fb","ig"])"},
                    Case{"friends.#.first|0", R"("Dale")"}, Case{"friends.#.first|#", "3"},
                    Case{"friends.#.nobody", "[]"}, Case{"name.#", "null"}, Case{"age.#", "null"},
                    Case{"[name.first,age]", R"(["Tom",37])"}, Case{"[nobody]", "[]"},
                    Case{"name.[@this].#", "1"}, Case{"@this.age", "37"}, Case{"age|@this", "37"}));

INSTANTIATE_TEST_SUITE_P(
    Queries, GjsonPath,
    testing::Values(
        Case{R"(friends.#(last=="Murphy").first)", R"("Dale")"},
        Case{R"(friends.#(last="Murphy").first)", R"("Dale")"},
        Case{R"(friends.#(last=="Murphy")#.first)", R"(["Dale","Jane"])"},
        Case{R"(friends.#(last=="Murphy")#|0.first)", R"("Dale")"},
        Case{R"(friends.#(last=="Murphy")#.0)", "[]"}, Case{R"(friends.#(last==Murphy)#|#)", "2"},
        Case{R"(friends.#(age>45)#.last)", R"(["Craig","Murphy"])"},
        Case{R"(friends.#(age >= 47)#.age)", "[68,47]"},
        Case{R"(friends.#(age<"47")#.age)", "[44]"}, Case{R"(friends.#(age<=47)#.age)", "[44,47]"},
        Case{R"(friends.#(age!=47)#.age)", "[44,68]"},
        Case{R"(friends.#(first%"D*").last)", R"("Murphy")"},
        Case{R"(friends.#(first!%"D*").last)", R"("Craig")"},
        Case{R"(friends.#(nets.#(=="fb"))#.first)", R"(["Dale","Roger"])"},
        Case{R"(friends.#(nets.#(=="fb")#|#>0)#.first)", R"(["Dale","Roger"])"},
        Case{R"(children.#(%"*a*")#)", R"(["Sara","Jack"])"},
        Case{R"(children.#(>"B")#)", R"(["Sara","Jack"])"}, Case{R"(friends.#(nobody))", "null"},
        Case{R"(friends.#(nobody)#)", "[]"}, Case{R"(friends.#(age)#|#)", "3"},
        Case{R"(friends.#[last="Craig"].age)", "68"}, Case{R"(children.#(=="a)b"))", "null"},
        Case{R"(friends.#(first=="Da\u006ce").age)", "44"}));

// ---- conditions as Katib's users write them -----------------------------------------------------

Json WithConditions(const std::string& conditions) {
  return Json::parse(R"({"status": {"conditions": )" + conditions + "}}");
}

bool HoldsOn(const std::string& path, const Json& object) {
  const auto holds = MatchesGjson(path, object);
  EXPECT_TRUE(holds.ok()) << holds.status();
  return holds.value_or(false);
}

constexpr char kJobSucceeded[] = R"(status.conditions.#(type=="Complete")#|#(status=="True")#)";
constexpr char kJobFailed[] = R"(status.conditions.#(type=="Failed")#|#(status=="True")#)";

TEST(GjsonCondition, OfAJob) {
  const Json complete = WithConditions(
      R"([{"type": "SuccessCriteriaMet", "status": "True"},
          {"type": "Complete", "status": "True"}])");
  EXPECT_TRUE(HoldsOn(kJobSucceeded, complete));
  EXPECT_FALSE(HoldsOn(kJobFailed, complete));
  const Json not_yet = WithConditions(R"([{"type": "Complete", "status": "False"}])");
  EXPECT_FALSE(HoldsOn(kJobSucceeded, not_yet));
  EXPECT_FALSE(HoldsOn(kJobSucceeded, Json::object()));
  EXPECT_FALSE(HoldsOn(kJobSucceeded, Json()));
}

TEST(GjsonCondition, OfTrainingOperatorAndTekton) {
  const std::string path = R"(status.conditions.#(type=="Succeeded")#|#(status=="True")#)";
  EXPECT_TRUE(HoldsOn(path, WithConditions(R"([{"type": "Created", "status": "True"},
                                               {"type": "Succeeded", "status": "True"}])")));
  EXPECT_FALSE(HoldsOn(path, WithConditions(R"([{"type": "Succeeded", "status": "False"}])")));
}

TEST(GjsonCondition, OfAnArgoWorkflow) {
  const std::string path = R"(status.[@this].#(phase=="Succeeded")#)";
  EXPECT_TRUE(HoldsOn(path, Json::parse(R"({"status": {"phase": "Succeeded"}})")));
  EXPECT_FALSE(HoldsOn(path, Json::parse(R"({"status": {"phase": "Running"}})")));
  EXPECT_FALSE(HoldsOn(path, Json::parse(R"({"metadata": {"name": "x"}})")));
}

TEST(GjsonCondition, HoldsForWhatIsThereAsInKatib) {
  EXPECT_TRUE(HoldsOn("age", People()));
  EXPECT_TRUE(HoldsOn("no", People()));     // there, although false
  EXPECT_FALSE(HoldsOn("none", People()));  // null
  EXPECT_FALSE(HoldsOn("nobody", People()));
  EXPECT_FALSE(HoldsOn("friends.#(age>99)#", People()));
}

// ---- what is refused ----------------------------------------------------------------------------

TEST(GjsonErrors, NameThePlaceAndTheFix) {
  EXPECT_THAT(Select(""), HasSubstr("is empty"));
  EXPECT_THAT(Select("a..b"), HasSubstr("empty name"));
  EXPECT_THAT(Select("a."), HasSubstr("empty name"));
  EXPECT_THAT(Select("children|@reverse"), HasSubstr("modifier @reverse, which is not supported"));
  EXPECT_THAT(Select("@pretty:{}"), HasSubstr("the only one is @this"));
  EXPECT_THAT(Select("{age}"), HasSubstr("[ ]"));
  EXPECT_THAT(Select("!true"), HasSubstr("literal"));
  EXPECT_THAT(Select("a.#(b==\"c\""), HasSubstr("without its ')'"));
  EXPECT_THAT(Select("a.#(b==\"c)"), HasSubstr("not closed"));
  EXPECT_THAT(Select("a.#(b==)"), HasSubstr("with nothing"));
  EXPECT_THAT(Select("a.#()"), HasSubstr("empty query"));
  EXPECT_THAT(Select("a.#(b==~true)"), HasSubstr("'~'"));
  EXPECT_THAT(Select("a.#x"), HasSubstr("a length is # alone"));
  EXPECT_THAT(Select("[a"), HasSubstr("without its ']'"));
  EXPECT_THAT(Select("a\\"), HasSubstr("ends with '\\'"));
  EXPECT_THAT(Select("a.#(b==\"c\")x"), HasSubstr("at character 12"));
}

TEST(GjsonErrors, AreFoundWithoutAnObject) {
  EXPECT_TRUE(ValidateGjson(kJobSucceeded).ok());
  EXPECT_FALSE(ValidateGjson("status.@flatten").ok());
  EXPECT_EQ(MatchesGjson("a..b", Json()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GjsonErrors, NestingAndLengthAreBounded) {
  std::string nested, closed;
  for (int i = 0; i < 100; ++i) nested += "#(a.", closed += ")";
  EXPECT_THAT(Select(nested + "b" + closed), HasSubstr("too many queries"));
  EXPECT_THAT(Select(std::string(1000, '[')), HasSubstr("too many lists"));
  EXPECT_THAT(Select(std::string(5000, 'a')), HasSubstr("longer than"));
}

// The classic trap of wildcard matching: it must not take exponential time.
TEST(GjsonErrors, WildcardsAreFast) {
  std::string stars;
  for (int i = 0; i < 500; ++i) stars += "a*";
  const Json object = {{std::string(10'000, 'a'), 1}};
  EXPECT_EQ(Select(stars + "b", object), "null");
}

}  // namespace
}  // namespace shirabe::trial
