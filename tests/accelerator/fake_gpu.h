// The library of suggestion/gpu/ on this processor, with faults (fake/fake_gpu.cc), for tests: one
// fresh copy of it for each object, because a library that is opened stays.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "suggestion/accelerator/shared_gpu.h"
#include "tests/support/paths.h"

namespace shirabe::suggestion::accelerator {

class FakeGpu {
 public:
  // `faults`: as fake_gpu.cc reads them, which this process has until the object goes.
  explicit FakeGpu(const std::string& faults = "") {
    std::string path = "/tmp/shirabe-fake-gpu-XXXXXX";
    CHECK(mkdtemp(path.data()) != nullptr);
    folder_ = path;
    CHECK(chmod(path.c_str(), 0755) == 0);
    std::filesystem::copy(BinaryDir() + "/fake_gpu/libshirabe-cuda.so", library());
    CHECK(chmod(library().c_str(), 0755) == 0);
    SetFaults(faults);
  }
  ~FakeGpu() {
    unsetenv("SHIRABE_FAKE_GPU");
    std::filesystem::remove_all(folder_);
  }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  static void SetFaults(const std::string& faults) {
    setenv("SHIRABE_FAKE_GPU", faults.c_str(), 1);
  }

  const std::string& folder() const { return folder_; }
  std::string library() const { return folder_ + "/libshirabe-cuda.so"; }

  StatusOr<std::shared_ptr<SharedGpu>> Open(SharedGpu::Options options = {}) const {  // shared
    options.folders = {folder_};
    return SharedGpu::Open(options);
  }

 private:
  std::string folder_;
};

}  // namespace shirabe::suggestion::accelerator
