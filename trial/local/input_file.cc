#include "trial/local/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/open_beneath.h"

namespace shirabe::trial {

Status WriteInput(const std::string& path, const std::string& text) {
  const auto fd = OpenBeneath("", path, O_WRONLY | O_CREAT | O_TRUNC);
  RETURN_IF_ERROR(InItsWay(fd.status()));
  const ssize_t written = write(fd->get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return absl::OkStatus();
  return InItsWay(ErrnoStatus("cannot write " + path, written < 0 ? errno : ENOSPC));
}

Status InItsWay(const Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::DataLossError(Message(status));
}

}  // namespace shirabe::trial
