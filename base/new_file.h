// A file that appears whole or not at all, however large: it is written without a name, which it
// gets when it is complete. A process that is killed meanwhile leaves nothing (where the file
// system knows no files without names, PATH.*.partial). Its owner alone may read it. Used by one
// thread.
#pragma once

#include <string>

#include "base/file_io.h"
#include "base/status.h"

namespace shirabe {

class NewFile {
 public:
  // kAlreadyExists if there is anything of that name, a link included; with `replace` that is what
  // it replaces, never what a link points to.
  static StatusOr<NewFile> Create(const std::string& path, bool replace);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int fd() const { return fd_.get(); }
  // Gives it its name, once all that was written is on the disk.
  Status Publish();

 private:
  NewFile(std::string path, bool replace) : path_(std::move(path)), replace_(replace) {}
  Status Open();
  Status Link(const std::string& name);

  Fd fd_;
  std::string path_;
  bool replace_;
  std::string partial_;  // the name that it has for now; "" = none
};

}  // namespace shirabe
