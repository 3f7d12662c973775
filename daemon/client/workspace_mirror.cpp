#include "daemon/client/workspace_mirror.h"

#include <filesystem>

#include "lsp/protocol.h"
#include "lsp/uri.h"

namespace efimd::service {

using lsp::Json;

namespace {

/// As the session does: two spellings of a folder are one; empty if it is none on this machine.
std::filesystem::path folder_named(const std::string& uri) {
  const auto path = lsp::path_of(uri);
  if (!path) return {};
  const auto folder = std::filesystem::path(*path).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

void add_folders(std::vector<std::string>& folders, const std::vector<std::string>& uris) {
  for (const std::string& uri : uris)
    if (folders.size() < lsp::kWorkspaceFoldersMax && !folder_named(uri).empty())
      folders.push_back(uri);
}

Json named(const std::vector<std::string>& uris) {
  Json list = Json::array();
  for (const std::string& uri : uris) list.push_back({{"uri", uri}, {"name", lsp::base_name(uri)}});
  return list;
}

}  // namespace

void WorkspaceMirror::begin(const Json& params) {
  *this = {};
  const auto greeting = lsp::params_of<lsp::InitializeParams>(params);
  if (!greeting) return;
  add_folders(first_, greeting->workspaceFolders);
  if (first_.empty() && greeting->rootUri) add_folders(first_, {*greeting->rootUri});
  folders_ = first_;
}

void WorkspaceMirror::note(const std::string& method, const Json& params) {
  if (method == "workspace/didChangeConfiguration") {
    change_settings(params);
  } else if (method == "workspace/didChangeWorkspaceFolders") {
    change_folders(params);
  }
}

void WorkspaceMirror::change_settings(const Json& params) {
  if (!lsp::params_of<lsp::DidChangeConfigurationParams>(params)) return;
  const Json efim = params.value(Json::json_pointer("/settings/efim"), Json());
  if (!efim.is_object()) return;
  for (const auto& [key, value] : efim.items())
    if (!value.is_null() && (settings_.size() < kSettingsMax || settings_.contains(key)))
      settings_[key] = value;
}

void WorkspaceMirror::change_folders(const Json& params) {
  const auto change = lsp::params_of<lsp::DidChangeWorkspaceFoldersParams>(params);
  if (!change) return;
  for (const std::string& uri : change->removed)
    std::erase_if(folders_, [left = folder_named(uri)](const std::string& each) {
      return folder_named(each) == left;
    });
  add_folders(folders_, change->added);
  folders_changed_ = true;
}

std::vector<std::string> WorkspaceMirror::changes() const {
  std::vector<std::string> bodies;
  if (!settings_.empty())
    bodies.push_back(lsp::notification_body("workspace/didChangeConfiguration",
                                            {{"settings", {{"efim", settings_}}}}));
  // All anew: so they have the order that the daemon before had.
  if (folders_changed_)
    bodies.push_back(lsp::notification_body(
        "workspace/didChangeWorkspaceFolders",
        {{"event", {{"added", named(folders_)}, {"removed", named(first_)}}}}));
  return bodies;
}

}  // namespace efimd::service
