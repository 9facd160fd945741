#include "base/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/freed_by.h"
#include "base/rng.h"

namespace shirabe {
namespace {

constexpr absl::Duration kAuthorityLife = absl::Hours(24 * 3652);
constexpr absl::Duration kServerLife = absl::Hours(24 * 365);
// Clocks of two machines may differ.
constexpr absl::Duration kEarlier = absl::Hours(1);
constexpr long kVersion3 = 2;  // X.509 counts from 0
constexpr int kSerialBytes = 16;

using Key = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreedBy<X509_free>>;
using Memory = std::unique_ptr<BIO, FreedBy<BIO_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>>;

Status OpensslError(const char* what) {
  char text[256] = "";
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", text));
}

Memory Reading(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string Written(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return std::string(data, size);
}

Certificate ParseCertificate(const std::string& pem) {
  const Memory memory = Reading(pem);
  Certificate certificate(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

Key ParseKey(const std::string& pem) {
  const Memory memory = Reading(pem);
  // An empty password: without one OpenSSL asks for that of an encrypted key on the terminal.
  char none[] = "";
  Key key(PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, none));
  ERR_clear_error();
  return key;
}

StatusOr<KeyPair> Print(X509* certificate, EVP_PKEY* key) {
  const Memory first(BIO_new(BIO_s_mem()));
  const Memory second(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(first.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(second.get(), key, nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return OpensslError("a certificate cannot be written");
  }
  return KeyPair{Written(first.get()), Written(second.get())};
}

bool IsAddress(const std::string& name) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

// Only letters, digits and what stands in host names: the text of an extension has a syntax.
bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == ':' || c == '*' || c == '_';
  });
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& text) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, text.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

void SetName(X509* certificate, const std::string& common_name) {
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.data()),
                             static_cast<int>(common_name.size()), -1, 0);
}

void SetSerial(X509* certificate) {
  std::string bytes = RandomBytes(kSerialBytes);
  bytes[0] = static_cast<char>((bytes[0] & 0x3F) | 0x40);  // positive, and of full length
  const std::unique_ptr<BIGNUM, FreedBy<BN_free>> number(
      BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()), kSerialBytes, nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
}

// What both kinds have: version, serial number, name, dates, key.
Certificate Blank(EVP_PKEY* key, const std::string& common_name, absl::Time from, absl::Time to) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), kVersion3);
  SetSerial(certificate.get());
  SetName(certificate.get(), common_name);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(from));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(to));
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

bool IsFor(X509* certificate, const std::string& name) {
  return IsAddress(name) ? X509_check_ip_asc(certificate, name.c_str(), 0) == 1
                         : X509_check_host(certificate, name.c_str(), name.size(), 0, nullptr) == 1;
}

std::optional<absl::Time> TimeOf(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return std::nullopt;
  return absl::FromTM(fields, absl::UTCTimeZone());
}

}  // namespace

StatusOr<KeyPair> MakeAuthority(const std::string& common_name, absl::Time now) {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("a key cannot be made");
  const Certificate made = Blank(key.get(), common_name, now - kEarlier, now + kAuthorityLife);
  X509* const x = made.get();
  X509_set_issuer_name(x, X509_get_subject_name(x));
  const bool done = AddExtension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    AddExtension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    AddExtension(x, x, NID_subject_key_identifier, "hash") &&
                    X509_sign(x, key.get(), EVP_sha256()) > 0;
  if (!done) return OpensslError("an authority cannot be made");
  return Print(x, key.get());
}

StatusOr<KeyPair> IssueCertificate(const KeyPair& authority, const std::vector<std::string>& names,
                                   absl::Time now) {
  const Certificate issuer = ParseCertificate(authority.certificate);
  const Key issuer_key = ParseKey(authority.key);
  if (issuer == nullptr || issuer_key == nullptr) {
    return absl::InvalidArgumentError("the authority is not a certificate with its key, in PEM");
  }
  std::string alternatives;
  for (const std::string& name : names) {
    if (!IsName(name)) return absl::InvalidArgumentError("\"" + name + "\" is not a host name");
    absl::StrAppend(&alternatives, alternatives.empty() ? "" : ",",
                    IsAddress(name) ? "IP:" : "DNS:", name);
  }
  if (names.empty()) return absl::InvalidArgumentError("a certificate needs a name");
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("a key cannot be made");
  // The names that count are the alternative ones; this one has a limit of 64 characters.
  const Certificate made = Blank(key.get(), "shirabe", now - kEarlier, now + kServerLife);
  X509* const x = made.get();
  X509_set_issuer_name(x, X509_get_subject_name(issuer.get()));
  const bool done = AddExtension(x, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(x, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
                    AddExtension(x, issuer.get(), NID_ext_key_usage, "serverAuth") &&
                    AddExtension(x, issuer.get(), NID_subject_alt_name, alternatives) &&
                    AddExtension(x, issuer.get(), NID_subject_key_identifier, "hash") &&
                    AddExtension(x, issuer.get(), NID_authority_key_identifier, "keyid") &&
                    X509_sign(x, issuer_key.get(), EVP_sha256()) > 0;
  if (!done) return OpensslError("a certificate cannot be made");
  return Print(x, key.get());
}

bool IsGoodFor(const KeyPair& pair, const std::string& authority,
               const CertificateRequirements& demand) {
  const Certificate certificate = ParseCertificate(pair.certificate);
  const Certificate issuer = ParseCertificate(authority);
  const Key key = ParseKey(pair.key);
  if (certificate == nullptr || issuer == nullptr || key == nullptr) return false;
  const Key issuer_key(X509_get_pubkey(issuer.get()));
  const bool fits = X509_verify(certificate.get(), issuer_key.get()) == 1 &&
                    X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  const auto from = TimeOf(X509_get0_notBefore(certificate.get()));
  const auto to = TimeOf(X509_get0_notAfter(certificate.get()));
  if (!fits || !from || !to || demand.at < *from || demand.at + demand.left > *to) return false;
  return std::all_of(demand.names.begin(), demand.names.end(),
                     [&](const std::string& name) { return IsFor(certificate.get(), name); });
}

StatusOr<absl::Time> ExpiryOf(const std::string& pem) {
  const Certificate certificate = ParseCertificate(pem);
  if (certificate == nullptr) return absl::InvalidArgumentError("this is not a certificate in PEM");
  const auto time = TimeOf(X509_get0_notAfter(certificate.get()));
  if (!time) return absl::InvalidArgumentError("a certificate without an end");
  return *time;
}

Status CheckPair(const KeyPair& pair, absl::Time now) {
  const Certificate certificate = ParseCertificate(pair.certificate);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(
        "the certificate is none in PEM (-----BEGIN CERTIFICATE-----)");
  }
  const Key key = ParseKey(pair.key);
  if (key == nullptr) {
    return absl::InvalidArgumentError("the key is none in PEM, or it is encrypted");
  }
  const bool fits = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) return absl::InvalidArgumentError("the key is not that of the certificate");
  ASSIGN_OR_RETURN(const absl::Time expiry, ExpiryOf(pair.certificate));
  if (now < expiry) return absl::OkStatus();
  return absl::InvalidArgumentError("the certificate has ended at " +
                                    absl::FormatTime(expiry, absl::UTCTimeZone()));
}

}  // namespace shirabe
