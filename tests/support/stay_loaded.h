/* efimd gives its daemon no LD_PRELOAD. A library that includes this stays loaded in what its program starts. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int (*stay_loaded_execve)(const char*, char* const[], char* const[]);
static char stay_loaded_entry[4096 + 16];

/* Here, because execve is called between fork and exec, where no lock may be taken. */
__attribute__((constructor)) static void stay_loaded_prepare(void) {
  *(void**)&stay_loaded_execve = dlsym(RTLD_NEXT, "execve");
  const char* const libraries = getenv("LD_PRELOAD");
  if (libraries != NULL)
    snprintf(stay_loaded_entry, sizeof stay_loaded_entry, "LD_PRELOAD=%s", libraries);
}

int execve(const char* file, char* const arguments[], char* const environment[]) {
  static char* entries[1024];
  size_t count = 0;
  if (environment == NULL) return stay_loaded_execve(file, arguments, environment);
  for (; environment[count] != NULL && count + 2 < sizeof entries / sizeof *entries; ++count)
    entries[count] = environment[count];
  entries[count] = stay_loaded_entry;
  entries[count + 1] = NULL;
  return stay_loaded_execve(file, arguments, entries);
}
