// Every rule finds what is planted, and leaves its lawful neighbour alone.
#include "tests/tidy/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::tidy {
namespace {

// The violations of a file with this text, as one text.
std::string Check(const std::string& path, const std::string& text, bool executable = false) {
  return Format(CheckFile(Lex(path, text), executable));
}

#define EXPECT_FINDS(path, text, words) \
  EXPECT_NE(Check(path, text).find(words), std::string::npos) << Check(path, text)
#define EXPECT_CLEAN(path, text) EXPECT_EQ(Check(path, text), "")

TEST(Rules, LongLines) {
  EXPECT_FINDS("db/a.cc", "int a;\n//" + std::string(99, 'x') + "\n", "db/a.cc:2: 101 columns");
  EXPECT_CLEAN("db/a.cc", "//" + std::string(98, 'x') + "\n");
  std::string wide = "//";
  for (int i = 0; i < 98; ++i) wide += "ü";
  EXPECT_CLEAN("db/a.cc", wide + "\n");
  EXPECT_FINDS("db/a.cc", "int a; \n", "blanks at the end");
}

TEST(Rules, LongFilesAndFunctions) {
  std::string lines;
  for (int i = 0; i < 401; ++i) lines += "int a;\n";
  EXPECT_FINDS("db/a.cc", lines, "401 lines in the file");
  EXPECT_CLEAN("tests/db/a.cc", lines);
  EXPECT_CLEAN("proto/a.proto", lines);
  std::string body;
  for (int i = 0; i < 69; ++i) body += "  g();\n";
  EXPECT_FINDS("db/a.cc", "void f() {\n" + body + "}\n", "db/a.cc:1: f has 71 lines");
  EXPECT_CLEAN("db/a.cc", "void f() {\n" + body.substr(7) + "}\n");
  EXPECT_FINDS("sdk/a.py", "def f():\n" + body + body, "f has 139 lines");
}

TEST(Rules, ManyParameters) {
  EXPECT_FINDS("db/a.cc", "void f(int a, int b, int c, int d, int e);\n", "f has 5 parameters");
  EXPECT_CLEAN("db/a.cc", "void f(int a, int b, int c, int d);\n");
}

TEST(Rules, LargeClasses) {
  std::string methods;
  for (int i = 0; i < 29; ++i) methods += "  void Run" + std::to_string(i) + "();\n";
  const std::string begin = "class A final : public B {\n public:\n  A(int a);\n  ~A();\n";
  EXPECT_CLEAN("db/a.cc", begin + methods + "};\n");
  EXPECT_CLEAN("db/a.cc", begin + methods + "  struct C {\n    void Nested();\n  };\n};\n");
  EXPECT_FINDS("db/a.cc", begin + methods + "  int Size() const { return 1; }\n};\n",
               "db/a.cc:1: A has 30 methods");
}

TEST(Rules, PublicFields) {
  const std::string begin = "class A {\n public:\n  using B = int;\n  enum class C { kD };\n";
  const std::string end = " private:\n  int d_ = 0;\n};\n";
  EXPECT_CLEAN("db/a.cc", begin + end);
  EXPECT_CLEAN("db/a.cc", begin + "  static constexpr int kE = 1;\n  const int f = 1;\n" + end);
  EXPECT_CLEAN("db/a.cc", begin + "  struct G {\n    int h = 0;\n  };\n" + end);
  EXPECT_FINDS("db/a.cc", begin + "  std::string i;\n" + end,
               "db/a.cc:5: a public field of class A");
  EXPECT_FINDS("db/a.cc", begin + "  std::function<void()> j = {};\n" + end, "a public field");
  EXPECT_FINDS("db/a.cc", begin + "  const B* k;\n" + end, "a public field");
  EXPECT_CLEAN("db/a.cc", "struct A {\n  int b = 0;\n};\n");
}

TEST(Rules, Mutexes) {
  EXPECT_FINDS("db/a.cc", "std::mutex m;\n", "use base/mutex.h");
  EXPECT_FINDS("db/a.cc", "const std::lock_guard lock(m);\n", "use base/mutex.h");
  EXPECT_FINDS("db/a.cc", "class A {\n  mutable Mutex mutex_;\n  int b_;\n};\n",
               "db/a.cc:2: mutex_ guards nothing");
  EXPECT_CLEAN("db/a.cc", "class A {\n  Mutex mutex_;\n  int b_ ABSL_GUARDED_BY(mutex_);\n};\n");
  EXPECT_CLEAN("db/a.cc", "class A {\n  Mutex mutex_;  // serialises writes to the file\n};\n");
}

TEST(Rules, Headers) {
  EXPECT_FINDS("base/a.h", "// A.\nint a;\n", "without #pragma once");
  EXPECT_FINDS("base/a.h", "#pragma once\nint a;\n", "opens with what it is");
  EXPECT_CLEAN("base/a.h", "// A.\n#pragma once\nint a;\n");
  std::string text = "// A.\n#pragma once\nvirtual f() = 0;\n";
  for (int i = 0; i < 148; ++i) text += i % 2 == 0 ? "int a;\n" : "// a\n";
  EXPECT_FINDS("trial/a.h", text, "151 lines in an interface header");
  EXPECT_FINDS("trial/local/a.h", text, "151 lines in an interface header");
  EXPECT_CLEAN("db/store.h", text);
  EXPECT_CLEAN("kube/a.h", text);
  for (int i = 0; i < 150; ++i) text += "// a\n";
  EXPECT_FINDS("kube/a.h", text, "301 lines in a header");
  EXPECT_FINDS("db/store.h", "// A.\n#pragma once\nint a;\nint b;\nvirtual f() = 0;\n", "20% of");
}

TEST(Rules, Layers) {
  EXPECT_FINDS("metrics/a.cc", "#include \"db/store.h\"\n", "metrics/ may not include db/");
  EXPECT_FINDS("base/a.cc", "#include \"proto/shirabe/v1/records.pb.h\"\n", "may not include");
  EXPECT_FINDS("suggestion/a.cc", "#include \"kube/api_client.h\"\n", "may not include");
  EXPECT_FINDS("cmd/a.cc", "#include \"db/store.h\"\n", "cmd/ may not include db/");
  EXPECT_FINDS("experiment/a.cc", "#include \"client/client.h\"\n", "may not include");
  EXPECT_FINDS("db/a.cc", "#include \"store.h\"\n", "from the root of the tree");
  EXPECT_CLEAN("trial/a.cc", "#include \"kube/api_client.h\"\n#include \"base/file_io.h\"\n");
  EXPECT_CLEAN("db/a.cc",
               "#include <vector>\n#include \"absl/time/time.h\"\n"
               "// #include \"trial/a.h\"\n");
  EXPECT_CLEAN("tests/db/a.cc", "#include \"trial/executor.h\"\n");
}

// All of these files at once.
std::string CheckTogether(const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<Source> sources;
  for (const auto& [path, text] : files) sources.push_back(Lex(path, text));
  std::vector<const Source*> all;
  for (const Source& source : sources) all.push_back(&source);
  Violations found;
  CheckTree(all, found);
  return Format(found);
}

TEST(Rules, CyclesOfFilesAndFolders) {
  EXPECT_EQ(CheckTogether({{"db/a.h", "#include \"db/b.h\"\n"}, {"db/b.h", "int b;\n"}}), "");
  // By way of a source: neither of the two can be understood without the other.
  EXPECT_THAT(CheckTogether({{"db/a.h", "int a;\n"},
                             {"db/a.cc", "#include \"db/b.h\"\n"},
                             {"db/b.h", "#include \"db/a.h\"\n"}}),
              testing::HasSubstr("includes itself: db/a → db/b → db/a"));
  EXPECT_THAT(CheckTogether({{"db/a.h", "#include \"db/x/b.h\"\n"},
                             {"db/x/b.h", "int b;\n"},
                             {"db/x/c.h", "#include \"db/d.h\"\n"},
                             {"db/d.h", "int d;\n"}}),
              testing::HasSubstr("includes itself: db → db/x → db"));
}

TEST(Rules, NamesThatABatchWouldMixUp) {
  const std::string a = "namespace x {\nnamespace {\nint Size(int of) { return of; }\n";
  const std::string end = "}  // namespace\n}  // namespace x\n";
  EXPECT_THAT(CheckTogether({{"db/a.cc", a + end}, {"db/b.cc", a + end}}),
              testing::HasSubstr("db/b.cc:1: Size is in the unnamed namespace of db/a.cc, too"));
  EXPECT_EQ(CheckTogether({{"db/a.cc", a + end}, {"view/b.cc", a + end}}), "");
  // Outside of it, and in a class.
  const std::string b =
      "namespace x {\nnamespace {\nclass B {\n  int Size(int of) { return 1; }\n};\n";
  EXPECT_EQ(CheckTogether({{"db/a.cc", a + end}, {"db/b.cc", b + end + "int Size(int of) {}\n"}}),
            "");
}

TEST(Rules, FullFolders) {
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 45; ++i) files.push_back({"db/a" + std::to_string(i) + ".cc", "int a;\n"});
  EXPECT_EQ(CheckTogether(files), "");
  files.push_back({"db/b.cc", "int b;\n"});
  EXPECT_THAT(CheckTogether(files), testing::HasSubstr("46 source files in the folder"));
}

TEST(Rules, PureParts) {
  EXPECT_FINDS("suggestion/a.cc", "#include <thread>\n", "no I/O, clock or threads");
  EXPECT_FINDS("suggestion/gp/a.cc", "#include \"base/clock.h\"\n", "no I/O, clock or threads");
  EXPECT_FINDS("experiment/plan.cc", "#include <fstream>\n", "no I/O, clock or threads");
  EXPECT_CLEAN("suggestion/remote/remote_algorithm.cc", "#include <thread>\n");
  EXPECT_CLEAN("experiment/experiment_controller.cc", "#include <thread>\n");
}

TEST(Rules, Clocks) {
  for (const char* text : {"absl::Now();", "std::chrono::steady_clock::now();", "std::time(0);",
                           "x = time(nullptr);", "usleep(3);", "std::this_thread::sleep_for(x);"}) {
    EXPECT_NE(Check("db/a.cc", std::string(text) + "\n"), "") << text;
    EXPECT_EQ(Check("tests/db/a.cc", std::string(text) + "\n"), "") << text;
  }
  EXPECT_CLEAN("base/clock.cc", "return absl::Now();\n");
  EXPECT_CLEAN("db/a.cc", "row.time(); r->time(); f(end_time(x)); Runtime(3);\n");
  EXPECT_CLEAN("db/a.cc", "// absl::Now() is in base/clock\nf(\"absl::Now()\");\n");
}

TEST(Rules, Ownership) {
  EXPECT_FINDS("db/a.cc", "auto* a = new int;\n", "naked new");
  EXPECT_FINDS("db/a.cc", "std::unique_ptr<A>(new A);\n", "naked new");
  EXPECT_CLEAN("db/a.cc", "std::unique_ptr<A>(new A);  // the constructor is private\n");
  EXPECT_CLEAN("db/a.cc", "new (&buffer) int;\n");
  EXPECT_FINDS("db/a.cc", "delete a;\n", "naked delete");
  EXPECT_CLEAN("db/a.cc", "A(const A&) = delete;\n");
  EXPECT_FINDS("db/a.cc", "std::shared_ptr<A> a;\n", "shared_ptr");
  EXPECT_CLEAN("db/a.cc", "std::shared_ptr<A> a;  // outlives the call that made it\n");
}

TEST(Rules, BannedWords) {
  EXPECT_FINDS("db/a.cc", "throw 1;\n", "return a status");
  EXPECT_FINDS("db/a.cc", "std::regex r;\n", "use RE2");
  EXPECT_FINDS("db/a.cc", "std::normal_distribution<double> n;\n", "base/rng");
  EXPECT_FINDS("db/a.cc", "#ifdef A\n", "conditional compilation");
  EXPECT_FINDS("tests/db/a.cc", "TEST(A, DISABLED_B) {}\n", "a disabled test");
  EXPECT_FINDS("tests/db/a.cc", "// TEST(A, B) {\n", "commented out");
  EXPECT_FINDS("db/a.cc", "f(name + \"-a\" + n);\n", "base/names");
  EXPECT_FINDS("db/a.cc", "f(name + \"-\" + std::to_string(n));\n", "base/names");
  EXPECT_CLEAN("base/names.cc", "f(name + \"-\" + std::to_string(n));\n");
  EXPECT_FINDS("README.md",
               "This is a TO"
               "DO.\n",
               "left undone");
  EXPECT_FINDS("deploy/a.sh",
               "# FIX"
               "ME\n",
               "left undone");
  EXPECT_FINDS("db/a.cc", "// Whoever reads it.\n", "private register");
  EXPECT_FINDS("db/a.h", "// A.\n#pragma once\nint a;  // for his own\n", "private register");
  EXPECT_CLEAN("db/a.cc", "int kNobody;  // the caller's, of this history\n");
  EXPECT_CLEAN("tests/db/a.cc", "// Nobody reads it.\n");
}

TEST(Rules, Kernels) {
  const std::string kernel =
      "__global__ void __launch_bounds__(256) K(int* a) {\n  __shared__ int s[9];\n"
      "  s[threadIdx.x] = a[blockIdx.y];\n  __syncthreads();\n}\n";
  EXPECT_CLEAN("suggestion/gpu/a.cu", kernel);
  for (const char* line : {"__shfl_down_sync(m, v, 1);",
                           "__ballot_sync(m, v);",
                           "__syncwarp();",
                           "__threadfence();",
                           "__fmaf_rn(a, b, c);",
                           "atomicAdd(a, 1);",
                           "cuda::atomic_ref<int> r(a);",
                           "auto g = cooperative_groups::this_grid();",
                           "K<<<1, 2>>>(a);",
                           "asm(\"trap;\");",
                           "tex2D<float>(t, 1, 2);",
                           "cudaMalloc(&p, 8);",
                           "extern __shared__ int s[];",
                           "int i = threadIdx.y;",
                           "int i = blockDim.x;",
                           "int i = warpSize;",
                           "clock64();",
                           "printf(\"%d\", i);",
                           "#include <cuda_runtime.h>",
                           "#include <cub/cub.cuh>"}) {
    EXPECT_FINDS("suggestion/gpu/a.cu", std::string(line) + "\n", "do not model");
    EXPECT_FINDS("tests/gpu/a.cu", std::string(line) + "\n", "do not model");
  }
  EXPECT_FINDS("suggestion/gpu/a.h", "// A.\n#pragma once\nint i = __popc(3);\n", "__popc");
  EXPECT_CLEAN("suggestion/gpu/cuda/a.cu", "__threadfence();\n");
  EXPECT_CLEAN("tests/gpu/device/a.cu", "__trap();\n");
}

TEST(Rules, Registrations) {
  const std::string line = "SHIRABE_REGISTER(AlgorithmInfo, {.name = \"a\", .help = \"b\"});\n";
  EXPECT_CLEAN("suggestion/algorithms/a.cc", "int a;\n" + line);
  EXPECT_FINDS("suggestion/algorithms/a.cc", line + "int a;\n", "not the last line");
  EXPECT_FINDS("metrics/collectors/a.cc", line + line, "one registration a file");
  EXPECT_CLEAN("suggestion/algorithms/a.cc",
               "namespace a {\nSHIRABE_REGISTER(A, {.create = [](int x) {\n  return f(g(x));\n"
               "}});\n}\n");
}

TEST(Rules, Scripts) {
  EXPECT_NE(Check("a.sh", "#!/usr/bin/env bash\nset -euo pipefail\n"), "") << "not executable";
  EXPECT_EQ(Check("a.sh", "#!/usr/bin/env bash\nset -euo pipefail\n", true), "");
  EXPECT_NE(Check("a.sh", "#!/usr/bin/env bash\nls\n", true), "");
  EXPECT_NE(Check("a.py", "print(1)\n", true), "");
  EXPECT_EQ(Check("run", "#!/usr/bin/env python3\n", true), "");
  EXPECT_EQ(Check("sdk/a.py", "print(1)\n"), "");
}

}  // namespace
}  // namespace shirabe::tidy
