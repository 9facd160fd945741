// The rules of the house over the whole checkout.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "db/store.h"
#include "metrics/collector.h"
#include "proto/shirabe/v1/field.pb.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"
#include "tests/support/paths.h"
#include "tests/tidy/rules.h"
#include "trial/executor.h"

namespace shirabe::tidy {
namespace {

namespace fs = std::filesystem;

struct TreeFile {
  Source source;
  Kind kind;
  bool executable = false;
};

// What tools and builds leave in a checkout, and the sources of another language's tools.
bool IsForeignFolder(const std::string& name) {
  static const std::set<std::string> kForeign = {"build", "__pycache__", "node_modules", "venv"};
  return kForeign.contains(name) || (name[0] == '.' && name != ".ci");
}

bool IsExecutable(const fs::path& path) {
  return (fs::status(path).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

std::vector<TreeFile> ReadTree(const fs::path& root) {
  std::vector<TreeFile> files;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::end(at); ++at) {
    if (at->is_directory() && IsForeignFolder(at->path().filename().string())) {
      at.disable_recursion_pending();
    }
    if (!at->is_regular_file() || at->is_symlink()) continue;
    const auto text = ReadFile(at->path().string());
    if (!text.ok()) continue;
    const std::string path = at->path().lexically_relative(root).string();
    const Kind kind = KindOf(path, *text);
    if (!kind.cpp && !kind.proto && !kind.script && !kind.text) continue;
    // Data of tests may break rules on purpose.
    if (path.find("testdata/") != std::string::npos) continue;
    files.push_back({Lex(path, *text), kind, IsExecutable(at->path())});
  }
  return files;
}

const std::vector<TreeFile>& Tree() {
  static const std::vector<TreeFile> tree = ReadTree(SourceDir());
  return tree;
}

bool Exists(const std::string& path) { return fs::exists(fs::path(SourceDir()) / path); }

TEST(Tree, KeepsTheRules) {
  ASSERT_GT(Tree().size(), 20u) << "no tree in " << SourceDir();
  Violations all;
  std::vector<const Source*> sources;
  for (const TreeFile& file : Tree()) {
    const Violations found = CheckFile(file.source, file.executable);
    all.insert(all.end(), found.begin(), found.end());
    sources.push_back(&file.source);
  }
  CheckTree(sources, all);
  EXPECT_TRUE(all.empty()) << all.size() << " violations\n" << Format(all);
}

// What the rule for names knows of batches is what CMakeLists.txt says.
TEST(Tree, KnowsTheBatches) {
  const auto text = ReadFile(SourceDir() + "/CMakeLists.txt");
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string all = absl::StrReplaceAll(*text, {{"\\\n", ""}});
  const size_t begin = all.find("set(BATCHES\n");
  ASSERT_NE(begin, std::string::npos);
  std::set<std::string> built = {
      "cmd cmd/verbs cmd/verbs/files cmd/verbs/jobs cmd/verbs/page cmd/verbs/tracking"};
  for (const auto line : absl::StrSplit(all.substr(begin, all.find(')', begin) - begin), '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, '"');
    if (parts.size() == 3 && absl::StrContains(parts[1], ' ')) built.insert(parts[1]);
  }
  EXPECT_EQ(built, std::set<std::string>(SharedBatches().begin(), SharedBatches().end()));
}

// A file in a folder of variants either registers one or has a header: then it helps others.
TEST(Tree, EveryVariantIsRegistered) {
  std::map<std::string, size_t> registrations;  // by the Info it names
  for (const TreeFile& file : Tree()) {
    const std::string& path = file.source.path;
    if (file.kind.test || !file.kind.cpp || path.substr(0, 5) == "base/") continue;
    const std::string word = "SHIRABE_REGISTER(";
    const size_t at = file.source.code.find(word);
    if (at != std::string::npos) {
      const size_t end = file.source.code.find(',', at);
      const std::string info = file.source.code.substr(at + word.size(), end - at - word.size());
      ++registrations[info.substr(info.find_first_not_of(" \n"))];
    }
    const std::string folder = fs::path(path).parent_path().string();
    const bool variant = folder == "suggestion/algorithms" || folder == "suggestion/stoppers" ||
                         folder == "metrics/collectors" || folder == "trial/executors";
    if (!variant || !path.ends_with(".cc")) continue;
    const bool helper = Exists(path.substr(0, path.size() - 3) + ".h");
    EXPECT_NE(helper, at != std::string::npos)
        << path << " must end in SHIRABE_REGISTER, or have a header and help those that do";
  }
  // The linker has kept every one of them.
  const auto count = [&](const char* info) { return registrations[info]; };
  EXPECT_EQ(Registry<suggestion::AlgorithmInfo>::Get().Names().size(), count("AlgorithmInfo"));
  EXPECT_EQ(Registry<suggestion::StopperInfo>::Get().Names().size(), count("StopperInfo"));
  EXPECT_EQ(Registry<metrics::CollectorInfo>::Get().Names().size(), count("CollectorInfo"));
  EXPECT_EQ(Registry<trial::ExecutorInfo>::Get().Names().size(), count("ExecutorInfo"));
  EXPECT_EQ(Registry<db::StoreInfo>::Get().Names().size(), count("StoreInfo"));
}

// Every field that a person can write in YAML says what it is for.
void CheckHelp(const google::protobuf::Descriptor* message, std::set<std::string>& seen) {
  if (!seen.insert(message->full_name()).second) return;
  for (int i = 0; i < message->field_count(); ++i) {
    const auto* field = message->field(i);
    const v1::FieldRule& rule = field->options().GetExtension(v1::field);
    if (rule.internal()) continue;
    EXPECT_FALSE(rule.help().empty()) << field->full_name() << " has no help";
    EXPECT_FALSE(rule.help().ends_with(".")) << field->full_name() << ": help has no full stop";
    const auto* type = field->message_type();
    if (rule.ignored() || type == nullptr || field->is_map()) continue;
    if (type->file()->package() == "shirabe.v1") CheckHelp(type, seen);
  }
}

TEST(Tree, EveryFieldOfTheSpecificationHasHelp) {
  std::set<std::string> seen;
  CheckHelp(v1::Experiment::descriptor(), seen);
  EXPECT_GT(seen.size(), 20u);
}

Spread Print(const char* what, const std::vector<int>& values) {
  const Spread spread = SpreadOf(values);
  std::cout << what << ": " << values.size() << ", lines median " << spread.median << ", p90 "
            << spread.p90 << ", longest " << spread.max << "\n";
  return spread;
}

// What the rules for one function and one file do not see: all of them together. The aims are a
// median function of ≤7 lines (p90 ≤30) and file of ≤120; a little more is told, much more fails.
TEST(Tree, MostFunctionsAndFilesAreShort) {
  std::vector<int> functions, files, test_functions, test_files;
  for (const TreeFile& file : Tree()) {
    if (!file.kind.cpp) continue;
    (file.kind.test ? test_files : files).push_back(file.source.lines());
    for (const Function& function : FindFunctions(file.source).found) {
      if (!function.defined) continue;
      (file.kind.test ? test_functions : functions).push_back(function.lines());
    }
  }
  EXPECT_LE(Print("files", files).median, 140);
  const Spread spread = Print("functions", functions);
  EXPECT_LE(spread.median, 9);
  EXPECT_LE(spread.p90, 30);
  Print("test files", test_files);
  Print("tests and their helpers", test_functions);
  EXPECT_GT(functions.size(), 3000u) << "functions are not found any more";
  EXPECT_GT(test_functions.size(), 1000u);
}

}  // namespace
}  // namespace shirabe::tidy
