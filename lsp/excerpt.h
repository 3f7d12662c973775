#pragma once

#include <string>
#include <string_view>

namespace efimd::lsp {

/// Foreign bytes as an error shows them: in quotes, cut after 64 bytes, all but printable ASCII as
/// \xNN.
std::string excerpt(std::string_view bytes);

}  // namespace efimd::lsp
