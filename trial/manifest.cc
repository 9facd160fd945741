#include "trial/manifest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "nlohmann/json.hpp"

namespace shirabe::trial {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;
constexpr size_t kMaxPathBytes = 2048;  // so that it can be opened wherever it is copied to
constexpr int kMaxDepth = 64;           // each level is an open descriptor on the way
constexpr int64_t kMaxBytes = int64_t{1} << 53;
constexpr size_t kDigestCharacters = 64;

Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("its manifest, ", kManifestName, ", ", what));
}

StatusOr<int64_t> Integer(const Json& object, const char* key) {
  const auto found = object.find(key);
  // What is negative is no unsigned number here, and what is larger than 64 bits a double.
  if (found != object.end() && found->is_number_unsigned() &&
      found->get<uint64_t>() <= static_cast<uint64_t>(kMaxBytes)) {
    return found->get<int64_t>();
  }
  return Malformed(absl::StrCat("has no whole number \"", key, "\" from 0 to 2^53"));
}

StatusOr<std::string> TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_string()) return found->get<std::string>();
  return Malformed(absl::StrCat("has no text \"", key, "\""));
}

bool IsDigest(const std::string& text) {
  const auto hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kDigestCharacters && std::all_of(text.begin(), text.end(), hexadecimal);
}

StatusOr<ManifestFile> DecodeFile(const Json& json) {
  if (!json.is_object()) return Malformed("has a file that is no object");
  ManifestFile file;
  ASSIGN_OR_RETURN(file.path, TextOf(json, "path"));
  if (const Status status = ValidatePath(file.path); !status.ok()) {
    return Malformed("lists " + Message(status));
  }
  ASSIGN_OR_RETURN(file.bytes, Integer(json, "bytes"));
  ASSIGN_OR_RETURN(file.sha256, TextOf(json, "sha256"));
  if (IsDigest(file.sha256)) return file;
  return Malformed("has a \"sha256\" that is not 64 digits of 0-9a-f, of " + file.path);
}

Status DecodeFiles(const Json& list, std::vector<ManifestFile>& files) {
  files.reserve(list.size());
  int64_t total = 0;
  for (const Json& json : list) {
    ASSIGN_OR_RETURN(ManifestFile file, DecodeFile(json));
    total += file.bytes;
    if (total > kMaxBytes) return Malformed("lists more bytes than any disk has");
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  const auto twice = std::adjacent_find(
      files.begin(), files.end(),
      [](const ManifestFile& a, const ManifestFile& b) { return a.path == b.path; });
  if (twice != files.end()) return Malformed("lists " + twice->path + " twice");
  return files.empty() ? Malformed("lists no file") : absl::OkStatus();
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  std::string text =
      absl::StrFormat(R"({"version":%d,"trial":%s,"attempt":%d,"step":%d,"files":[)", kVersion,
                      Json(manifest.trial).dump(), manifest.attempt, manifest.step);
  const char* before = "\n";
  for (const ManifestFile& file : manifest.files) {
    absl::StrAppend(&text, before, R"({"path":)", Json(file.path).dump(), R"(,"bytes":)",
                    file.bytes, R"(,"sha256":")", file.sha256, R"("})");
    before = ",\n";
  }
  return text + "\n]}\n";
}

StatusOr<Manifest> DecodeManifest(std::string_view text) {
  const Json json = ReadJsonOrDiscarded(text, {.bytes = kMaxManifestBytes});
  if (!json.is_object()) return Malformed("is no JSON object");
  ASSIGN_OR_RETURN(const int64_t version, Integer(json, "version"));
  if (version != kVersion) {
    return Malformed(
        absl::StrFormat("has version %d; version %d is understood here", version, kVersion));
  }
  Manifest manifest;
  ASSIGN_OR_RETURN(manifest.trial, TextOf(json, "trial"));
  ASSIGN_OR_RETURN(const int64_t attempt, Integer(json, "attempt"));
  manifest.attempt = static_cast<int32_t>(std::min<int64_t>(attempt, INT32_MAX));
  ASSIGN_OR_RETURN(manifest.step, Integer(json, "step"));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) return Malformed("has no list \"files\"");
  RETURN_IF_ERROR(DecodeFiles(*files, manifest.files));
  return manifest;
}

Status CheckOwner(const Manifest& manifest, const AttemptKey& attempt, int64_t step) {
  const bool same = manifest.trial == TrialName(attempt.trial) &&
                    manifest.attempt == attempt.number && manifest.step == step;
  if (same) return absl::OkStatus();
  return Malformed(absl::StrFormat(
      "names trial %s, attempt %d, step %d: another checkpoint was copied here; remove the "
      "manifest from what is copied",
      Printable(manifest.trial), manifest.attempt, manifest.step));
}

Status ValidatePath(const std::string& path) {
  const std::string shown = "\"" + Printable(path.substr(0, 200)) + "\"";
  if (path.size() > kMaxPathBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, "…, a path of more than ", kMaxPathBytes, " bytes"));
  }
  if (std::count(path.begin(), path.end(), '/') > kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ", which lies more than ", kMaxDepth, " folders deep"));
  }
  for (const auto part : absl::StrSplit(path, '/')) {
    if (!part.empty() && part != "." && part != "..") continue;
    return absl::InvalidArgumentError(shown + ", which is no path within the checkpoint");
  }
  if (path == kManifestName || path == kManifestDraft) {
    return absl::InvalidArgumentError(shown + ", the manifest itself");
  }
  if (Printable(path) != path || path.find_first_of("\n\t") != std::string::npos) {
    return absl::InvalidArgumentError(
        shown + ", whose name is not UTF-8 or has control characters; rename it");
  }
  return absl::OkStatus();
}

int64_t TotalBytes(const Manifest& manifest) {
  int64_t total = 0;
  for (const ManifestFile& file : manifest.files) total += file.bytes;
  return total;
}

}  // namespace shirabe::trial
