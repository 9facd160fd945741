#include "trial/supervisor/init_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// What is left to read; `at` is NULL once something was not as it should be.
struct Reader {
  char* at;
  char* end;
};

static char* next_text(struct Reader* reader) {
  char* const text = reader->at;
  char* const end = text == NULL ? NULL : memchr(text, '\0', (size_t)(reader->end - text));
  reader->at = end == NULL ? NULL : end + 1;
  return end == NULL ? NULL : text;
}

// A number of texts and so many texts, as execve wants them; NULL if they are not there.
static char** next_list(struct Reader* reader) {
  const char* const number = next_text(reader);
  const long count = number == NULL ? -1 : strtol(number, NULL, 10);
  if (count < 0 || count > reader->end - reader->at) return NULL;
  char** const list = calloc((size_t)count + 1, sizeof *list);
  for (long i = 0; list != NULL && i < count; ++i) list[i] = next_text(reader);
  return reader->at == NULL ? NULL : list;
}

static int next_step(struct Reader* reader, struct Command* step) {
  step->name = next_text(reader);
  step->cwd = next_text(reader);
  if (step->cwd == NULL) return EINVAL;
  if (*step->cwd == '\0') step->cwd = NULL;
  step->argv = next_list(reader);
  step->env = step->argv == NULL ? NULL : next_list(reader);
  return step->env == NULL || step->argv[0] == NULL ? EINVAL : 0;
}

int read_steps(int fd, struct Steps* steps) {
  struct stat info;
  memset(steps, 0, sizeof *steps);
  if (fd < 0) return 0;
  if (fstat(fd, &info) != 0) return errno;
  char* const text = malloc((size_t)info.st_size + 1);
  if (text == NULL) return ENOMEM;
  const ssize_t size = pread(fd, text, (size_t)info.st_size, 0);
  close(fd);
  if (size != info.st_size) return EIO;
  struct Reader reader = {text, text + size};
  while (reader.at < reader.end) {
    const size_t room = (size_t)(steps->count + 1) * sizeof *steps->commands;
    struct Command* const more = realloc(steps->commands, room);
    if (more == NULL) return ENOMEM;
    steps->commands = more;
    memset(&more[steps->count], 0, sizeof *more);
    const int error = next_step(&reader, &more[steps->count]);
    if (error != 0) return error;
    ++steps->count;
  }
  return 0;
}
