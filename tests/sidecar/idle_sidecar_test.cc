// A sidecar that has nothing to say, by a clock that stands still unless a test moves it.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "sidecar/server_link.h"
#include "sidecar/sidecar.h"
#include "tests/sidecar/pod_harness.h"
#include "tests/support/eventually.h"

namespace shirabe::sidecar {
namespace {

// Where it is asked for seldom, a lost question is asked again soon: two of them lost would be a
// lost node.
TEST(IdleSidecar, ALostQuestionIsNotAWholeIntervalsSilence) {
  const Folder folder;
  FakeServer server;
  server.next_ms = 10'000;
  const Pod pod = PodAt(folder, ConfigOf(server.address()));
  const FakeProgram program(pod);
  const auto link = MakeServerLink(pod.config);
  ManualClock clock;
  SidecarOptions options;
  options.pod = &pod;
  options.link = link.get();
  options.clock = &clock;
  options.print = [](const std::string&) {};
  options.interval = options.urgent = absl::Milliseconds(20);
  options.patience = absl::Seconds(20);
  std::jthread thread([&](const std::stop_token& stop) { RunSidecar(options, stop); });
  program.Begin();
  program.Print("hello\n");
  EXPECT_TRUE(Eventually([&] {
    clock.Advance(absl::Milliseconds(20));
    return server.Copy("log") == "hello\n";
  }));
  server.refuse = 1;
  clock.Advance(absl::Seconds(10));
  EXPECT_TRUE(Eventually([&] { return server.refuse == 0; }));
  const int before = server.calls();
  const absl::Duration most = clock.Monotonic() + absl::Seconds(9);
  EXPECT_TRUE(Eventually([&] {
    clock.Advance(absl::Milliseconds(5));
    return server.calls() > before || clock.Monotonic() > most;
  }));
  EXPECT_EQ(server.calls(), before + 1);
}

}  // namespace
}  // namespace shirabe::sidecar
