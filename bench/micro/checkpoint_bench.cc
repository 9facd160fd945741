// Commit, Verify and Fork of one checkpoint, by size and number of files, beside their floors: the
// hash of as many bytes in memory, and reading plus writing them without one.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "trial/checkpoint/checkpoint_manifest.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::trial {
namespace {

constexpr int64_t kStep = 1;
const AttemptKey kFrom = {{{"default", "bench"}, 1}, 1};
const AttemptKey kTo = {{{"default", "bench"}, 1}, 2};

// A checkpoint of range(0) MiB in range(1) files.
class Home {
 public:
  explicit Home(const benchmark::State& state) : files_(state.range(1)) {
    const char* folder = getenv("TMPDIR");  // on which file system is half of the answer
    std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/shirabe-bench-XXXXXX";
    CHECK(mkdtemp(path.data()) != nullptr);
    home_ = path;
    layout_.emplace(home_);
    store_.emplace(&*layout_);
    const std::string dir = layout_->Paths(kFrom).checkpoint_dir + "/" + std::to_string(kStep);
    CHECK(MakeDirs(dir).ok());
    const std::string contents(static_cast<size_t>((state.range(0) << 20) / files_), 'x');
    for (int64_t i = 0; i < files_; ++i) {
      CHECK(WriteFileAtomic(dir + "/f" + std::to_string(i), contents).ok());
    }
    checkpoint_ = *store_->Commit(kFrom, kStep);
  }
  ~Home() { CHECK(RemoveAll(home_).ok()); }

  const CheckpointStore& store() const { return *store_; }
  const v1::Checkpoint& checkpoint() const { return checkpoint_; }
  std::string Dir(const AttemptKey& key) const {
    return layout_->Paths(key).checkpoint_dir + "/" + std::to_string(kStep);
  }
  void Report(benchmark::State& state) const {
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * checkpoint_.bytes());
  }

 private:
  const int64_t files_;
  std::string home_;
  std::optional<FileLayout> layout_;
  std::optional<CheckpointStore> store_;
  v1::Checkpoint checkpoint_;
};

void BM_CheckpointCommit(benchmark::State& state) {
  const Home home(state);
  for (auto _ : state) {
    state.PauseTiming();
    CHECK(unlink((home.Dir(kFrom) + "/" + kManifestName).c_str()) == 0);
    state.ResumeTiming();
    CHECK(home.store().Commit(kFrom, kStep).ok());
  }
  home.Report(state);
}

void BM_CheckpointVerify(benchmark::State& state) {
  const Home home(state);
  for (auto _ : state) CHECK(home.store().Verify(home.checkpoint()).ok());
  home.Report(state);
}

void BM_CheckpointFork(benchmark::State& state) {
  const Home home(state);
  for (auto _ : state) {
    state.PauseTiming();
    CHECK(RemoveAll(home.Dir(kTo)).ok());
    state.ResumeTiming();
    CHECK(home.store().Fork(home.checkpoint(), kTo).ok());
  }
  home.Report(state);
}

void BM_FloorHash(benchmark::State& state) {
  const std::string bytes(static_cast<size_t>(state.range(0)) << 20, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(HexSha256(bytes));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes.size()));
}

// What cp and a sync of the copy cost.
void BM_FloorCopy(benchmark::State& state) {
  const Home home(state);
  const std::string copy = home.Dir(kFrom) + ".copy";
  std::string buffer(256 << 10, '\0');
  for (auto _ : state) {
    const Fd from(open((home.Dir(kFrom) + "/f0").c_str(), O_RDONLY));
    const Fd to(open(copy.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    for (;;) {
      const ssize_t n = read(from.get(), buffer.data(), buffer.size());
      CHECK(n >= 0);
      if (n == 0) break;
      CHECK(write(to.get(), buffer.data(), static_cast<size_t>(n)) == n);
    }
    CHECK(fsync(to.get()) == 0);
  }
  home.Report(state);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"MiB", "files"})->UseRealTime();
  for (const auto& [mib, files] : {std::pair{1, 1}, {256, 1}, {256, 1000}}) {
    bench->Args({mib, files});
  }
}
BENCHMARK(BM_CheckpointCommit)->Apply(Sizes);
BENCHMARK(BM_CheckpointVerify)->Apply(Sizes);
BENCHMARK(BM_CheckpointFork)->Apply(Sizes);
BENCHMARK(BM_FloorHash)->Arg(256)->UseRealTime();
BENCHMARK(BM_FloorCopy)->Args({256, 1})->UseRealTime();

}  // namespace
}  // namespace shirabe::trial
