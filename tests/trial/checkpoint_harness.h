// What tests of checkpoints share: a home of their own, and saving as a program does. Not
// thread-safe.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial/checkpoint/checkpoint_manifest.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::trial {

using Files = std::map<std::string, std::string>;  // contents by path

inline AttemptKey AttemptOf(int64_t trial, int32_t number = 1) {
  return {{{"default", "exp"}, trial}, number};
}

class CheckpointHome {
 public:
  CheckpointHome() : home_(MakeHome()), layout_(home_), store_(&layout_) {}
  ~CheckpointHome() { EXPECT_TRUE(RemoveAll(home_).ok()); }

  const std::string& home() const { return home_; }
  const FileLayout& layout() const { return layout_; }
  const CheckpointStore& store() const { return store_; }

  std::string Dir(const AttemptKey& key) const { return layout_.Paths(key).checkpoint_dir; }
  std::string Path(const AttemptKey& key, int64_t step) const {
    return absl::StrCat(Dir(key), "/", step);
  }

  // Saves as the contract asks: under another name, then renamed.
  std::string Save(const AttemptKey& key, int64_t step, const Files& files) const {
    const std::string path = Path(key, step);
    EXPECT_TRUE(MakeDirs(path + ".tmp").ok());
    for (const auto& [name, contents] : files) {
      const std::string file = path + ".tmp/" + name;
      EXPECT_TRUE(MakeDirs(std::filesystem::path(file).parent_path().string()).ok());
      EXPECT_TRUE(WriteFileAtomic(file, contents).ok());
    }
    std::filesystem::rename(path + ".tmp", path);
    return path;
  }
  v1::Checkpoint SaveAndCommit(const AttemptKey& key, int64_t step, const Files& files) const {
    Save(key, step, files);
    auto checkpoint = store_.Commit(key, step);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? *std::move(checkpoint) : v1::Checkpoint();
  }

  // Every regular file below the folder but the manifest.
  static Files Read(const std::string& folder) {
    Files files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string name = std::filesystem::relative(entry.path(), folder).string();
      if (entry.is_regular_file() && name != kManifestName) files[name] = *ReadFile(entry.path());
    }
    return files;
  }

 private:
  static std::string MakeHome() {
    std::string path = testing::TempDir() + "shirabe-checkpoint-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    return path;
  }

  const std::string home_;
  const FileLayout layout_;
  const CheckpointStore store_;
};

}  // namespace shirabe::trial
