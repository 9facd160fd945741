#include "base/text/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <clocale>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace shirabe {
namespace {

TEST(Number, EveryDoubleReadsBackAsItself) {
  Rng rng(1);
  for (int i = 0; i < 1000000; ++i) {
    const double value = std::bit_cast<double>(rng.Next());
    const std::string text = FormatNumber(value);
    const auto back = ParseNumber(text);
    ASSERT_TRUE(back.has_value()) << text;
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(*back)) << text;
    } else {
      ASSERT_EQ(std::bit_cast<uint64_t>(*back), std::bit_cast<uint64_t>(value)) << text;
    }
  }
}

TEST(Number, EdgesReadBackToo) {
  using Limits = std::numeric_limits<double>;
  for (const double value : {0.0, -0.0, Limits::min(), Limits::denorm_min(), Limits::max(),
                             -Limits::max(), 9007199254740993.0, 0.1, 1.0 / 3}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(ParseNumber(FormatNumber(value)).value()),
              std::bit_cast<uint64_t>(value));
  }
}

TEST(Number, IsWrittenShort) {
  EXPECT_EQ(FormatNumber(0.1), "0.1");
  EXPECT_EQ(FormatNumber(32), "32");
  EXPECT_EQ(FormatNumber(1e-5), "1e-05");
  EXPECT_EQ(FormatNumber(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(FormatNumber(-kInfinity), "-Infinity");
  EXPECT_EQ(FormatNumber(std::nan("")), "NaN");
}

TEST(Number, FormsThatAreRead) {
  const std::pair<const char*, double> cases[] = {{"0", 0},
                                                  {"+1", 1},
                                                  {"-1.5", -1.5},
                                                  {".5", 0.5},
                                                  {"5.", 5},
                                                  {"1e3", 1000},
                                                  {"1E+3", 1000},
                                                  {"1e-3", 0.001},
                                                  {"007", 7},
                                                  {"inf", kInfinity},
                                                  {"-Inf", -kInfinity},
                                                  {"+INFINITY", kInfinity},
                                                  {"1e999", kInfinity},
                                                  {"-1e999", -kInfinity},
                                                  {"1e-999", 0}};
  for (const auto& [text, value] : cases) {
    ASSERT_TRUE(ParseNumber(text).has_value()) << text;
    EXPECT_EQ(*ParseNumber(text), value) << text;
  }
  EXPECT_TRUE(std::isnan(ParseNumber("NaN").value()));
  EXPECT_TRUE(std::isnan(ParseNumber("-nan").value()));
}

TEST(Number, EverythingElseIsRefused) {
  for (const std::string text :
       {"",    " ",     "+",     "-",       ".",      "e",     "e5",  "1e",
        "1e+", "1_000", "0.5.1", "0,5",     "0x10",   " 1",    "1 ",  "--1",
        "+-1", "1f",    "in",    "infinit", "nan(1)", "1e5e5", "one", "1\n"}) {
    EXPECT_EQ(ParseNumber(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseNumber(std::string_view("1\0", 2)), std::nullopt);
}

TEST(Number, BytesNeverReadAs1024OfAUnit) {
  const std::pair<int64_t, const char*> cases[] = {{0, "0 B"},
                                                   {1023, "1023 B"},
                                                   {1024, "1.0 KiB"},
                                                   {1536, "1.5 KiB"},
                                                   {1'048'524, "1023.9 KiB"},
                                                   {1'048'575, "1.0 MiB"},
                                                   {1'048'576, "1.0 MiB"},
                                                   {int64_t{1} << 30, "1.0 GiB"},
                                                   {int64_t{1} << 40, "1.0 TiB"},
                                                   {int64_t{3} << 50, "3072.0 TiB"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(FormatBytes(bytes), text) << bytes;
}

// A locale with a decimal comma changes nothing, where such a locale is installed.
TEST(Number, NoLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;
    EXPECT_EQ(FormatNumber(0.5), "0.5") << locale;
    EXPECT_EQ(ParseNumber("0.5"), 0.5) << locale;
    EXPECT_EQ(ParseNumber("1e400"), kInfinity) << locale;
  }
  std::setlocale(LC_ALL, before.c_str());
}

}  // namespace
}  // namespace shirabe
