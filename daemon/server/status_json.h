#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cache_store/store_service.h"
#include "daemon/completion/completion.h"
#include "daemon/config/config.h"
#include "daemon/config/http_state.h"
#include "daemon/config/sandbox.h"
#include "daemon/models/engine_host.h"
#include "daemon/server/project_reader.h"

namespace efimd::service {

/// One connected editor or command.
struct SessionInfo {
  std::uint64_t id = 0;
  std::string client;  ///< "Neovim 0.12.0"; empty before initialize and for commands
  std::size_t documents = 0;
  std::uint64_t requests = 0;         ///< for completions
  std::uint64_t shown = 0;            ///< items; 0 where the editor does not tell
  std::uint64_t dismissed = 0;        ///< items; 0 where the editor does not tell
  std::uint64_t accepted = 0;         ///< whole items, as the editor reports them
  std::uint64_t accepted_partly = 0;  ///< times that a part of an item was taken
  std::string focus;  ///< URI of the document with the cursor; empty if not reported
};

struct StatusParts {
  std::string version;
  int pid = 0;
  std::int64_t uptime_s = 0;
  std::optional<ModelInfo> model;
  /// The chosen file, also if it could not be opened; empty if none was found.
  std::string model_path;
  std::string model_reason;  ///< why this one
  std::string device_reason;
  std::string weights;  ///< of the CPU device, see engine::WeightsTold; empty on another
  completion::ServiceStatus service;
  std::vector<ProjectStatus> projects;      ///< whose files recall knows
  std::optional<store::StoreStatus> store;  ///< of KV on disk; nullopt: none is kept
  Config config;
  HttpState http;
  SandboxStatus sandbox;
  std::vector<SessionInfo> sessions;
};

/// The answer to efim/status, which `efimd status --json` prints as it is:
///
///   version, pid, uptimeS
///   state     {name: "loading"|"ready"|"failed", progress: 0..1, message}
///   model     {name, path, reason, architecture, parameters, fileType, windowTokens, fimOrder,
///             digest, fim: {prefix, suffix, middle, fileSeparator}}
///             path and reason at once, windowTokens with the device, the rest with the model
///   device    {kind, name, reason, stepCosts: [{tokens, ms}]}
///             only the reason until there is a device
///   http      {enabled, running, port, trouble, text}: efimd-http's serving clients; port: number or
///             null, trouble: why it does not run, text: the same for people
///   memory    {device, host, disk}: {budgetBytes, usedBytes}; 0 and 0 for a tier that is not there
///   files     [{uri, open, anchors, tokensDevice, tokensHost, tokensDisk, lastUseS, hits, misses}]
///   events    {type: {count, evaluatedMean, reusedMean, firstTokenMsP50, firstTokenMsP95}, ...}
///   sources   [{source, shown, accepted}]: suggestions by where they came from
///   recall    {projects, files, documents, textBytes, bytes, filesDropped}
///   silence   [{reason, count}], most frequent first
///   plans     [{uri, event, taken, considered: [...]}], of the last requests that asked the model,
///             newest first
///   sessions  [{id, client, documents, requests, shown, dismissed, accepted, acceptedPartly,
///             focus}]
///   config    {file, read, warnings: [{line, message}]}
///   sandbox   {calls, files, why}: what is in force (sandbox.h)
///   store     {usable, trouble, pages, writtenPages, writtenBytes, loadedPages, loadedBytes,
///             damagedPages, writeBytesPerS, loadBytesPerS, restoredTokens, savedS}
///             null if no KV is kept on disk
nlohmann::json status_json(const StatusParts& parts);
nlohmann::json store_json(const store::StoreStatus& store,
                          const completion::ServiceStatus& service);

}  // namespace efimd::service
