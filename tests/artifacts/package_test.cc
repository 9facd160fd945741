// artifacts/package/: folders to archives and back, what real tar makes and reads of them, and what
// strangers may put into one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "artifacts/package/code_package.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "tests/artifacts/archives.h"

namespace shirabe::artifacts {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class PackageTest : public testing::Test {
 protected:
  PackageTest() {
    std::string folder = testing::TempDir() + "shirabe-package-XXXXXX";
    CHECK(mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
  }
  ~PackageTest() override { CHECK(RemoveAll(folder_).ok()); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text, bool program = false) const {
    CHECK(MakeDirs(fs::path(Path(name)).parent_path().string()).ok());
    CHECK(WriteFileAtomic(Path(name), text).ok());
    CHECK(chmod(Path(name).c_str(), program ? 0755 : 0600) == 0);
  }
  StatusOr<Packed> PackInto(const std::string& from, const std::string& name,
                            const PackageLimits& limits = {}) const {
    const Fd fd(open(Path(name).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
    return PackFolder({Path(from)}, fd.get(), limits);
  }
  Status UnpackFrom(const std::string& bytes, const std::string& to,
                    const PackageLimits& limits = {}) const {
    const Fd fd = OpenedFile(bytes);
    return UnpackPackage(fd.get(), Path(to), limits, {});
  }
  std::vector<std::string> Files(const std::string& name) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(Path(name))) {
      files.push_back(entry.path().lexically_relative(Path(name)).string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  bool Shell(const std::string& command) const {
    return system(absl::StrCat("cd ", folder_, " && ", command).c_str()) == 0;
  }

  std::string folder_;
};

TEST_F(PackageTest, ComesBackAsItWas) {
  const std::string deep = std::string(90, 'd') + "/" + std::string(90, 'e') + "/file";
  Write("code/train.py", "print(1)\n");
  Write("code/run.sh", "#!/bin/sh\n", true);
  Write("code/" + deep, std::string(700'000, 'x'));
  Write("code/empty", "");
  CHECK(MakeDirs(Path("code/folder")).ok());
  fs::create_symlink("../train.py", Path("code/folder/link"));
  const auto packed = PackInto("code", "a.tar.gz");
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->files, 4);
  const std::string bytes = *ReadFile(Path("a.tar.gz"));
  EXPECT_EQ(packed->sha256, HexSha256(bytes));
  ASSERT_TRUE(UnpackFrom(bytes, "back").ok()) << UnpackFrom(bytes, "again");
  EXPECT_EQ(Files("back"), Files("code"));
  EXPECT_EQ(*ReadFile(Path("back/" + deep)), std::string(700'000, 'x'));
  EXPECT_EQ(fs::read_symlink(Path("back/folder/link")), "../train.py");
  struct stat info;
  ASSERT_EQ(stat(Path("back/run.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0555u);
  ASSERT_EQ(stat(Path("back/train.py").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0444u);
  ASSERT_EQ(stat(Path("back").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0555u);
}

// Whatever the times and the owner of the files.
TEST_F(PackageTest, TheSameFilesHaveTheSameDigest) {
  for (const char* name : {"one", "two"}) {
    Write(absl::StrCat(name, "/b"), "b");
    Write(absl::StrCat(name, "/a/c"), "c");
  }
  Write("two/a/__pycache__/c.pyc", "cache");
  Write("two/.git/HEAD", "ref");
  fs::last_write_time(Path("two/b"), fs::file_time_type::clock::now() - std::chrono::hours(100));
  const auto one = PackInto("one", "1");
  const auto two = PackInto("two", "2");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->sha256, two->sha256);
  Write("two/b", "other");
  EXPECT_NE(PackInto("two", "3")->sha256, one->sha256);
}

TEST_F(PackageTest, RealTarReadsItAndIsRead) {
  const std::string name = std::string(120, 'n');
  Write("code/" + name, "long");
  Write("code/sub/train.py", "print(1)\n");
  ASSERT_TRUE(PackInto("code", "a.tar.gz").ok());
  ASSERT_TRUE(Shell("mkdir out && tar xzf a.tar.gz -C out && diff -r code out"));
  for (const std::string format : {"ustar", "pax", "gnu", "oldgnu"}) {
    const std::string from = format == "ustar" ? "code/sub" : "code";
    ASSERT_TRUE(
        Shell(absl::StrCat("tar czf ", format, ".tar.gz --format=", format, " -C ", from, " .")));
    const Status status = UnpackFrom(*ReadFile(Path(format + ".tar.gz")), format);
    ASSERT_TRUE(status.ok()) << format << status;
    EXPECT_TRUE(Shell(absl::StrCat("diff -r ", from, " ", format))) << format;
  }
}

TEST_F(PackageTest, WhatIsIgnoredIsLeftOut) {
  Write("code/.shirabeignore", "# data\n*.bin\n/data/\nlogs/*.txt\n");
  for (const char* file : {"a.py", "x.bin", "sub/y.bin", "data/big", "sub/data/small", "logs/a.txt",
                           "sub/logs/b.txt"}) {
    Write(absl::StrCat("code/", file), "x");
  }
  ASSERT_TRUE(PackInto("code", "a.tar.gz").ok());
  ASSERT_TRUE(UnpackFrom(*ReadFile(Path("a.tar.gz")), "back").ok());
  EXPECT_THAT(Files("back"), testing::ElementsAre("a.py", "logs", "sub", "sub/data",
                                                  "sub/data/small", "sub/logs", "sub/logs/b.txt"));
  Write("code/.shirabeignore", "a\n!b\n");
  EXPECT_THAT(Message(PackInto("code", "b").status()), HasSubstr(".shirabeignore line 2"));
}

TEST_F(PackageTest, WhatNoPackageCanHaveIsNamedWithTheFix) {
  Write("code/a.py", "x");
  fs::create_symlink("/etc", Path("code/etc"));
  EXPECT_THAT(Message(PackInto("code", "a").status()),
              AllOf(HasSubstr("code/etc"), HasSubstr("leads out"), HasSubstr(".shirabeignore")));
  fs::remove(Path("code/etc"));
  ASSERT_EQ(mkfifo(Path("code/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Message(PackInto("code", "a").status()), HasSubstr("code/pipe"));
  fs::remove(Path("code/pipe"));
  EXPECT_TRUE(absl::IsResourceExhausted(PackInto("code", "a", {.entries = 0}).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(PackInto("code", "a", {.packed_bytes = 10}).status()));
  Write("code/big", std::string(2 << 20, 'x'));
  EXPECT_TRUE(
      absl::IsResourceExhausted(PackInto("code", "a", {.unpacked_bytes = 1 << 20}).status()));
  CHECK(MakeDirs(Path("nothing")).ok());
  EXPECT_THAT(Message(PackInto("nothing", "a").status()), HasSubstr("no file to pack"));
}

// ---- what strangers pack ------------------------------------------------------------------------

TEST_F(PackageTest, NothingIsMadeOutsideOfTheFolder) {
  const std::string long_name = std::string(30, 'a') + "/../../../../escaped";
  const std::vector<std::pair<std::vector<RawEntry>, std::string>> hostile = {
      {{{"../escaped"}}, "leads out"},
      {{{"a/../../escaped"}}, "leads out"},
      {{{"/tmp/shirabe-escaped"}}, "absolute"},
      {{PaxEntry("path", "../escaped"), {"a"}}, "leads out"},
      {{PaxEntry("path", "/tmp/shirabe-escaped"), {"a"}}, "absolute"},
      {{{.name = "L", .type = 'L', .bytes = long_name}, {"a"}}, "leads out"},
      {{{.name = "l", .type = '2', .target = "/etc"}}, "link that leads out"},
      {{{.name = "l", .type = '2', .target = ".."}}, "link that leads out"},
      {{{.name = "a/l", .type = '2', .target = "../../x"}}, "link that leads out"},
      {{{.name = "a/l", .type = '2', .target = "b/../../../x"}}, "link that leads out"},
      {{{.name = "K", .type = 'K', .bytes = "/etc/passwd"}, {.name = "l", .type = '2'}},
       "link that leads out"},
      {{PaxEntry("linkpath", "../x"), {.name = "l", .type = '2', .target = "y"}},
       "link that leads out"},
      {{{.name = "l", .type = '2', .target = "d"}, {.name = "l/file", .bytes = "x"}}, "twice"},
      {{{.name = "d/"}, {.name = "d", .type = '2', .target = "e"}}, "twice"},
      {{{.name = "h", .type = '1', .target = "/etc/passwd"}}, "hard link"},
      {{{.name = "c", .type = '3'}}, "device"},
      {{{.name = "b", .type = '4'}}, "device"},
      {{{.name = "p", .type = '6'}}, "pipe"},
      {{{.name = "s", .type = 'S'}}, "sparse"},
      {{PaxEntry("GNU.sparse.major", "1"), {"a"}}, "GNU.sparse"},
      {{PaxEntry("path", "x", 'g'), {"a"}}, "refused there"},
      {{{.name = "a"}, {.name = "a"}}, "twice"},
      {{{.name = "a"}, {.name = "a/b"}}, "twice"},
      {{{.name = "d", .type = '5', .bytes = "x"}}, "no file and has bytes"},
      {{{.name = ""}}, "no name"},
      {{{.name = std::string(2000, 'x')}, PaxEntry("path", std::string(2000, 'x')), {"a"}},
       "too long"},
      {{PaxEntry("size", "-1"), {"a"}}, "size"}};
  for (size_t i = 0; i < hostile.size(); ++i) {
    const std::string to = absl::StrCat("inner/", i);
    CHECK(MakeDirs(Path("inner")).ok());
    const Status status = UnpackFrom(RawPackage(hostile[i].first), to);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << i << status;
    EXPECT_THAT(Message(status), HasSubstr(hostile[i].second)) << i;
  }
  EXPECT_FALSE(fs::exists(Path("escaped")));
  EXPECT_FALSE(fs::exists(Path("inner/escaped")));
  EXPECT_FALSE(fs::exists("/tmp/shirabe-escaped"));
}

TEST_F(PackageTest, NoChainOfLinksLeadsOut) {
  ASSERT_TRUE(UnpackFrom(RawPackage({{.name = "p/q/up", .type = '2', .target = "../.."},
                                     {.name = "r", .type = '2', .target = "p/q/up"},
                                     {.name = "p/file", .bytes = "x"}}),
                         "ok")
                  .ok());
  EXPECT_EQ(fs::canonical(Path("ok/r")), fs::canonical(Path("ok")));
  EXPECT_FALSE(UnpackFrom(RawPackage({{.name = "p/q/up", .type = '2', .target = "../.."},
                                      {.name = "out", .type = '2', .target = "p/q/up/../.."}}),
                          "out")
                   .ok());
}

TEST_F(PackageTest, ModesAreNotTaken) {
  const std::vector<RawEntry> entries = {{.name = "s", .bytes = "x", .mode = 06777},
                                         {.name = "t", .mode = 07666}};
  ASSERT_TRUE(UnpackFrom(RawPackage(entries), "m").ok());
  struct stat info;
  ASSERT_EQ(stat(Path("m/s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0555u);
  ASSERT_EQ(stat(Path("m/t").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0444u);
}

TEST_F(PackageTest, WhatWouldBecomeTooMuchIsRefusedBeforeItDoes) {
  const std::string bomb = RawPackage({{.name = "zeros", .bytes = std::string(64 << 20, '\0')}});
  EXPECT_LT(bomb.size(), size_t{100'000});
  EXPECT_THAT(Message(UnpackFrom(bomb, "b", {.unpacked_bytes = 1 << 20})),
              HasSubstr("more than 1 MiB"));
  EXPECT_TRUE(!fs::exists(Path("b/zeros")));
  // A header that says less than comes of it, and one that says all there can be.
  EXPECT_FALSE(UnpackFrom(RawPackage({{.name = "a", .size = int64_t{1} << 32}}), "c").ok());
  std::vector<RawEntry> many;
  for (int i = 0; i < 200; ++i) many.push_back({absl::StrCat("f", i)});
  EXPECT_THAT(Message(UnpackFrom(RawPackage(many), "d", {.entries = 100})),
              HasSubstr("more than 100"));
  std::vector<RawEntry> headers(5000, PaxEntry("comment", std::string(400, 'c')));
  EXPECT_THAT(
      Message(UnpackFrom(RawPackage(headers), "e", {.unpacked_bytes = 1000, .entries = 10})),
      HasSubstr("larger than a package"));
  std::string deep;
  for (int i = 0; i < 70; ++i) absl::StrAppend(&deep, "d/");
  EXPECT_THAT(Message(UnpackFrom(RawPackage({PaxEntry("path", deep + "f"), {"a"}}), "f")),
              HasSubstr("nested too deep"));
}

TEST_F(PackageTest, CutOffAndDamagedArchivesAreNone) {
  const std::string whole = RawPackage({{.name = "a", .bytes = std::string(3000, 'a')}, {"b"}});
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string to = absl::StrCat("cut-", bytes);
    EXPECT_FALSE(UnpackFrom(whole.substr(0, bytes), to).ok()) << bytes;
  }
  const std::string tar = RawTar({{.name = "a", .bytes = "x"}});
  EXPECT_FALSE(UnpackFrom(Gzipped(tar.substr(0, 600)), "half").ok());
  EXPECT_FALSE(UnpackFrom(Gzipped(tar + "x"), "more").ok());
  EXPECT_FALSE(UnpackFrom(Gzipped(tar) + "x", "behind").ok());
  EXPECT_FALSE(UnpackFrom("PK\x03\x04 not one of ours", "zip").ok());
  std::string wrong = tar;
  wrong[0] = 'b';
  EXPECT_THAT(Message(UnpackFrom(Gzipped(wrong), "sum")), HasSubstr("damaged"));
}

TEST(PackageDigest, HasOneForm) {
  const std::string digits(64, 'a');
  EXPECT_EQ(*DigestOfPackage("sha256:" + digits), digits);
  for (const std::string& other :
       {digits, "sha256:" + std::string(63, 'a'), "sha256:" + std::string(64, 'A'),
        "sha512:" + digits, "sha256:" + digits + "\n", "sha256:../" + std::string(61, 'a')}) {
    EXPECT_FALSE(DigestOfPackage(other).ok()) << other;
  }
  EXPECT_EQ(PackageKey("", digits), "code/" + digits + ".tar.gz");
  EXPECT_EQ(PackageKey("a/b", digits), "a/b/code/" + digits + ".tar.gz");
}

}  // namespace
}  // namespace shirabe::artifacts
