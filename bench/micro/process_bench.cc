// One no-op attempt through the process executor, beside its floor: posix_spawn of the same program
// with its exit awaited. The ratio of the two is what supervision, records and directories cost.
#include <benchmark/benchmark.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "trial/executor.h"

namespace shirabe::trial {
namespace {

const ExperimentKey kExperiment{"default", "bench"};

// Processor time of this process and of the children it has buried, theirs included. On a busy
// machine this, not the wall clock, is what two runs can be compared by.
double CpuSeconds() {
  double seconds = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage;
    CHECK(getrusage(who, &usage) == 0);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

void ReportCpu(double begin, benchmark::State& state) {
  state.counters["cpu_us"] =
      benchmark::Counter(1e6 * (CpuSeconds() - begin), benchmark::Counter::kAvgIterations);
}

void SpawnTrue() {
  std::string program = "/bin/true";
  char* argv[] = {program.data(), nullptr};
  pid_t pid = -1;
  CHECK(posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv, environ) == 0);
  CHECK(waitpid(pid, nullptr, 0) == pid);
}

void BM_SpawnAndWait(benchmark::State& state) {
  const double begin = CpuSeconds();
  for (auto _ : state) SpawnTrue();
  ReportCpu(begin, state);
}
BENCHMARK(BM_SpawnAndWait)->UseRealTime();

// Attempts in flight at a time, as the controller has them.
class Runner {
 public:
  Runner() {
    const char* folder = getenv("TMPDIR");  // on which file system is half of the answer
    std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/shirabe-bench-XXXXXX";
    CHECK(mkdtemp(path.data()) != nullptr);
    home_ = path;
    ExecutorOptions options;
    options.home = home_;
    options.clock = RealClock();
    options.on_change = [this](const ExperimentKey&) {
      std::lock_guard lock(mutex_);
      changed_ = true;
      condition_.notify_all();
    };
    executor_ = *Registry<ExecutorInfo>::Get().Find("process")->create(options);
    auto& spec = *(*request_.trial_spec.mutable_fields())["spec"].mutable_struct_value();
    auto* list = (*spec.mutable_fields())["containers"].mutable_list_value();
    auto& fields = *list->add_values()->mutable_struct_value()->mutable_fields();
    fields["name"].set_string_value("main");
    fields["command"].mutable_list_value()->add_values()->set_string_value("/bin/true");
    request_.primary_container = "main";
    request_.token = "token";
    request_.parameters_json = "{}";
  }
  ~Runner() {
    executor_.reset();
    CHECK(RemoveAll(home_).ok());
  }

  void Start() {
    request_.key = {{kExperiment, ++trials_}, 1};
    CHECK(executor_->Start(request_).ok());
    ++running_;
  }

  // Until at least one has ended.
  void AwaitAny() {
    const int before = running_;
    while (running_ == before) {
      for (const AttemptStatus& observed : executor_->Observe(kExperiment)) {
        if (observed.state == AttemptStatus::State::kRunning) continue;
        CHECK(observed.exit_code == 0);
        executor_->Forget(observed.key);
        --running_;
      }
      if (running_ != before) return;
      std::unique_lock lock(mutex_);
      condition_.wait(lock, [this] { return changed_; });
      changed_ = false;
    }
  }
  int running() const { return running_; }

 private:
  std::string home_;
  std::mutex mutex_;
  std::condition_variable condition_;
  bool changed_ = false;
  std::unique_ptr<Executor> executor_;
  AttemptRequest request_;
  int64_t trials_ = 0;
  int running_ = 0;
};

void BM_Attempt(benchmark::State& state) {
  Runner runner;
  const double begin = CpuSeconds();
  for (auto _ : state) {
    runner.Start();
    if (runner.running() >= state.range(0)) runner.AwaitAny();
  }
  while (runner.running() > 0) runner.AwaitAny();
  ReportCpu(begin, state);
}
BENCHMARK(BM_Attempt)->Arg(1)->Arg(8)->UseRealTime();

}  // namespace
}  // namespace shirabe::trial
