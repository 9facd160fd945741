#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "base/status.h"

namespace shirabe {
namespace {

// OpenSSL looks for an algorithm at each use of EVP_sha256(), which takes longer than the digest of
// a short text: it is fetched once, for good.
const EVP_MD* FetchedSha256() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  CHECK(algorithm != nullptr);
  return algorithm;
}

std::string Hexadecimal(const unsigned char (&digest)[SHA256_DIGEST_LENGTH]) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
}

}  // namespace

std::string HexSha256(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, nullptr, FetchedSha256(), nullptr) == 1);
  return Hexadecimal(digest);
}

bool IsHexSha256(std::string_view text) {
  const auto hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 2 * SHA256_DIGEST_LENGTH &&
         std::all_of(text.begin(), text.end(), hexadecimal);
}

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  CHECK(HMAC(FetchedSha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest,
             nullptr) != nullptr);
  return std::string(reinterpret_cast<const char*>(digest), sizeof digest);
}

std::string HexHmacSha256(std::string_view key, std::string_view bytes) {
  return absl::BytesToHexString(HmacSha256(key, bytes));
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr);
  CHECK(EVP_DigestInit_ex(context_.get(), FetchedSha256(), nullptr) == 1);
}

void Sha256::Add(std::string_view bytes) {
  CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Hex() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  CHECK(EVP_DigestFinal_ex(context_.get(), digest, nullptr) == 1);
  return Hexadecimal(digest);
}

}  // namespace shirabe
