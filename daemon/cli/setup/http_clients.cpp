#include <fmt/format.h>

#include "daemon/cli/setup/programs.h"
#include "daemon/cli/setup/step.h"
#include "daemon/config/config.h"

// Zed and Vim speak no LSP for this; they ask efimd-http.

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

std::string zed_member(int port) {
  return fmt::format(
      "\"edit_predictions\": {{\"provider\": \"open_ai_compatible_api\", "
      "\"open_ai_compatible_api\": "
      "{{\n    \"api_url\": \"http://127.0.0.1:{}/v1/completions\", \"model\": \"efimd\",\n"
      "    \"prompt_format\": \"qwen\", \"max_output_tokens\": 64}}}}",
      port);
}

/// Vim starts no daemon, so it starts efimd-http; that ends at once if it runs already.
std::string vim_lines(const SetupPlaces& places, int port) {
  return fmt::format(
      "if !exists('g:llama_config')\n"
      "  call job_start([{1}, 'http', '--background'],\n"
      "      \\ {{'in_io': 'null', 'out_io': 'null', 'err_io': 'null', 'stoponexit': ''}})\n"
      "  let g:llama_config = {{'endpoint_fim': 'http://127.0.0.1:{0}/infill',\n"
      "      \\ 'api_key': trim(system(shellescape({1}) . ' http --print-token'))}}\n"
      "endif\n",
      port, in_quotes(places.program.string()));
}

/// Where the usual ways to install plugins put llama.vim.
bool has_llama_vim(const SetupPlaces& places) {
  std::error_code error;
  if (fs::exists(places.home / ".vim/plugged/llama.vim", error) ||
      fs::exists(places.home / ".vim/bundle/llama.vim", error))
    return true;
  for (auto entry = fs::directory_iterator(places.home / ".vim/pack", error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    if (std::error_code unreadable; fs::exists(entry->path() / "start/llama.vim", unreadable))
      return true;
  return false;
}

}  // namespace

Steps http_client_steps(const SetupPlaces& places, const fs::path& config_file,
                        Direction direction) {
  const Config config = load_config(config_file);
  const int port = config.http.port;
  const bool adds = direction == Direction::kAdd;
  std::error_code error;
  Steps steps;
  const bool zed =
      find_program("zed") || find_program("zeditor") || fs::exists(places.config / "zed", error);
  if (zed) {
    steps.push_back(block_step(
        {"Zed", places.config / "zed/settings.json", Syntax::kJson, zed_member(port),
         "edit_prediction",
         "Zed starts nothing and wants the token in its environment. Write into your login "
         "profile:\n  efimd http --background\n  export "
         "ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY=\"$(efimd http --print-token)\""},
        direction));
  }
  const bool vim = find_program("vim").has_value() || find_program("gvim").has_value();
  const bool llama = has_llama_vim(places);
  const BlockWish vim_wish{"Vim",        places.home / ".vim/plugin/efimd.vim",
                           Syntax::kVim, vim_lines(places, port),
                           "efimd",      "Vim shows suggestions from its next start on"};
  if (vim && (llama || !adds)) {
    steps.push_back(block_step(vim_wish, direction));
  } else if (vim) {
    steps.push_back(by_hand_step(
        "Vim",
        "needs the plugin llama.vim. When it is installed, run efimd setup again, which writes "
        "these lines into ~/.vim/plugin/efimd.vim:",
        vim_wish.lines));
  }
  const bool wanted = zed || (vim && llama);
  if (!adds || (wanted && !config.http.enable)) {
    steps.push_back(
        block_step({"HTTP", config_file, Syntax::kToml, "[http]\nenable = true\n", "http",
                    "efimd-http starts with the daemon, and listens on this machine only"},
                   direction));
  } else if (wanted) {
    steps.push_back(done_step("HTTP", "efimd-http starts with the daemon"));
  }
  return steps;
}

}  // namespace efimd::service
