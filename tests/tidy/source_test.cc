// The scanner on small snippets: what hides code, and what is a function.
#include "tests/tidy/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::tidy {
namespace {

using testing::ElementsAre;

std::string Code(const std::string& text) { return LexCpp("a.cc", text).code; }

std::vector<std::string> Found(const std::string& text) {
  std::vector<std::string> lines;
  const Functions functions = FindFunctions(LexCpp("a.cc", text));
  EXPECT_EQ(functions.lost_at, 0) << text;
  for (const Function& f : functions.found) {
    lines.push_back(f.name + (f.defined ? " defined " : " declared ") +
                    std::to_string(f.parameters) + " " + std::to_string(f.first_line) + "-" +
                    std::to_string(f.last_line));
  }
  return lines;
}

TEST(Lexer, BlanksCommentsAndStrings) {
  EXPECT_EQ(Code("int a; // new b\nint c;"), "int a;         \nint c;");
  EXPECT_EQ(Code("a /* throw */ b"), "a             b");
  EXPECT_EQ(Code("f(\"a\\\"throw\", 'x', '\\'')"), "f(\"        \", ' ', '  ')");
  EXPECT_EQ(Code("a // one \\\n two\nb"), "a         \n    \nb");
  EXPECT_EQ(Code("\"// no comment\" + x"), "\"             \" + x");
}

TEST(Lexer, KeepsOffsetsAndLines) {
  const Source source = LexCpp("a.cc", "one\n/* two\nthree */ four\n");
  EXPECT_EQ(source.lines(), 3);
  EXPECT_EQ(source.code.size(), source.text.size());
  EXPECT_EQ(source.LineOf(source.text.find("four")), 3);
  EXPECT_EQ(source.Line(source.comments, 3), "three */     ");
  EXPECT_EQ(source.Line(source.code, 3), "         four");
}

TEST(Lexer, RawStringsEndAtTheirOwnDelimiter) {
  EXPECT_EQ(Code("x = R\"(a \" throw)\" + y"), "x = R              + y");
  EXPECT_EQ(Code("R\"re(a)\" new)re\" z"), "R                z");
  EXPECT_EQ(Code("VAR\"(\" z"), "VAR\" \" z");
}

TEST(Lexer, DigitSeparatorsAreNoCharacters) {
  EXPECT_EQ(Code("f(1'000'000, 0x1'F, u8'a', 'b')"), "f(1'000'000, 0x1'F, u8' ', ' ')");
}

TEST(Lexer, UnfinishedTextEndsQuietly) {
  EXPECT_EQ(Code("\"abc"), "\"   ");
  EXPECT_EQ(Code("/* abc"), "      ");
  EXPECT_EQ(Code("R\"abc"), "R\"abc");
  EXPECT_EQ(Code(""), "");
}

TEST(Functions, AreFoundInEveryScope) {
  EXPECT_THAT(Found("namespace a {\nint f(int x) {\n  return x;\n}\n}\n"),
              ElementsAre("f defined 1 2-4"));
  EXPECT_THAT(Found("class A : public B<int> {\n public:\n  void g() const { h(); }\n"
                    "  virtual int k(int, char) = 0;\n};\n"),
              ElementsAre("g defined 0 3-3", "k declared 2 4-4"));
  EXPECT_THAT(Found("extern \"C\" {\nint f(void);\n}\nextern \"C\" int g(int);"),
              ElementsAre("f declared 0 2-2", "g declared 1 4-4"));
}

TEST(Functions, ParametersAreCountedAtTheTopLevelOnly) {
  EXPECT_THAT(Found("void f(std::map<int, char> m, std::function<void(int, int)> g);"),
              ElementsAre("f declared 2 1-1"));
  EXPECT_THAT(Found("void f(int a = g(1, 2), B b = {3, 4}, int c[2]);"),
              ElementsAre("f declared 3 1-1"));
  EXPECT_THAT(Found("template <class A, class B>\nauto f(A a,\n       B b) -> std::pair<A, B> {}"),
              ElementsAre("f defined 2 1-3"));
}

TEST(Functions, ConstructorsWithInitialisers) {
  EXPECT_THAT(Found("A::A(int x) : a_{x, 1}, b_(x), C<int>{2} {\n  f();\n}\nvoid g() {}"),
              ElementsAre("A defined 1 1-3", "g defined 0 4-4"));
}

TEST(Functions, OperatorsAndPointers) {
  EXPECT_THAT(Found("bool operator<(const A& a, const A& b) { return true; }"),
              ElementsAre("operator defined 2 1-1"));
  EXPECT_THAT(
      Found("struct A { int operator()(int x) const; auto operator<=>(const A&) const "
            "= default; A& operator=(A&&) = delete; };"),
      ElementsAre("operator declared 1 1-1", "operator declared 1 1-1", "operator declared 1 1-1"));
  EXPECT_THAT(Found("struct A { Status (*create)(int a, int b); };"),
              ElementsAre("create declared 2 1-1"));
}

TEST(Functions, ValuesAreNone) {
  EXPECT_THAT(Found("int x = f(1, 2);\nstd::vector<int> v{g(1), 2};\nenum class E { kA, kB };\n"
                    "using F = void(int);\nconstexpr int kTable[] = {1, 2, {3}};\n"
                    "static_assert(sizeof(int) == 4);\n"),
              ElementsAre());
}

TEST(Functions, LambdasAndBlocksInsideAreTheirFunctions) {
  EXPECT_THAT(Found("void f() {\n  auto g = [](int a, int b) { return a; };\n  if (x) {\n  }\n}"),
              ElementsAre("f defined 0 1-5"));
  EXPECT_THAT(Found("const auto kF = [](int a) {\n  return a;\n};"),
              ElementsAre("lambda defined 0 1-3"));
}

TEST(Functions, MacrosHideNothing) {
  EXPECT_THAT(Found("#define F(x) \\\n  { x\nTEST(A, B) {\n}\nMACRO(a, b, c, d, e, f);\n"),
              ElementsAre("TEST defined 0 3-4"));
}

TEST(Functions, SayWhereTheyGotLost) {
  EXPECT_EQ(FindFunctions(LexCpp("a.cc", "int f() {\n  (\n}\n")).lost_at, 0);
  EXPECT_EQ(FindFunctions(LexCpp("a.cc", "\nint f( {\n")).lost_at, 2);
  EXPECT_EQ(FindFunctions(LexCpp("a.cc", "int f() {}\n}\n")).lost_at, 2);
  EXPECT_EQ(FindFunctions(LexCpp("a.cc", "namespace a {\nint x;\n")).lost_at, 2);
}

TEST(Functions, OfScripts) {
  const Source python = LexScript("a.py",
                                  "def f(a,\n      b):\n  x\n\n  y\n\nclass A:\n"
                                  "  async def g(self):\n    z\n");
  const Functions functions = FindScriptFunctions(python);
  ASSERT_EQ(functions.found.size(), 2u);
  EXPECT_EQ(functions.found[0].lines(), 5);
  EXPECT_EQ(functions.found[1].name, "g");
  const Source shell = LexScript("a.sh", "f() {\n  # }\n  x\n}\ny\n");
  ASSERT_EQ(FindScriptFunctions(shell).found.size(), 1u);
  EXPECT_EQ(FindScriptFunctions(shell).found[0].lines(), 4);
}

TEST(Spread, IsOfSortedValues) {
  const Spread spread = SpreadOf({9, 1, 5, 3, 7});
  EXPECT_EQ(spread.median, 5);
  EXPECT_EQ(spread.p90, 9);
  EXPECT_EQ(SpreadOf({}).max, 0);
}

}  // namespace
}  // namespace shirabe::tidy
