/* The first process of every pod: holds the pod's namespaces open, reaps what is left to it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void Reap(int signal) {
  (void)signal;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

static void End(int signal) { _exit(128 + signal); }

int main(void) {
  signal(SIGCHLD, Reap);
  signal(SIGTERM, End);
  for (;;) pause();
}
