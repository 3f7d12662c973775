#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/completion/request.h"
#include "lsp/json_rpc.h"

namespace efimd::service {

/// An answered request, as its receipt names it.
struct Answered {
  const lsp::Id& request;
  const std::string& uri;
  std::optional<std::int32_t> version;
  const completion::Receipt& receipt;
  std::string not_stored = {};
};

/// One member of efim/receipt. receipt_members() is the only list of them: the notification and its
/// table in docs/protocol.md are made from it.
///
/// Thread: any; constants.
struct ReceiptMember {
  std::string_view name;
  std::string_view type;
  std::string_view meaning;
  /// nullopt: the member is left out.
  std::optional<lsp::Json> (*value)(const Answered&);
};
std::span<const ReceiptMember> receipt_members();

/// The params of efim/receipt.
lsp::Json receipt_json(const Answered& answered);
/// receipt_members() as the table of docs/protocol.md.
std::string receipt_table();
/// The values of the member `source`, as a table.
std::string source_table();

}  // namespace efimd::service
