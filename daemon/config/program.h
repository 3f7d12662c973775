#pragma once

namespace efimd::service {

/// Text that is typed, keys and tokens pass through this process. They must not come to the disk as a
/// core, and other programs of the user need not read them. LeakSanitizer has to read its own process.
void keep_memory_private();

/// Sets $HOME if it is no absolute path, as cron and service managers may leave it: to what the system's
/// list of users says. To be called before other threads run.
void settle_home();

/// Flushes stdout, and says whether something that was printed did not reach it. A reader that left
/// early, such as head, lost nothing that it wanted.
bool output_was_lost();
inline constexpr char kOutputLost[] = "the output cannot be written";
inline constexpr char kRemedyForOutputLost[] = "make room where it goes, or send it elsewhere";

/// main() of a program that handles the user's text. Its memory and its files are for the user alone.
/// A closed pipe and a limit on files are errors of the write. What is thrown is said on stderr, and
/// that output was lost; then it returns 1.
int run_program(const char* name, int (*run)(int argc, char** argv), int argc, char** argv);

}  // namespace efimd::service
