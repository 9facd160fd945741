#include "base/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace shirabe {
namespace {

absl::StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return absl::StatusCode::kResourceExhausted;
    case ENOENT: return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return absl::StatusCode::kPermissionDenied;
    case EEXIST: return absl::StatusCode::kAlreadyExists;
    default: return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

Status Prefix(const std::string& prefix, const Status& status) {
  if (status.ok()) return status;
  Status longer(status.code(), prefix + ": " + Message(status));
  status.ForEachPayload([&longer](absl::string_view type, const absl::Cord& payload) {
    longer.SetPayload(type, payload);
  });
  return longer;
}

Status InvalidField(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

Status ErrnoStatus(const std::string& what, int error) {
  return Status(CodeOfErrno(error), what + ": " + std::strerror(error));
}

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s (a defect in shirabe: please report it)\n", file,
               line, condition);
  std::abort();
}

}  // namespace shirabe
