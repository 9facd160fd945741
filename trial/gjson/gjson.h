// Conditions on an object as Katib writes them, paths in GJSON's syntax:
//   status.conditions.#(type=="Complete")#|#(status=="True")#
//   status.[@this].#(phase=="Succeeded")#
// Understood are names with the escape '\' and the wildcards * and ?, indices, # (length or each),
// the queries #(…) first and #(…)# all with == != < <= > >= % !%, nested ones too, the pipe |, the
// list [a,b], and the modifier @this. Other modifiers, maps {…} and literals ! are refused by name.
// Used by the executor and by `validate`. Pure; any text and any object are answered: nesting is
// bounded.
#pragma once

#include <string>

#include "base/status.h"
#include "base/text/json_fields.h"

namespace shirabe::trial {

// kInvalidArgument: what is wrong with the path, where, and what to write instead.
Status ValidateGjson(const std::string& path);

// Whether the path selects anything in the object: as in Katib, a result that is there and is not
// an empty list. kInvalidArgument as above.
StatusOr<bool> MatchesGjson(const std::string& path, const Json& object);

// What it selects; null if it selects nothing. For tests and messages.
StatusOr<Json> SelectGjson(const std::string& path, const Json& object);

}  // namespace shirabe::trial
