// An address of a server, as libcurl reads it. Opens libcurl; any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace shirabe::net {

struct Url {
  bool tls = false;
  std::string host;  // without brackets
  std::string port;  // also where it is not written
  std::string path;  // "/" if none is written
};

// Of http://HOST[:PORT][/PATH] and https://…. kInvalidArgument, saying what is wrong with it, for
// what is not one, and for one with a user name, a query or a fragment: the text is not repeated,
// since it may hold a password. kUnimplemented if there is no libcurl.
StatusOr<Url> ParseUrl(const std::string& text);

}  // namespace shirabe::net
