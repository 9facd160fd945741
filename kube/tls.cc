#include "kube/tls.h"

#include <boost/asio/buffer.hpp>

#include "absl/strings/str_cat.h"

namespace shirabe::kube {
namespace {

namespace ssl = boost::asio::ssl;
using Error = boost::system::error_code;

// The text itself is never repeated: a key is a secret, and so may be what stands in its place.
Status Refusal(const std::string& field, const Error& error) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is not what its name says, in PEM: ", error.message()));
}

Error TrustAuthorities(const Config& config, ssl::context& tls) {
  Error error;
  if (config.insecure) {
    tls.set_verify_mode(ssl::verify_none, error);
    return error;
  }
  tls.set_verify_mode(ssl::verify_peer, error);
  if (config.ca.empty()) {
    tls.set_default_verify_paths(error);
  } else {
    tls.add_certificate_authority(boost::asio::buffer(config.ca), error);
  }
  return error;
}

}  // namespace

StatusOr<std::unique_ptr<ssl::context>> MakeTls(const Config& config,
                                                const std::string& certificate,
                                                const std::string& key) {
  auto tls = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls->native_handle(), TLS1_2_VERSION);
  if (const Error error = TrustAuthorities(config, *tls)) {
    return Refusal("cluster.certificate-authority", error);
  }
  if (certificate.empty() && key.empty()) return tls;
  Error error;
  tls->use_certificate_chain(boost::asio::buffer(certificate), error);
  if (error) return Refusal("user.client-certificate", error);
  // Without it an encrypted key makes OpenSSL ask on the terminal.
  tls->set_password_callback([](size_t, ssl::context::password_purpose) { return ""; }, error);
  tls->use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
  // Also where it is the key of another certificate.
  if (error) return Refusal("user.client-key", error);
  return tls;
}

}  // namespace shirabe::kube
