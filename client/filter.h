// --filter 'state=Failed,param.lr<1e-3' and --sort-by '~objective': the parts of a condition and
// how values compare. selection.h applies them to records. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/field.h"

namespace shirabe::client {

enum class Comparison { kEqual, kNotEqual, kLess, kAtMost, kGreater, kAtLeast };

// One part of a filter, before its field is looked up.
struct Term {
  std::string field;
  Comparison comparison = Comparison::kEqual;
  std::string text;
};

// Terms are parted by commas and must all hold; operators are = == != < <= > >=. A value with a
// comma in it is written in double quotes. kInvalidArgument, with the term and the fix.
StatusOr<std::vector<Term>> ParseFilter(const std::string& text);

// Whether the term could hold for a field that is a number, or text: kInvalidArgument, with the
// field, the value and the fix, if not.
Status CheckTerm(const Term& term, bool is_number);

// As numbers where both are, else as text without regard to case, where only = and != can hold.
// Nothing (no objective yet) differs from everything.
bool Holds(const FieldValue& value, const Term& term);

// Numbers before texts before nothing; the latter is last in either direction.
bool Before(const FieldValue& a, const FieldValue& b, bool descending);

}  // namespace shirabe::client
