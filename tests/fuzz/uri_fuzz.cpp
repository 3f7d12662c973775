// A path comes back from its URI; a URI in any spelling is the file that it names, and no folder of secrets is missed by it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/files/file_identity.h"
#include "daemon/files/secrets.h"
#include "lsp/uri.h"

using namespace efimd;
using namespace efimd::service;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(lsp::base_name(text));
  for (const char c : lsp::display(text))
    if (static_cast<unsigned char>(c) < 0x20) std::abort();
  if (!FileIdentity(text, nullptr).holds(FileIdentity(text, nullptr))) std::abort();
  const auto path = lsp::path_of(text);
  if (!path) return 0;
  static_cast<void>(secret_by_name(*path));
  static_cast<void>(secret_by_content(text));
  if (secret_by_name(*path + "/.ssh/id").empty()) std::abort();
  const std::string uri = lsp::file_uri(*path);
  const auto again = lsp::path_of(uri);
  if (!again || lsp::file_uri(*again) != uri) std::abort();
  return 0;
}
