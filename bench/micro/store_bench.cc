// The store: commits alone and together, observations, opening, listing. Figures mean something
// only beside BM_Fsync, the machine's floor for one durable write. Run with
//   build/release/bin/micro_bench --benchmark_filter=Store
// SHIRABE_BENCH_DIR chooses the disk (by default the working directory); PostgreSQL, where its
// package is installed, is started on a Unix socket with its tables under /tmp.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "db/store.h"
#include "tests/db/postgres_server.h"

namespace shirabe::db {
namespace {

const ExperimentKey kKey{"default", "bench"};

// A folder of its own on the disk under test.
class Folder {
 public:
  Folder() {
    const char* base = std::getenv("SHIRABE_BENCH_DIR");
    path_ = absl::StrCat(base == nullptr ? "." : base, "/shirabe-bench-XXXXXX");
    CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { RemoveAll(path_).IgnoreError(); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

v1::Experiment Experiment() {
  v1::Experiment experiment;
  experiment.mutable_metadata()->set_namespace_(kKey.ns);
  experiment.mutable_metadata()->set_name(kKey.name);
  return experiment;
}

// A finished trial as they are: three parameters, two metrics, a sentence on why.
v1::Trial Trial(int64_t number) {
  v1::Trial trial;
  trial.set_namespace_(kKey.ns);
  trial.set_experiment(kKey.name);
  trial.set_number(number);
  trial.set_phase(v1::TRIAL_SUCCEEDED);
  trial.set_explanation("random: point 17 of the stream with seed 7");
  for (const char* name : {"lr", "momentum", "batch_size"}) {
    trial.mutable_point()->add_x(0.25);
    v1::Assignment* assignment = trial.add_assignments();
    assignment->set_name(name);
    assignment->set_number(0.001);
  }
  for (const char* name : {"loss", "accuracy"}) {
    v1::Metric* metric = trial.mutable_observation()->add_metrics();
    metric->set_name(name);
    metric->set_min(0.1);
    metric->set_max(2.5);
    metric->set_latest(0.2);
    metric->set_latest_step(100);
    metric->set_count(100);
  }
  trial.mutable_creation_time()->set_seconds(1'700'000'000);
  trial.mutable_completion_time()->set_seconds(1'700'000'100);
  trial.set_objective(0.1);
  trial.set_attempts(1);
  return trial;
}

// One store for all threads of a benchmark, with one experiment in it.
struct Bench {
  explicit Bench(const std::string& scheme) {
    const StoreInfo* info = Registry<StoreInfo>::Get().Find(scheme);
    if (scheme == "postgres") CHECK(SharedPostgres() != nullptr);
    address = scheme + ":" + *info->scratch(folder.File(""));
    auto opened = Open(address);
    CHECK(opened.ok());
    store = *std::move(opened);
    Batch batch{.experiment = kKey, .put = {{Experiment(), 0}}};
    CHECK(store->Commit(batch).ok());
  }
  void AddTrials(int64_t count) {
    Batch batch{.experiment = kKey};
    for (int64_t i = 0; i < count; ++i) batch.trials.push_back({Trial(++trials), 0});
    CHECK(store->Commit(batch).ok());
  }

  Folder folder;
  std::string address;
  std::unique_ptr<Store> store;
  std::atomic<int64_t> trials = 0;
};

// Whether the store can be measured here; else the benchmark says why not.
bool IsHere(const std::string& scheme, benchmark::State* state) {
  if (scheme != "postgres" || PostgresServer::IsInstalled()) return true;
  state->SkipWithError("there is no PostgreSQL here (package postgresql-15)");
  return false;
}

// The floor: 4 KiB appended to a file and made durable.
void BM_Fsync(benchmark::State& state) {
  const Folder folder;
  const Fd fd(open(folder.File("floor").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::string page(4096, 'x');
  for (auto _ : state) {
    CHECK(write(fd.get(), page.data(), page.size()) == 4096);
    CHECK(fdatasync(fd.get()) == 0);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Fsync)->Name("Store/fsync floor")->UseRealTime();

// A trial that ends: the trial and ten observations in one Commit. Threads share fsyncs.
void BM_Commit(benchmark::State& state, const std::string& scheme) {
  static std::unique_ptr<Bench> bench;
  if (!IsHere(scheme, &state)) return;
  if (state.thread_index() == 0) bench = std::make_unique<Bench>(scheme);
  for (auto _ : state) {
    const int64_t number = ++bench->trials;
    Batch batch{.experiment = kKey, .trials = {{Trial(number), 0}}};
    for (int64_t step = 0; step < 10; ++step) {
      batch.observations.push_back({.trial = number, .attempt = 1, .metric = "loss", .step = step});
    }
    CHECK(bench->store->Commit(batch).ok());
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) bench.reset();
}
BENCHMARK_CAPTURE(BM_Commit, sqlite, "sqlite")
    ->Name("Store/commit sqlite")
    ->ThreadRange(1, 8)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Commit, postgres, "postgres")
    ->Name("Store/commit postgres")
    ->ThreadRange(1, 8)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Commit, memory, "memory")->Name("Store/commit memory")->UseRealTime();

// Rows a second, durable, in batches of the size given.
void BM_Observations(benchmark::State& state, const std::string& scheme) {
  if (!IsHere(scheme, &state)) return;
  Bench bench(scheme);
  bench.AddTrials(1);
  int64_t step = 0;
  for (auto _ : state) {
    Batch batch{.experiment = kKey};
    for (int64_t i = 0; i < state.range(0); ++i) {
      batch.observations.push_back({.trial = 1,
                                    .attempt = 1,
                                    .metric = i % 2 == 0 ? "loss" : "accuracy",
                                    .step = step++ / 2,
                                    .value = 1.0 / static_cast<double>(step)});
    }
    CHECK(bench.store->Commit(batch).ok());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(BM_Observations, sqlite, "sqlite")
    ->Name("Store/observations sqlite")
    ->Arg(1)
    ->Arg(100)
    ->Arg(10000)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Observations, postgres, "postgres")
    ->Name("Store/observations postgres")
    ->Arg(1)
    ->Arg(100)
    ->Arg(10000)
    ->UseRealTime();

// The floor of PostgreSQL's: as many rows in the same table and its index, without a check.
void BM_InsertFloor(benchmark::State& state) {
  if (!IsHere("postgres", &state)) return;
  Bench bench("postgres");
  const std::string name = bench.address.substr(bench.address.find("dbname=") + 7);
  auto db = SharedPostgres()->Connect(name);
  CHECK(db.ok());
  int64_t first = 0;
  for (auto _ : state) {
    // Made by the server itself: nothing is sent, parsed or compared.
    const Status status = (*db)->Execute(absl::StrCat(
        "INSERT INTO observation SELECT 7, 1, n, 1, 0.5, 0, 1, false, false FROM generate_series(",
        first, ", ", first + state.range(0) - 1, ") n"));
    CHECK(status.ok());
    first += state.range(0);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_InsertFloor)
    ->Name("Store/observations postgres floor")
    ->Arg(1)
    ->Arg(100)
    ->Arg(10000)
    ->UseRealTime();

void BM_Open(benchmark::State& state) {
  Bench bench("sqlite");
  bench.AddTrials(10'000);
  for (auto _ : state) {
    auto store = Open(bench.address, true);
    CHECK(store.ok() && (*store)->GetExperiment(kKey).ok());
  }
}
BENCHMARK(BM_Open)->Name("Store/open and get of 10k trials")->Unit(benchmark::kMicrosecond);

void BM_ListTrials(benchmark::State& state) {
  Bench bench("sqlite");
  bench.AddTrials(state.range(0));
  for (auto _ : state) CHECK(bench.store->ListTrials({.experiment = kKey}).ok());
}
BENCHMARK(BM_ListTrials)->Name("Store/list trials")->Arg(10'000)->Unit(benchmark::kMillisecond);

void BM_ListObservations(benchmark::State& state) {
  Bench bench("sqlite");
  bench.AddTrials(1);
  Batch batch{.experiment = kKey};
  for (int64_t step = 0; step < state.range(0); ++step) {
    batch.observations.push_back({.trial = 1, .attempt = 1, .metric = "loss", .step = step});
  }
  CHECK(bench.store->Commit(batch).ok());
  for (auto _ : state) CHECK(bench.store->ListObservations({.trial = {kKey, 1}}).ok());
}
BENCHMARK(BM_ListObservations)
    ->Name("Store/list observations")
    ->Arg(10'000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shirabe::db
