// Tokens of service accounts as an API server signs and publishes them, with keys of this process.
#pragma once

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kube/json_access.h"

namespace shirabe::kube {

inline std::string Web64(const std::string& bytes) { return absl::WebSafeBase64Escape(bytes); }

class SigningKey {
 public:
  // "" = RSA; else a curve of OpenSSL's name.
  SigningKey(std::string id, const char* curve)
      : id_(std::move(id)),
        curve_(curve),
        key_(*curve == 0 ? EVP_RSA_gen(2048) : EVP_EC_gen(curve), EVP_PKEY_free) {
    CHECK(key_ != nullptr);
  }

  // "P-256", "ES256" for a curve.
  Json Published(const std::string& name) const {
    if (*curve_ == 0) {
      return {{"kty", "RSA"}, {"kid", id_}, {"n", Part("n")}, {"e", Part("e")}};
    }
    return {{"kty", "EC"}, {"kid", id_}, {"crv", name}, {"x", Part("qx")}, {"y", Part("qy")}};
  }

  std::string Sign(const std::string& text, const EVP_MD* digest = EVP_sha256()) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          EVP_MD_CTX_free);
    CHECK(EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, key_.get()) == 1);
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    size_t size = 0;
    CHECK(EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()) == 1);
    std::string signature(size, '\0');
    CHECK(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                         bytes, text.size()) == 1);
    signature.resize(size);
    return *curve_ == 0 ? signature : Flat(signature);
  }

  std::string Token(const Json& claims, const std::string& algorithm) const {
    const Json header = {{"alg", algorithm}, {"kid", id_}};
    const std::string text = absl::StrCat(Web64(header.dump()), ".", Web64(claims.dump()));
    return absl::StrCat(text, ".", Web64(Sign(text)));
  }

 private:
  std::string Part(const char* name) const {
    BIGNUM* number = nullptr;
    CHECK(EVP_PKEY_get_bn_param(key_.get(), name, &number) == 1);
    const int size = *curve_ == 0 ? BN_num_bytes(number) : (EVP_PKEY_get_bits(key_.get()) + 7) / 8;
    const std::string bytes = Padded(number, size);
    BN_free(number);
    return Web64(bytes);
  }
  static std::string Padded(const BIGNUM* number, int size) {
    std::string bytes(static_cast<size_t>(size), '\0');
    CHECK(BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), size) == size);
    return bytes;
  }
  // Of DER, the two numbers one after the other.
  std::string Flat(const std::string& der) const {
    const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* both = d2i_ECDSA_SIG(nullptr, &begin, static_cast<long>(der.size()));
    CHECK(both != nullptr);
    const int size = (EVP_PKEY_get_bits(key_.get()) + 7) / 8;
    std::string flat = Padded(ECDSA_SIG_get0_r(both), size) + Padded(ECDSA_SIG_get0_s(both), size);
    ECDSA_SIG_free(both);
    return flat;
  }

  std::string id_;
  const char* curve_;
  std::shared_ptr<EVP_PKEY> key_;  // shared by copies of it
};

}  // namespace shirabe::kube
