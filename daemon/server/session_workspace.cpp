// The part of Session that deals with what a client says of its settings, and of files and folders
// around its documents: recall follows them.
#include <spdlog/logger.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "daemon/files/exclusions.h"
#include "daemon/files/project_files.h"
#include "daemon/server/session.h"
#include "lsp/uri.h"

namespace efimd::service {

namespace {

completion::StopRule stop_rule_of(lsp::EfimStop stop) {
  switch (stop) {
    case lsp::EfimStop::kNone:
      return completion::StopRule::kNone;
    case lsp::EfimStop::kLine:
      return completion::StopRule::kLine;
    case lsp::EfimStop::kBlock:
      return completion::StopRule::kBlock;
  }
  return completion::StopRule::kBlock;
}

/// A workspace folder's path, without a slash at its end; nullopt for what is no folder on this machine.
std::optional<std::filesystem::path> folder_of(const std::string& uri) {
  const auto path = lsp::path_of(uri);
  if (!path) return std::nullopt;
  std::filesystem::path folder = std::filesystem::path(*path).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

}  // namespace

void Session::did_change_configuration(const lsp::Message& message) {
  const auto params = lsp::params_of<lsp::DidChangeConfigurationParams>(message.params);
  if (params) return take_options(params->efim);
  refuse_params(message, params.error());
  show(lsp::MessageType::kWarning,
       "efimd ignores these settings: " + params.error().message() + ".");
}

void Session::take_options(const lsp::EfimOptions& options) {
  if (options.receipts) receipts_ = *options.receipts;
  if (options.state) states_ = *options.state;
  if (options.maxTokens) options_.tokens_max = *options.maxTokens;
  if (options.stop) options_.stop = stop_rule_of(*options.stop);
  if (options.temperature) options_.temperature = static_cast<float>(*options.temperature);
  if (!options.unknown.empty())
    host_.log().warn("session {}: ignored {} unknown options below efim", id_,
                     options.unknown.size());
}

void Session::add_folder(const std::string& uri) {
  const auto folder = folder_of(uri);
  if (folder && folders_.size() < lsp::kWorkspaceFoldersMax) folders_.push_back(*folder);
}

completion::TextHome Session::home_of(const FileFacts& facts) const {
  completion::TextHome home = facts.home;
  if (!host_.config().completion.recall) return {};
  if (const auto folder = workspace_folder_of(home.path, folders_)) {
    home.project = folder->string();
    home.in_workspace = true;
  }
  return home;
}

void Session::did_change_workspace_folders(const lsp::Message& message) {
  const auto params = params_of<lsp::DidChangeWorkspaceFoldersParams>(message);
  if (!params) return;
  std::vector<std::string> left;
  for (const std::string& uri : params->removed)
    if (const auto folder = folder_of(uri); folder && std::erase(folders_, *folder) > 0)
      left.push_back(folder->string());
  for (const std::string& uri : params->added) add_folder(uri);
  for (const std::string& folder : left) leave_folder(folder);
  if (!params->added.empty()) enter_folders();
}

void Session::move(const std::string& uri, OpenDocument& open, const completion::TextHome& home) {
  if (open.exclusion.reason == Exclusions::Reason::kSecret || home.project == open.home.project)
    return;
  const completion::TextHome before = std::exchange(open.home, home);
  if (!before.path.empty()) {
    host_.forget_text(before);
    host_.file_changed(before.path);  // another editor's folder has its file still
  }
  if (home.path.empty()) return;
  if (open.unusable.empty()) host_.revise_document({id_, uri}, home, open.document.snapshot());
  if (home.project != home.path) host_.look_at_project(home);
}

void Session::leave_folder(const std::string& folder) {
  for (const auto& [uri, open] : documents_) {
    if (open.home.project != folder) continue;
    // Called while this session lives, and again where a file system answers late.
    host_.judge({id_, uri}, [self = weak_from_this(), uri = uri, opening = open.opening,
                             folder](const FileFacts& facts) {
      const auto session = self.lock();
      if (!session) return;
      const auto found = session->documents_.find(uri);
      if (found != session->documents_.end() && found->second.opening == opening)
        session->move(uri, found->second, session->home_of(facts));
      session->host_.leave_project(folder);
    });
  }
  host_.leave_project(folder);
}

void Session::enter_folders() {
  for (auto& [uri, open] : documents_) {
    // A folder holds a file by its name alone: no file system is asked.
    const auto folder = workspace_folder_of(open.home.path, folders_);
    if (!open.home.path.empty() && folder)
      move(uri, open, {folder->string(), open.home.path, /*in_workspace=*/true});
  }
}

bool Session::is_in(const std::string& project) const {
  return std::ranges::find(folders_, std::filesystem::path(project)) != folders_.end() ||
         std::ranges::any_of(documents_, [&](const auto& document) {
           return document.second.home.project == project;
         });
}

void Session::look_again(const completion::TextHome& home) {
  const auto now = std::chrono::steady_clock::now();
  if (registers_watchers_ || home.project == home.path || now - looked_ < kLookAgain) return;
  looked_ = now;
  host_.look_at_project(home);
}

void Session::did_change_watched_files(const lsp::Message& message) {
  const auto params = params_of<lsp::DidChangeWatchedFilesParams>(message);
  if (!params) return;
  bool ignoring = params->more;
  for (const std::string& uri : params->uris) {
    const auto path = lsp::path_of(uri);
    if (!path) continue;
    ignoring |= says_what_is_ignored(*path);
    if (!params->more) host_.file_changed(*path);
  }
  if (params->more) host_.file_changed({});
  if (ignoring) judge_documents_again();
}

void Session::judge_documents_again() {
  for (const auto& [uri, open] : documents_) {
    if (open.home.path.empty() && open.exclusion.reason != Exclusions::Reason::kGitignore) continue;
    host_.judge({id_, uri}, [self = weak_from_this(), uri = uri,
                             opening = open.opening](const FileFacts& facts) {
      const auto session = self.lock();
      if (!session) return;
      const auto found = session->documents_.find(uri);
      if (found == session->documents_.end() || found->second.opening != opening) return;
      const bool was_ignored = found->second.exclusion.reason == Exclusions::Reason::kGitignore;
      if (!facts.home.path.empty()) {
        if (!was_ignored) return;
        found->second.exclusion = facts.exclusion;
        return session->move(uri, found->second, session->home_of(facts));
      }
      found->second.exclusion = facts.exclusion;
      const completion::TextHome before = std::exchange(found->second.home, {});
      if (!before.path.empty()) session->host_.forget_text(before);
    });
  }
}

}  // namespace efimd::service
