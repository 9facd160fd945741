#include "tracking/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/open_beneath.h"
#include "metrics/tf_event.h"

namespace shirabe::tracking {
namespace {

constexpr size_t kFlushBytes = 64 << 10;

template <class Number>
void AppendBytes(std::string& out, Number number) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));  // little-endian, as every machine that is built for
  out.append(bytes, sizeof(number));
}

}  // namespace

StatusOr<EventWriter> EventWriter::Open(const std::string& folder, const std::string& path,
                                        Mode mode) {
  const int access = O_RDWR | O_CREAT | (mode == Mode::kNew ? O_TRUNC : O_APPEND);
  ASSIGN_OR_RETURN(Fd fd, OpenBeneath(folder, path, access, 0644));
  EventWriter writer(std::move(fd), path);
  if (mode == Mode::kNew) {
    tensorboard::Event first;
    first.set_file_version("brain.Event:2");
    RETURN_IF_ERROR(writer.Append(first));
  }
  return writer;
}

Status EventWriter::Append(const tensorboard::Event& event) {
  const std::string data = event.SerializeAsString();
  std::string length;
  AppendBytes(length, static_cast<uint64_t>(data.size()));
  pending_ += length;
  AppendBytes(pending_, metrics::MaskedCrc32c(length));
  pending_ += data;
  AppendBytes(pending_, metrics::MaskedCrc32c(data));
  return pending_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

Status EventWriter::Flush() {
  RETURN_IF_ERROR(WriteAll(fd_.get(), pending_, path_));
  pending_.clear();
  return absl::OkStatus();
}

}  // namespace shirabe::tracking
