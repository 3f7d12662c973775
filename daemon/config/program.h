#pragma once

namespace efimd::service {

/// Text that is typed, keys and tokens pass through this process. They must not come to the disk as a
/// core, and other programs of the user need not read them. LeakSanitizer has to read its own process.
void keep_memory_private();

/// main() of a program that handles the user's text. Its memory and its files are for the user alone.
/// A closed pipe and a limit on files are errors of the write. What is thrown is said on stderr.
int run_program(const char* name, int (*run)(int argc, char** argv), int argc, char** argv);

}  // namespace efimd::service
