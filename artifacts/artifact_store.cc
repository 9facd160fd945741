#include "artifacts/artifact_store.h"

#include <re2/re2.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace shirabe::artifacts {

Status ValidateObjectKey(std::string_view key) {
  static const RE2 form("[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*");
  const auto bad = [&](const std::string& rule) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(Printable(key.substr(0, kMaxObjectNameBytes))),
                     " cannot be a key of a store: ", rule));
  };
  if (key.size() > kMaxObjectKeyBytes) {
    return bad(absl::StrCat("it has more than ", kMaxObjectKeyBytes, " bytes"));
  }
  if (!RE2::FullMatch(re2::StringPiece(key.data(), key.size()), form)) {
    return bad(
        "its names hold letters, digits and \"._-\", begin with a letter or digit, and are "
        "joined by '/'");
  }
  if (std::count(key.begin(), key.end(), '/') >= kMaxObjectKeyNames) {
    return bad(absl::StrCat("it has more than ", kMaxObjectKeyNames, " names"));
  }
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view name = key.substr(begin, end - begin);
    if (name.size() > kMaxObjectNameBytes) {
      return bad(absl::StrCat("a name in it has more than ", kMaxObjectNameBytes, " bytes"));
    }
    if (name.ends_with(".partial")) return bad("a name in it ends with .partial");
    begin = end + 1;
  }
  return absl::OkStatus();
}

StatusOr<std::vector<ObjectInfo>> ListAll(ArtifactStore& store, const std::string& prefix,
                                          size_t most, std::stop_token stop) {
  std::vector<ObjectInfo> all;
  std::string after;
  do {
    ASSIGN_OR_RETURN(ObjectPage page, store.List(prefix, after, stop));
    for (ObjectInfo& object : page.objects) all.push_back(std::move(object));
    if (all.size() > most) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are more than ", most, " objects below ", prefix));
    }
    after = std::move(page.next);
  } while (!after.empty());
  return all;
}

StatusOr<std::string> GetText(ArtifactStore& store, const std::string& key, int64_t max_bytes,
                              std::stop_token stop) {
  std::string text;
  const auto keep = [&](std::string_view piece) -> Status {
    if (static_cast<int64_t>(text.size() + piece.size()) > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(key, " has more than the ", max_bytes, " bytes that are read of it"));
    }
    text += piece;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(store.Get(key, {}, keep, stop));
  return text;
}

}  // namespace shirabe::artifacts
