// Which route a request is for, and what its path and query say. Used by the router. Pure
// functions of the table, any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/http/route_table.h"

namespace shirabe::service {

struct Match {
  const Route* route = nullptr;
  std::map<std::string, std::string> parameters;  // of the path
};

// HEAD is answered by GET's route. kNotFound, with what was probably meant, if no route has this
// path; kUnimplemented with status 405 if one has, with other methods: these are then in `allow`.
StatusOr<Match> FindRoute(const std::string& method, const HttpTarget& target, std::string* allow);

// Adds those of the query. kInvalidArgument, naming the parameter, for one that the route has not,
// that is given twice, or that is out of its range.
Status BindParameters(const HttpTarget& target, Match& match);

}  // namespace shirabe::service
