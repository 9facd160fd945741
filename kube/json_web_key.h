// A public key of a JSON Web Key Set (RFC 7517), and whether it has signed something (RFC 7518):
// what an API server signs tokens of service accounts with, RSA and the three curves of the NIST.
// The arithmetic is OpenSSL's. Used by token_verifier.cc. Immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kube/json_access.h"

struct evp_pkey_st;

namespace shirabe::kube {

class JsonWebKey {
 public:
  // kInvalidArgument for what is no such key, or of another kind.
  static StatusOr<JsonWebKey> Parse(const Json& key);

  const std::string& id() const { return id_; }
  // Of the only algorithm that it is for: RS256, ES256, ES384 or ES512.
  const std::string& algorithm() const { return algorithm_; }
  // `signature` as it stands in a token, decoded.
  bool HasSigned(std::string_view text, std::string_view signature) const;

 private:
  JsonWebKey(std::string id, std::string algorithm, evp_pkey_st* key);

  std::string id_;
  std::string algorithm_;
  std::shared_ptr<evp_pkey_st> key_;  // shared by its copies
};

}  // namespace shirabe::kube
