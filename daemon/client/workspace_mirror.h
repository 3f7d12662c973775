#pragma once

#include <string>
#include <vector>

#include "lsp/json_rpc.h"

namespace efimd::service {

/// The editor's settings and workspace folders, which the bridge keeps to tell them to a new daemon.
///
/// Thread: its owner's. Follows the daemon's own rules, and ignores what the daemon refuses.
/// Limits: kSettingsMax members of `efim`, lsp::kWorkspaceFoldersMax folders; more are ignored.
class WorkspaceMirror {
 public:
  static constexpr std::size_t kSettingsMax = 64;

  /// Starts over with the params of an initialize, which each new daemon gets as they are.
  void begin(const lsp::Json& params);
  /// Notes a workspace/didChangeConfiguration or didChangeWorkspaceFolders; ignores every other
  /// method.
  void note(const std::string& method, const lsp::Json& params);
  /// The bodies of at most one notification each: what changed since initialize.
  std::vector<std::string> changes() const;

 private:
  void change_settings(const lsp::Json& params);
  void change_folders(const lsp::Json& params);

  lsp::Json settings_ = lsp::Json::object();  ///< of `efim`; later ones may set fewer members
  std::vector<std::string> first_;            ///< URIs of folders, as initialize has them
  std::vector<std::string> folders_;          ///< as they are now
  bool folders_changed_ = false;
};

}  // namespace efimd::service
