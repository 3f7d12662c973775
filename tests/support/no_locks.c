// Loaded before a program (LD_PRELOAD), it makes the folder `kv` one of a file system without
// locks, as a home on a network may be.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "stay_loaded.h"

static int without_locks(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, "/kv/") != NULL;
}

int flock(int fd, int operation) {
  static int (*next)(int, int);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "flock");
  if (!without_locks(fd)) return next(fd, operation);
  errno = ENOLCK;
  return -1;
}

static int pass_on(const char* name, int fd, int command, void* argument) {
  int (*next)(int, int, ...);
  *(void**)&next = dlsym(RTLD_NEXT, name);
  if ((command != F_SETLK && command != F_SETLKW && command != F_GETLK) || !without_locks(fd))
    return next(fd, command, argument);
  errno = ENOLCK;
  return -1;
}

int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return pass_on("fcntl", fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return pass_on("fcntl64", fd, command, argument);
}
