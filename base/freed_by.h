// For std::unique_ptr to what a C library makes, OpenSSL above all: its own function frees it.
//
//   std::unique_ptr<X509, FreedBy<X509_free>> certificate(X509_new());
#pragma once

namespace shirabe {

template <auto kFree>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace shirabe
