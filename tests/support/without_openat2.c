// without_openat2 PROGRAM [ARGUMENT]…: runs a program for which openat2 does not exist, as under an
// old kernel or a strict filter of a container. Tests start shirabe through it when
// SHIRABE_TEST_NO_OPENAT2 is set (tests/integration/cli.h); what it starts is filtered as well.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof code / sizeof code[0], code};
  if (argc < 2) {
    fprintf(stderr, "usage: without_openat2 PROGRAM [ARGUMENT]...\n");
    return 2;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    perror("without_openat2: cannot refuse openat2");
    return 125;
  }
  execv(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
