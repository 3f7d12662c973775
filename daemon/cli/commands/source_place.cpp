#include "daemon/cli/commands/source_place.h"

#include <fmt/format.h>

#include <system_error>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "daemon/text/document.h"
#include "lsp/uri.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

std::size_t characters_in(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t byte = 0; byte < text.size(); ++count)
    byte += static_cast<std::size_t>(utf8::decode(text, byte).length);
  return count;
}

}  // namespace

Result<std::string> read_text(const fs::path& file) {
  const auto mapped = MappedFile::open(file);
  if (!mapped) return tl::unexpected(mapped.error());
  const std::string_view text(reinterpret_cast<const char*>(mapped->bytes().data()),
                              mapped->bytes().size());
  if (text.size() > text::kDocumentBytesMax)
    return fail(Fault::kBadInput, fmt::format("{}: larger than {} MiB", file.string(),
                                              text::kDocumentBytesMax >> 20));
  if (const std::size_t valid = utf8::valid_prefix(text); valid < text.size())
    return fail(Fault::kBadInput, fmt::format("{}: not UTF-8 at byte {}", file.string(), valid),
                "convert the file to UTF-8");
  return std::string(text);
}

Result<SourcePlace> read_source(const Place& place) {
  auto text = read_text(place.file);
  if (!text) return tl::unexpected(text.error());
  std::error_code error;
  const fs::path absolute = fs::absolute(place.file, error).lexically_normal();
  if (error) return fail(Fault::kIo, place.file.string() + ": " + error.message());
  const text::LineIndex lines(*text);
  if (place.line > lines.line_count())
    return fail(Fault::kBadInput, fmt::format("{}: there is no line {}, the last is {}",
                                              place.file.string(), place.line, lines.line_count()));
  const std::size_t begin = lines.start(place.line - 1);
  const std::size_t characters = characters_in(
      std::string_view(*text).substr(begin, lines.content_end(*text, place.line - 1) - begin));
  if (place.column > characters + 1)
    return fail(Fault::kBadInput,
                fmt::format("{}:{}: there is no column {}, the line ends at {}",
                            place.file.string(), place.line, place.column, characters + 1));
  return SourcePlace{lsp::file_uri(absolute.string()), std::move(*text), place.line - 1,
                     place.column - 1};
}

}  // namespace efimd::service
