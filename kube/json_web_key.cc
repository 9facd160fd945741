#include "kube/json_web_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "base/freed_by.h"

namespace shirabe::kube {
namespace {

// Of an RSA key: 2048 bits are the least that RFC 7518 allows, and more than 16384 only cost time.
constexpr size_t kLeastModulus = 2048 / 8;
constexpr size_t kMostModulus = 16384 / 8;

struct Curve {
  const char* name;       // in a key
  const char* algorithm;  // in a token
  const char* group;      // OpenSSL's name
  size_t bytes;           // of a coordinate
};
constexpr Curve kCurves[] = {{"P-256", "ES256", "prime256v1", 32},
                             {"P-384", "ES384", "secp384r1", 48},
                             {"P-521", "ES512", "secp521r1", 66}};

using BigNumber = std::unique_ptr<BIGNUM, FreedBy<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, FreedBy<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, FreedBy<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, FreedBy<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreedBy<EVP_MD_CTX_free>>;
using CurveSignature = std::unique_ptr<ECDSA_SIG, FreedBy<ECDSA_SIG_free>>;

std::string Decoded(const Json& key, const char* field) {
  std::string bytes;
  return absl::WebSafeBase64Unescape(Text(key, {field}), &bytes) ? bytes : "";
}

BigNumber ToBigNumber(std::string_view bytes) {
  return BigNumber(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                             static_cast<int>(bytes.size()), nullptr));
}

EVP_PKEY* PublicKey(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  return key;
}

EVP_PKEY* RsaKey(const Json& key) {
  const std::string modulus = Decoded(key, "n");
  const std::string exponent = Decoded(key, "e");
  if (modulus.size() < kLeastModulus || modulus.size() > kMostModulus || exponent.empty() ||
      exponent.size() > sizeof(uint64_t)) {
    return nullptr;
  }
  const BigNumber n = ToBigNumber(modulus);
  const BigNumber e = ToBigNumber(exponent);
  const Builder builder(OSSL_PARAM_BLD_new());
  if (OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return nullptr;
  }
  return PublicKey("RSA", builder.get());
}

EVP_PKEY* CurveKey(const Json& key, const Curve& curve) {
  const std::string x = Decoded(key, "x");
  const std::string y = Decoded(key, "y");
  if (x.size() != curve.bytes || y.size() != curve.bytes) return nullptr;
  const std::string point = "\x04" + x + y;  // uncompressed
  const Builder builder(OSSL_PARAM_BLD_new());
  if (OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.group, 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  return PublicKey("EC", builder.get());
}

// OpenSSL wants in DER what tokens have as two numbers, one after the other. "" if it is neither.
std::string ToDer(std::string_view signature, size_t bytes) {
  if (signature.size() != 2 * bytes) return "";
  const CurveSignature both(ECDSA_SIG_new());
  BigNumber r = ToBigNumber(signature.substr(0, bytes));
  BigNumber s = ToBigNumber(signature.substr(bytes));
  if (ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return "";
  (void)r.release();  // they are the signature's now
  (void)s.release();
  unsigned char* begin = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &begin);
  if (size <= 0) return "";
  std::string der(reinterpret_cast<char*>(begin), static_cast<size_t>(size));
  OPENSSL_free(begin);
  return der;
}

const EVP_MD* DigestOf(const std::string& algorithm) {
  if (algorithm == "ES384") return EVP_sha384();
  return algorithm == "ES512" ? EVP_sha512() : EVP_sha256();
}

}  // namespace

JsonWebKey::JsonWebKey(std::string id, std::string algorithm, evp_pkey_st* key)
    : id_(std::move(id)), algorithm_(std::move(algorithm)), key_(key, FreedBy<EVP_PKEY_free>()) {}

StatusOr<JsonWebKey> JsonWebKey::Parse(const Json& key) {
  const std::string type = Text(key, {"kty"});
  const std::string curve_name = Text(key, {"crv"});
  std::string algorithm;
  EVP_PKEY* parsed = nullptr;
  if (type == "RSA") {
    algorithm = "RS256";
    parsed = RsaKey(key);
  }
  for (const Curve& curve : kCurves) {
    if (type != "EC" || curve_name != curve.name) continue;
    algorithm = curve.algorithm;
    parsed = CurveKey(key, curve);
  }
  if (parsed == nullptr) {
    return absl::InvalidArgumentError("not a public key of RSA, P-256, P-384 or P-521");
  }
  return JsonWebKey(Text(key, {"kid"}), std::move(algorithm), parsed);
}

bool JsonWebKey::HasSigned(std::string_view text, std::string_view signature) const {
  std::string bytes(signature);
  for (const Curve& curve : kCurves) {
    if (algorithm_ == curve.algorithm) bytes = ToDer(signature, curve.bytes);
  }
  const DigestContext context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, DigestOf(algorithm_), nullptr, key_.get()) ==
             1 &&
         EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                          bytes.size(), reinterpret_cast<const unsigned char*>(text.data()),
                          text.size()) == 1;
}

}  // namespace shirabe::kube
