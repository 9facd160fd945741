// SHA-256, in hexadecimal where a name says so. The functions are thread-safe; an object is used by
// one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace shirabe {

std::string HexSha256(std::string_view bytes);
// Whether a text could be that: 64 digits of 0-9a-f.
bool IsHexSha256(std::string_view text);
// HMAC-SHA-256 (RFC 2104), 32 bytes: that the bytes come from one who knows the key.
std::string HmacSha256(std::string_view key, std::string_view bytes);
std::string HexHmacSha256(std::string_view key, std::string_view bytes);

// Of more than fits into memory at once.
class Sha256 {
 public:
  Sha256();
  void Add(std::string_view bytes);
  // Of all that was added; called once, last.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace shirabe
