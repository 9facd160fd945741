#include "base/printable.h"

#include <google/protobuf/stubs/common.h>

#include "absl/strings/str_cat.h"

namespace shirabe {

std::string Printable(std::string_view text) {
  std::string buffer(text.size(), '\0');
  // Returns the text itself where it is valid as it stands.
  const char* valid = google::protobuf::internal::UTF8CoerceToStructurallyValid(
      {text.data(), text.size()}, buffer.data(), '?');
  std::string result(valid, text.size());
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < ' ' && c != '\n' && c != '\t') || byte == 0x7F) c = ' ';
  }
  return result;
}

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", absl::string_view(text.data(), text.size()), "\"");
}

}  // namespace shirabe
