#include "daemon/context/conventions.h"

#include <algorithm>

namespace efimd::context {

namespace {

/// sys.stdlib_module_names of Python 3.11 but for what is meant for the library itself.
constexpr std::string_view kPythonModules =
    " abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii "
    "bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop "
    "collections colorsys compileall concurrent configparser contextlib contextvars copy "
    "copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils "
    "doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch "
    "fractions ftplib functools gc getopt getpass gettext glob graphlib grp gzip hashlib heapq "
    "hmac html http imaplib imghdr imp importlib inspect io ipaddress itertools json keyword "
    "linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder "
    "msilib msvcrt multiprocessing netrc nis nntplib numbers operator optparse os ossaudiodev "
    "pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix pprint profile "
    "pstats pty pwd py_compile pyclbr pydoc queue quopri random re readline reprlib resource "
    "rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd "
    "smtplib sndhdr socket socketserver spwd sqlite3 ssl stat statistics string stringprep "
    "struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile "
    "termios textwrap threading time timeit tkinter token tokenize tomllib trace traceback "
    "tracemalloc tty turtle types typing unicodedata unittest urllib uu uuid venv warnings wave "
    "weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib "
    "zoneinfo ";

}  // namespace

std::string tested_folder(std::string_view folder) {
  constexpr std::string_view kSources = "/src/", kLanguage = "/java", kMain = "main";
  for (std::size_t at = folder.find(kSources); at != std::string_view::npos;
       at = folder.find(kSources, at + 1)) {
    const std::size_t set = at + kSources.size();
    const std::size_t end = std::min(folder.find('/', set), folder.size());
    const std::string_view rest = folder.substr(end);
    const bool is_java = rest.starts_with(kLanguage) &&
                         (rest.size() == kLanguage.size() || rest[kLanguage.size()] == '/');
    if (!is_java) continue;
    if (folder.substr(set, end - set) == kMain) return {};
    return std::string(folder.substr(0, set)).append(kMain).append(rest);
  }
  return {};
}

bool is_standard_in_python(std::string_view module) {
  return kPythonModules.find(std::string(" ").append(module).append(" ")) != std::string_view::npos;
}

}  // namespace efimd::context
