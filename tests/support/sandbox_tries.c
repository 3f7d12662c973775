/* Preloaded into a daemon. When its io thread begins to wait, it tries what the sandbox must refuse, as code that took the
   daemon over would, and writes "NAME ERRNO" lines to $EFIMD_TRIES (0: it was done). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stay_loaded.h"

static int try_open(const char *name, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", getenv("HOME"), name);
  const int file = open(path, flags, 0600);
  if (file < 0) return errno;
  close(file);
  return 0;
}

static int try_socket(int family, int type) {
  const int made = socket(family, type, 0);
  if (made < 0) return errno;
  close(made);
  return 0;
}

static int try_exec(void) {
  const pid_t child = vfork();
  if (child == 0) {
    char *const arguments[] = {"/bin/true", NULL};
    execve(arguments[0], arguments, NULL);
    _exit(errno);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* 0: the kernel was asked, and says that no such process is traced. */
static int try_ptrace(void) {
  errno = 0;
  ptrace(PTRACE_PEEKDATA, getpid(), NULL, NULL);
  return errno == ESRCH ? 0 : errno;
}

static void try_all(const char *file) {
  char text[1024];
  const int written = snprintf(
      text, sizeof text,
      "execve %d\ninet %d\ninet6 %d\nnetlink %d\nio_uring %d\nptrace %d\nssh %d\nhome %d\nplant %d\nlocal %d\n",
      try_exec(), try_socket(AF_INET, SOCK_STREAM), try_socket(AF_INET6, SOCK_DGRAM),
      try_socket(AF_NETLINK, SOCK_RAW), syscall(SYS_io_uring_setup, 1, NULL) < 0 ? errno : 0,
      try_ptrace(), try_open(".ssh/id_ed25519", O_RDONLY),
      try_open("notes.txt", O_RDONLY), try_open(".bashrc", O_WRONLY | O_CREAT),
      try_socket(AF_UNIX, SOCK_STREAM));
  const int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out < 0 || write(out, text, (size_t)written) != written) abort();
  close(out);
}

int epoll_wait(int descriptor, struct epoll_event *events, int most, int timeout) {
  static int tried;
  static int (*real)(int, struct epoll_event *, int, int);
  if (real == NULL) real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
  const char *const file = getenv("EFIMD_TRIES");
  if (!tried && file != NULL) {
    tried = 1;
    try_all(file);
  }
  return real(descriptor, events, most, timeout);
}
