#include "sidecar/program.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/file.h"
#include "base/timestamp.h"
#include "trial/records.h"

namespace shirabe::sidecar {
namespace {

v1::ProgramExit ToProto(const trial::ExitRecord& record) {
  v1::ProgramExit exit;
  exit.set_code(record.code);
  exit.set_signal(record.signal);
  exit.set_out_of_memory(record.oom);
  exit.set_told(record.told);
  *exit.mutable_began() = shirabe::ToProto(record.began);
  *exit.mutable_ended() = shirabe::ToProto(record.ended);
  if (record.ran) *exit.mutable_ran() = shirabe::ToProto(*record.ran);
  exit.set_message(record.message);
  return exit;
}

// The supervisor holds the lock for as long as it lives. Where locks do not work it is taken to
// live, and the platform's word of the container's end has to do.
bool IsAlive(const Pod& pod) {
  const auto fd = OpenBeneath("", pod.run("alive"));
  return !fd.ok() || flock(fd->get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace

Program LookAtProgram(const Pod& pod) {
  Program program;
  program.started = access(pod.run("pid").c_str(), F_OK) == 0;
  if (!program.started) return program;
  // In this order: who is seen to be gone has written its record before.
  const bool alive = IsAlive(pod);
  const auto record = trial::ReadExitRecord(pod.paths.dir);
  program.ended = record.ok() || !alive;
  if (record.ok()) program.exit = ToProto(*record);
  return program;
}

}  // namespace shirabe::sidecar
