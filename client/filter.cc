#include "client/filter.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/number.h"

namespace shirabe::client {
namespace {

struct Operator {
  std::string_view text;
  Comparison comparison;
};

// The longer ones first, so that "<=" is not read as "<".
constexpr Operator kOperators[] = {
    {"==", Comparison::kEqual},   {"!=", Comparison::kNotEqual}, {"<=", Comparison::kAtMost},
    {">=", Comparison::kAtLeast}, {"=", Comparison::kEqual},     {"<", Comparison::kLess},
    {">", Comparison::kGreater},
};

std::string Trim(const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); }

Status BadTerm(const std::string& term) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", term,
                   "\" is no condition: write FIELD=VALUE, or with != < <= > >=, as in "
                   "'state=Failed,param.lr<1e-3'"));
}

// Commas part terms, except within double quotes.
StatusOr<std::vector<std::string>> SplitTerms(const std::string& text) {
  std::vector<std::string> terms(1);
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (quoted) return absl::InvalidArgumentError("a quote is not closed in the filter: " + text);
  return terms;
}

bool BySize(Comparison comparison) {
  return comparison != Comparison::kEqual && comparison != Comparison::kNotEqual;
}

StatusOr<Term> ParseTerm(const std::string& text) {
  const size_t at = text.find_first_of("=!<>");
  if (at == std::string::npos) return BadTerm(text);
  for (const Operator& op : kOperators) {
    if (text.compare(at, op.text.size(), op.text) != 0) continue;
    Term term{Trim(text.substr(0, at)), op.comparison, Trim(text.substr(at + op.text.size()))};
    if (term.field.empty()) return BadTerm(text);
    if (term.text.size() >= 2 && term.text.front() == '"' && term.text.back() == '"') {
      term.text = term.text.substr(1, term.text.size() - 2);
    }
    if (BySize(op.comparison) && !ParseNumber(term.text)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\": \"", term.text,
                                                     "\" is no number, and only numbers are ",
                                                     "compared by size (times are in seconds)"));
    }
    return term;
  }
  return BadTerm(text);
}

bool Compare(double a, Comparison comparison, double b) {
  switch (comparison) {
    case Comparison::kEqual: return a == b;
    case Comparison::kNotEqual: return a != b;
    case Comparison::kLess: return a < b;
    case Comparison::kAtMost: return a <= b;
    case Comparison::kGreater: return a > b;
    case Comparison::kAtLeast: return a >= b;
  }
  return false;
}

}  // namespace

StatusOr<std::vector<Term>> ParseFilter(const std::string& text) {
  std::vector<Term> terms;
  if (Trim(text).empty()) return terms;
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitTerms(text));
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(Term term, ParseTerm(Trim(part)));
    terms.push_back(std::move(term));
  }
  return terms;
}

Status CheckTerm(const Term& term, bool is_number) {
  if (is_number && !ParseNumber(term.text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("field ", term.field, " is a number, and \"", term.text,
                     "\" is not, so that no record could meet it: write a number, as in '",
                     term.field, "=0.5' (times are in seconds)"));
  }
  if (!is_number && BySize(term.comparison)) {
    return absl::InvalidArgumentError(
        absl::StrCat("field ", term.field, " is text, which is not compared by size with ",
                     term.text, ": use = or !=, as in '", term.field, "=", term.text, "'"));
  }
  return absl::OkStatus();
}

bool Holds(const FieldValue& value, const Term& term) {
  if (const double* number = std::get_if<double>(&value)) {
    const auto wanted = ParseNumber(term.text);
    return wanted ? Compare(*number, term.comparison, *wanted)
                  : term.comparison == Comparison::kNotEqual;
  }
  const std::string* text = std::get_if<std::string>(&value);
  if (text == nullptr) return term.comparison == Comparison::kNotEqual;
  const bool equal = absl::EqualsIgnoreCase(*text, term.text);
  if (term.comparison == Comparison::kEqual) return equal;
  return term.comparison == Comparison::kNotEqual && !equal;
}

bool Before(const FieldValue& a, const FieldValue& b, bool descending) {
  // NaN is no number to sort by: it stands with nothing.
  const auto rank = [](const FieldValue& value) {
    const double* number = std::get_if<double>(&value);
    if (number != nullptr) return *number == *number ? 0 : 2;
    return std::holds_alternative<std::string>(value) ? 1 : 2;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (rank(a) == 2) return false;
  return descending ? b < a : a < b;
}

}  // namespace shirabe::client
