// Certificates of our own, for a server that was given none: an authority that lasts ten years, and
// certificates of it that last one. ECDSA on P-256; everything is PEM. Pure but for the random
// numbers; any thread. Errors are kInternal with OpenSSL's words, and kInvalidArgument for what is
// no certificate.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe {

struct KeyPair {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

StatusOr<KeyPair> MakeAuthority(const std::string& common_name, absl::Time now);

// A server's certificate, for these names: DNS names and IP addresses.
StatusOr<KeyPair> IssueCertificate(const KeyPair& authority, const std::vector<std::string>& names,
                                   absl::Time now);

// What a certificate must be good for: all of these names, from `at` on for at least `left`.
struct CertificateRequirements {
  std::vector<std::string> names;
  absl::Time at;
  absl::Duration left;
};

// Whether `pair` is one of `authority`, its key fits, and it is good for that.
bool IsGoodFor(const KeyPair& pair, const std::string& authority,
               const CertificateRequirements& demand);

// Whether it is a certificate and its key, and good at `now`; kInvalidArgument says what it is not.
Status CheckPair(const KeyPair& pair, absl::Time now);

StatusOr<absl::Time> ExpiryOf(const std::string& certificate);

}  // namespace shirabe
