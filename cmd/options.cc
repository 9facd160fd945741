#include "cmd/options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"

namespace shirabe::cmd {
namespace {

constexpr char kUsagePayload[] = "shirabe/usage";
constexpr size_t kHelpColumn = 30;
constexpr size_t kHelpWidth = 90;

std::string Spelling(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return absl::StrJoin(names, ", ");
}

// Lines of at most `width` columns, broken at blanks.
std::string Folded(const std::string& text, size_t width) {
  std::string out;
  size_t column = 0;
  for (const auto& word : absl::StrSplit(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      out += '\n';
      column = 0;
    }
    if (column > 0) out += ' ';
    column += (column > 0) + word.size();
    out.append(word.data(), word.size());
  }
  return out;
}

}  // namespace

struct Options::Parser {
  CLI::App app;
  std::string arguments_name;
  size_t least = 0, most = 0;
  std::vector<std::string>* arguments = nullptr;

  StatusOr<bool> Fail(const CLI::ParseError& error, const std::string& usage) const;
  Status Unknown(const std::string& word, const std::string& usage) const;
  Status CheckArguments(const std::string& usage) const;
  const CLI::Option* Repeated() const;
};

Options::Options(std::string usage, std::string about)
    : usage_(std::move(usage)), about_(std::move(about)), parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag("-h,--help", "show this help");
  parser_->app.allow_extras();  // so that we say ourselves what is wrong with them
}

Options::~Options() = default;

void Options::Flag(const std::string& names, bool* target, const std::string& help) {
  parser_->app.add_flag(names, *target, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Options::Text(const std::string& names, std::string* target, const std::string& metavar,
                   const std::string& help) {
  parser_->app.add_option(names, *target, help)->type_name(metavar);
}

void Options::Texts(const std::string& names, std::vector<std::string>* target,
                    const std::string& metavar, const std::string& help) {
  // One value each time it is given, so that what follows is not swallowed.
  parser_->app.add_option(names, *target, help)
      ->type_name(metavar)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

namespace {

auto NumberFrom(int64_t least, int64_t most, std::optional<int64_t>* target) {
  return [target, least, most](const std::string& text) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < least || number > most) {
      return absl::StrCat("\"", text, "\" must be a whole number of at least ", least,
                          " and at most ", most);
    }
    *target = number;
    return std::string();
  };
}

}  // namespace

void Options::Number(const std::string& names, std::optional<int64_t>* target, int64_t least,
                     const std::string& help) {
  const auto read = NumberFrom(least, std::numeric_limits<int64_t>::max(), target);
  parser_->app.add_option(names, help)->type_name("N")->expected(1)->check(read);
}

void Options::Count(const std::string& names, std::optional<int64_t>* target, int64_t least,
                    const std::string& help) {
  const auto read = NumberFrom(least, std::numeric_limits<int32_t>::max(), target);
  parser_->app.add_option(names, help)->type_name("N")->expected(1)->check(read);
}

void Options::Decimal(const std::string& names, std::optional<double>* target, double least,
                      const std::string& help) {
  const auto read = [target, least](const std::string& text) {
    const std::optional<double> number = ParseNumber(text);
    if (!number || !std::isfinite(*number) || *number < least) {
      return absl::StrCat("\"", text, "\" must be a number of at least ", least);
    }
    *target = *number;
    return std::string();
  };
  parser_->app.add_option(names, help)->type_name("X")->expected(1)->check(read);
}

void Options::Word(const std::string& names, std::string* target,
                   const std::vector<std::string>& words, const std::string& help) {
  const auto check = [words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    const auto nearest = Nearest(text, words);
    return absl::StrCat("\"", text, "\" is none of ", absl::StrJoin(words, ", "),
                        nearest ? "; did you mean \"" + *nearest + "\"?" : "");
  };
  parser_->app.add_option(names, *target, help + ": " + absl::StrJoin(words, ", "))
      ->type_name("WORD")
      ->check(check);
}

void Options::Arguments(const std::string& metavar, std::vector<std::string>* target, int least,
                        int most) {
  parser_->arguments_name = metavar;
  parser_->arguments = target;
  parser_->least = least;
  parser_->most = most;
}

Status Options::Parser::Unknown(const std::string& word, const std::string& usage) const {
  if (word.size() < 2 || word[0] != '-') return absl::OkStatus();
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const auto nearest = Nearest(word.substr(0, word.find('=')), names);
  return UsageError(absl::StrCat("unknown option ", word,
                                 nearest ? "; did you mean " + *nearest + "?" : "", " (shirabe ",
                                 usage.substr(0, usage.find(' ')), " --help)"));
}

Status Options::Parser::CheckArguments(const std::string& usage) const {
  const std::vector<std::string> words = app.remaining();
  for (const std::string& word : words) RETURN_IF_ERROR(Unknown(word, usage));
  if (words.size() < least) {
    return UsageError(absl::StrCat(arguments_name, " is missing; usage: shirabe ", usage));
  }
  if (words.size() > most) {
    return UsageError(
        absl::StrCat("unexpected argument \"", words[most], "\"; usage: shirabe ", usage));
  }
  if (arguments != nullptr) *arguments = words;
  return absl::OkStatus();
}

// One that may be given once, and was given more often.
const CLI::Option* Options::Parser::Repeated() const {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_multi_option_policy() != CLI::MultiOptionPolicy::Throw) continue;
    const auto maximum = static_cast<size_t>(std::max(1, option->get_expected_max()));
    if (option->results().size() > maximum) return option;
  }
  return nullptr;
}

StatusOr<bool> Options::Parser::Fail(const CLI::ParseError& error, const std::string& usage) const {
  if (const CLI::Option* repeated = Repeated()) {
    return UsageError(absl::StrCat(
        "option ", Spelling(*repeated), " is given ", repeated->results().size(), " times (",
        absl::StrJoin(repeated->results(), ", "), "): give it once; usage: shirabe ", usage));
  }
  return UsageError(absl::StrCat(error.what(), "; usage: shirabe ", usage));
}

StatusOr<bool> Options::Parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as the library wants them
  try {
    parser_->app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::fputs(Help().c_str(), stdout);
    return true;
  } catch (const CLI::ParseError& error) {
    return parser_->Fail(error, usage_);
  }
  RETURN_IF_ERROR(parser_->CheckArguments(usage_));
  return false;
}

std::vector<std::string> Options::Names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser_->app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string Options::Help() const {
  std::string text =
      absl::StrCat(Folded(about_, kHelpWidth), "\n\nUsage: shirabe ", usage_, "\n\nOptions:\n");
  for (const OptionHelp& option : Describe()) {
    std::string line = "  " + option.names;
    if (!option.metavar.empty()) absl::StrAppend(&line, " ", option.metavar);
    line += std::string(line.size() + 2 < kHelpColumn ? kHelpColumn - line.size() : 2, ' ');
    absl::StrAppend(&text, line, option.help, "\n");
  }
  return text;
}

std::vector<OptionHelp> Options::Describe() const {
  std::vector<OptionHelp> all;
  for (const CLI::Option* option : parser_->app.get_options()) {
    all.push_back({Spelling(*option), option->get_expected_max() > 0 ? option->get_type_name() : "",
                   option->get_description()});
  }
  return all;
}

Status UsageError(const std::string& message) {
  return AsUsage(absl::InvalidArgumentError(message));
}

Status AsUsage(const Status& status) {
  Status marked = status;
  if (absl::IsInvalidArgument(status)) marked.SetPayload(kUsagePayload, absl::Cord("1"));
  return marked;
}

bool IsUsage(const Status& status) { return status.GetPayload(kUsagePayload).has_value(); }

StatusOr<absl::Duration> ParseDurationOr(const std::string& option, const std::string& text,
                                         absl::Duration otherwise) {
  if (text.empty()) return otherwise;
  absl::Duration duration;
  const bool bare = ParseNumber(text).has_value();
  if (const auto days = ParseNumber(text.substr(0, text.size() - 1));
      text.back() == 'd' && days && std::isfinite(*days)) {
    duration = *days * absl::Hours(24);
    if (duration >= absl::ZeroDuration()) return duration;
  }
  if (absl::ParseDuration(bare ? text + "s" : text, &duration) &&
      duration >= absl::ZeroDuration()) {
    return duration;
  }
  return UsageError(option + " " + text + " is not a duration: write 30s, 10m, 2h or 7d");
}

}  // namespace shirabe::cmd
