// A child process that is killed before its first step, before its second one, …: until one comes
// to its end.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace shirabe {

// `work` runs in the child and kills it before that step (from 1); true = all was well. `check`
// looks, after each child, at what it has left. The step before which none was left to kill.
inline int KilledAtEachStep(const std::function<bool(int step)>& work,
                            const std::function<void(int step)>& check) {
  constexpr int kMost = 100;
  for (int step = 1; step < kMost; ++step) {
    const pid_t child = fork();
    if (child == 0) _exit(work(step) ? 0 : 1);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) break;
    check(step);
    if (testing::Test::HasFatalFailure()) return step;
    if (!WIFEXITED(status)) continue;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return step;
  }
  ADD_FAILURE() << "it never came to its end";
  return kMost;
}

}  // namespace shirabe
