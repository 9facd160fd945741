#include "trial/local/exit_watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace shirabe::trial {
namespace {

constexpr uint64_t kStopId = ~uint64_t{0};
constexpr int kBatch = 128;

Status Add(const Fd& epoll, const Fd& fd, uint64_t id) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = id;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot watch a process", errno);
}

}  // namespace

StatusOr<std::unique_ptr<ExitWatcher>> ExitWatcher::Create(OnExits on_exits) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus("cannot create an epoll descriptor", errno);
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return ErrnoStatus("cannot create an eventfd", errno);
  RETURN_IF_ERROR(Add(epoll, stop, kStopId));
  return std::make_unique<ExitWatcher>(std::move(epoll), std::move(stop), std::move(on_exits));
}

ExitWatcher::ExitWatcher(Fd epoll, Fd stop, OnExits on_exits)
    : epoll_(std::move(epoll)), stop_(std::move(stop)), on_exits_(std::move(on_exits)) {
  thread_ = std::thread([this] { Run(); });
}

ExitWatcher::~ExitWatcher() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

Status ExitWatcher::Watch(const Fd& pidfd, uint64_t id) { return Add(epoll_, pidfd, id); }

void ExitWatcher::Run() {
  epoll_event events[kBatch];
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events, kBatch, -1);
    if (count < 0 && errno == EINTR) continue;
    CHECK(count > 0);
    std::vector<uint64_t> ids;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kStopId) return;
      ids.push_back(uint64_t{events[i].data.u64});  // a copy: the kernel packs its events
    }
    on_exits_(ids);
  }
}

}  // namespace shirabe::trial
