#include "daemon/server/status_json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/json_of.h"

using namespace efimd;
using Json = nlohmann::json;

namespace {

service::StatusParts ready_parts() {
  service::StatusParts parts;
  parts.version = "1.2.3";
  parts.pid = 42;
  parts.uptime_s = 7;
  parts.model = service::ModelInfo{
      "m", "/m.gguf", "llama", 8000000, "F16", "psm", "00ff", {"<P>", "<S>", "<M>", ""}, "", ""};
  parts.model_reason = "config.toml";
  parts.device_reason = "configured";
  parts.weights = "panels of 525 MB";
  parts.service.state = completion::EngineState::kReady;
  parts.service.load_progress = 1;
  parts.service.device_kind = "cpu";
  parts.service.device_name = "a processor";
  parts.service.window_tokens = 1024;
  parts.service.step_costs = {{1, 30.0}, {4, 33.5}};
  parts.service.plans.push_back({"file:///a", "type", "full, kept", {"full, new"}});
  parts.service.kv = {1000, 10};
  parts.service.files.push_back({"file:///a", true, 1, 50, 2.5, 3, 1});
  parts.service.events["type"] = {4, 1.5, 90.0, 20.0, 30.0};
  parts.service.silence = {{"rare", 1}, {"often", 9}};
  parts.service.sources["recalled"] = {7, 3};
  parts.service.recall = {1, 20, 2, 3000, 7000, 0};
  parts.service.taste["py"] = {4, 3, 2, 1, 0.5};
  parts.projects.push_back({"/p", 20, 3000, false, false, ""});
  parts.sessions.push_back({1, "Neovim 0.12", 2, 30, 9, 2, 4, 5, "file:///a"});
  parts.config.file = "/c.toml";
  parts.config.warnings.push_back({3, "unknown key x; it is ignored"});
  parts.config.http.enable = true;
  parts.http.trouble = "port 8012 cannot be used";
  parts.sandbox = {true, false, "an old kernel"};
  return parts;
}

}  // namespace

TEST_CASE("the status has the shape of the design, and config, sessions and state") {
  const Json expected = test::json_of(R"({
    "version": "1.2.3", "pid": 42, "uptimeS": 7,
    "state": {"name": "ready", "progress": 1.0, "message": ""},
    "store": null,
    "reuse": {"reusedTokens": 360, "evaluatedTokens": 6, "hitRate": 0.9836065573770492},
    "model": {"name": "m", "path": "/m.gguf", "reason": "config.toml", "architecture": "llama",
              "parameters": 8000000, "fileType": "F16", "windowTokens": 1024, "fimOrder": "psm",
              "digest": "00ff",
              "fim": {"prefix": "<P>", "suffix": "<S>", "middle": "<M>", "fileSeparator": ""}},
    "device": {"kind": "cpu", "name": "a processor", "reason": "configured", "weights": "panels of 525 MB",
               "stepCosts": [{"tokens": 1, "ms": 30.0}, {"tokens": 4, "ms": 33.5}]},
    "elsewhere": null,
    "http": {"enabled": true, "running": false, "port": null, "trouble": "port 8012 cannot be used",
             "text": "not running: port 8012 cannot be used"},
    "memory": {"device": {"budgetBytes": 1000, "usedBytes": 10},
               "host": {"budgetBytes": 0, "usedBytes": 0, "isDevice": true},
               "disk": {"budgetBytes": 0, "usedBytes": 0}},
    "files": [{"uri": "file:///a", "open": true, "anchors": 1, "tokensDevice": 50,
               "tokensHost": 0, "tokensDisk": 0, "lastUseS": 2.5, "hits": 3, "misses": 1}],
    "events": {"type": {"count": 4, "evaluatedMean": 1.5, "reusedMean": 90.0,
                        "firstTokenMsP50": 20.0, "firstTokenMsP95": 30.0}},
    "silence": [{"reason": "often", "count": 9}, {"reason": "rare", "count": 1}],
    "sources": [{"source": "recalled", "shown": 7, "accepted": 3}],
    "recall": {"projects": 1, "files": 20, "documents": 2, "textBytes": 3000, "bytes": 7000,
               "filesDropped": 0,
               "folders": [{"project": "/p", "files": 20, "bytes": 3000, "reading": false, "stalled": false, "leftOut": ""}]},
    "taste": {"languages": [{"language": "py", "accepted": 4.0, "typedThrough": 3.0, "ignored": 2.0,
                             "rejected": 1.0, "shift": 0.5}], "trouble": ""},
    "plans": [{"uri": "file:///a", "event": "type", "head": [], "taken": "full, kept",
               "considered": ["full, new"]}],
    "sessions": [{"id": 1, "client": "Neovim 0.12", "documents": 2, "requests": 30, "shown": 9, "dismissed": 2,
                  "accepted": 4, "acceptedPartly": 5, "focus": "file:///a"}],
    "config": {"file": "/c.toml", "read": false,
               "warnings": [{"line": 3, "message": "unknown key x; it is ignored"}]},
    "sandbox": {"calls": true, "files": false, "why": "an old kernel"}
  })");
  CHECK(service::status_json(ready_parts()) == expected);
}

TEST_CASE("before a model is there the status says which one, how far, and invents nothing") {
  service::StatusParts parts;
  parts.model_path = "/big.gguf";
  parts.service.state = completion::EngineState::kLoading;
  parts.service.load_progress = 0.5;
  const Json status = service::status_json(parts);
  CHECK(status.at("state") == Json{{"name", "loading"}, {"progress", 0.5}, {"message", ""}});
  CHECK(status.at("model") == Json{{"path", "/big.gguf"}, {"reason", ""}});
  CHECK(status.at("device") == Json{{"reason", ""}});
  CHECK(status.at("files") == Json::array());
  CHECK(status.at("events") == Json::object());
}
