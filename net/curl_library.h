// libcurl, opened when the first request goes out of this process. It brings some thirty other
// libraries (TLS, Kerberos, LDAP) that exist as shared ones only, and a run on a laptop, which asks
// no server, needs none of them. Used by net/*.cc only; a loaded library stays for good.
// Thread-safe.
//
// The members are libcurl's functions under their own names, as documented in its manual.
#pragma once

#include <curl/curl.h>

#include "base/status.h"

#define SHIRABE_CURL_FUNCTIONS(F) \
  F(curl_easy_cleanup)            \
  F(curl_easy_getinfo)            \
  F(curl_easy_init)               \
  F(curl_easy_setopt)             \
  F(curl_easy_strerror)           \
  F(curl_free)                    \
  F(curl_global_init)             \
  F(curl_multi_add_handle)        \
  F(curl_multi_cleanup)           \
  F(curl_multi_info_read)         \
  F(curl_multi_init)              \
  F(curl_multi_perform)           \
  F(curl_multi_poll)              \
  F(curl_multi_remove_handle)     \
  F(curl_multi_setopt)            \
  F(curl_multi_wakeup)            \
  F(curl_slist_append)            \
  F(curl_slist_free_all)          \
  F(curl_url)                     \
  F(curl_url_cleanup)             \
  F(curl_url_get)                 \
  F(curl_url_set)                 \
  F(curl_url_strerror)            \
  F(curl_version_info)

namespace shirabe::net {

struct CurlLibrary {
#define SHIRABE_CURL_MEMBER(name) decltype(&::name) name = nullptr;
  SHIRABE_CURL_FUNCTIONS(SHIRABE_CURL_MEMBER)
#undef SHIRABE_CURL_MEMBER
};

// kUnimplemented, naming the Debian package, if this machine has no libcurl or only an old one.
StatusOr<const CurlLibrary*> LoadCurlLibrary();

// The same from a file of another name; for tests. Not kept.
StatusOr<CurlLibrary> LoadCurlLibraryFrom(const char* file);

}  // namespace shirabe::net
