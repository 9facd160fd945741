// One request to a store that can be given away as a URL: what its bearer may do, and with which
// object. Data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/shirabe/v1/artifacts.pb.h"

namespace shirabe::artifacts {

struct PresignedRequest {
  v1::StoreAction action = v1::READ_OBJECT;
  std::string key = {};     // of a list: what the keys begin with
  std::string after = {};   // of a list: the key to go on after; "" = from its start
  int64_t bytes = 0;        // of what is put: exactly so many
  std::string md5 = {};     // of what is put, base64; "" = not checked
  std::string upload = {};  // the server's name for parts that become one object
  int part = 0;             // from 1
};

// A secret for as long as it is good. The headers belong to the request; more may be added, as a
// range.
struct PresignedUrl {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string key;  // as the server knows it, of the object or what a list's keys begin with
  std::string ca;   // PEM; "" = the system's authorities
};

}  // namespace shirabe::artifacts
