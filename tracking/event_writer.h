// Writes a file of TensorBoard's events, whose framing metrics/tf_event.h describes. Readers may
// follow it meanwhile: events are appended, and a last one that is cut off is read once it is
// whole. Used by tensorboard_log.cc; by one thread.
#pragma once

#include <string>

#include "base/file_io.h"
#include "base/status.h"
#include "proto/tensorboard/v2/event_file.pb.h"

namespace shirabe::tracking {

class EventWriter {
 public:
  enum class Mode {
    kNew,     // what the file held goes
    kAppend,  // goes on after it
  };
  // No link below `folder` is followed; its errors are those of base/open_beneath.h.
  static StatusOr<EventWriter> Open(const std::string& folder, const std::string& path, Mode mode);

  // Written out by 64 KiB, and by Flush.
  Status Append(const tensorboard::Event& event);
  Status Flush();

 private:
  EventWriter(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;
  std::string pending_;
};

}  // namespace shirabe::tracking
