#include <fcntl.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/limits.h"
#include "base/wipe.h"
#include "daemon/cli/commands/commands.h"
#include "daemon/cli/http.h"
#include "daemon/cli/setup/setup.h"
#include "daemon/config/printable.h"
#include "daemon/config/program.h"

namespace efimd::service {

namespace {

/// Gives closed standard streams to /dev/null: else the next descriptor, a socket perhaps, becomes stdout.
void open_standard_streams() {
  int fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::dup(fd);
  if (fd >= 0) ::close(fd);
}

int run(const CommandLine& line) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  switch (line.command) {
    using Command = CommandLine::Command;
    case Command::kLsp:
      return run_lsp(*paths);
    case Command::kServe:
      return run_serve(*paths, line.serve);
    case Command::kStatus:
      return line.watch ? run_status_watch(*paths, line) : run_status(*paths, line);
    case Command::kComplete:
      return run_complete(*paths, line);
    case Command::kModelList:
      return run_model_list(*paths, line);
    case Command::kModelInfo:
      return run_model_info(*paths, line);
    case Command::kCache:
      return run_cache(*paths, line);
    case Command::kModelUse:
      return run_model_use(*paths, line);
    case Command::kModelGet:
      return run_model_get(line);
    case Command::kModelRecommend:
      return run_model_recommend(*paths, line);
    case Command::kDoctor:
      return run_doctor(*paths, line);
    case Command::kAutostart:
      return run_autostart(*paths, line.autostart);
    case Command::kHttp:
      return run_http(*paths, line.http);
    case Command::kSetup:
      return run_setup(*paths, line.setup);
    case Command::kStop:
      return run_stop(*paths);
  }
  return 2;
}

int run_command_line(std::vector<std::string> arguments) {
  const auto line = parse_command_line(std::move(arguments));
  if (line) return run(*line);
  const NothingToRun& nothing = line.error();
  // An error quotes the word that it is about.
  const std::string text = nothing.code == 0 ? nothing.text : printable(nothing.text);
  std::fputs(text.c_str(), nothing.code == 0 ? stdout : stderr);
  return nothing.code;
}

/// The exit code of a command that ended with `code`.
int flushed(int code) {
  if (!output_was_lost()) return code;
  const int lost = failed({Fault::kIo, kOutputLost, kRemedyForOutputLost});
  return code == 0 ? lost : code;
}

}  // namespace

}  // namespace efimd::service

// Sanitizers pair their own new with their own delete.
#if defined(__GLIBC__) && !defined(EFIMD_SANITIZED)

// Whatever holds the user's text or its KV is overwritten when it is freed: what was purged or closed is
// in no part of the heap that waits for reuse. It costs less than writing those bytes did.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // g++ 12 sees free() in these alone

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  efimd::wipe({static_cast<std::byte*>(memory), ::malloc_usable_size(memory)});
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { ::operator delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { ::operator delete(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  ::operator delete(memory);
}

#pragma GCC diagnostic pop
#endif

int main(int argc, char** argv) {
  efimd::service::open_standard_streams();
  // An end that goes away is an error of the write to it, not the process's death.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files, too
  efimd::service::settle_home();
  try {
    return efimd::service::flushed(efimd::service::run_command_line({argv + 1, argv + argc}));
  } catch (const std::bad_alloc&) {
    return efimd::service::failed(
        {efimd::Fault::kNoMemory, "no memory", efimd::remedy_for_no_memory()});
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return efimd::service::flushed(0);  // fmt::print throws
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    return efimd::service::failed({efimd::Fault::kIo,
                                   no_thread ? "the system gives no thread" : error.what(),
                                   no_thread ? efimd::remedy_for_no_thread() : ""});
  } catch (const std::exception& error) {
    return efimd::service::failed({efimd::Fault::kIo, error.what(), ""});
  }
}
