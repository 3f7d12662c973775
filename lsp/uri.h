#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd::lsp {

/// The scheme in lower case ("file", "untitled", "vscode-notebook-cell"); empty when `uri` has
/// none.
std::string scheme_of(std::string_view uri);

/// The path that a file: URI names, percent-decoded:
///
///   file:///home/a%20b.c          /home/a b.c
///   file:///c%3A/src/x.cpp        c:/src/x.cpp       (also file:///C:/...)
///   file://server/share/x.cpp     //server/share/x.cpp
///
/// kUnsupported for other schemes; kBadInput for a relative path, a broken %-escape or an encoded
/// NUL.
Result<std::string> path_of(std::string_view uri);

/// The path that a text goes by: its file's. For a part of a file, whose fragment is an ending, the
/// file's with that ending: "/a.ipynb.py" of "file:///a.ipynb#.py". So it tells the text's language.
Result<std::string> text_path_of(std::string_view uri);
inline constexpr std::size_t kPartEndingBytesMax = 16;  ///< without its dot

/// The file: URI of an absolute path, with everything encoded that VS Code encodes. Also takes
/// "c:/..." and "c:\...".
std::string file_uri(std::string_view path);

/// The path's last part, for prompts and file-type questions: "x.cpp"; of "untitled:Untitled-1",
/// "Untitled-1".
std::string base_name(std::string_view uri);

/// The path of a file: URI, else the decoded URI; for people. Control characters are shown as "?",
/// so that a name cannot write to a terminal.
std::string display(std::string_view uri);

}  // namespace efimd::lsp
