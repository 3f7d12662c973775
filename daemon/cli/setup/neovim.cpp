#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "daemon/cli/setup/programs.h"
#include "daemon/cli/setup/step.h"

// Neovim: the plugin, loaded by a file of its own, so that no file of the user's is changed.

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

constexpr int kMinorMin = 7;
/// Of a configuration that is searched for efimd; a plugin manager's own folders are elsewhere.
constexpr int kFilesMax = 2000;
constexpr std::uintmax_t kFileBytesMax = std::uintmax_t{1} << 20;

/// "NVIM v0.7.2" has the minor number 7; a major number above 0 counts as new.
std::optional<int> minor_version(std::string_view said) {
  constexpr std::string_view kBefore = "NVIM v";
  if (!said.starts_with(kBefore)) return std::nullopt;
  said.remove_prefix(kBefore.size());
  if (!said.starts_with("0.")) return 1000;
  said.remove_prefix(2);
  int minor = 0;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), minor);
  return error == std::errc() ? std::optional(minor) : std::nullopt;
}

bool mentions_efimd(const fs::path& file) {
  std::error_code error;
  if (fs::file_size(file, error) > kFileBytesMax || error) return false;
  std::ifstream stream(file, std::ios::binary);
  for (std::string line; std::getline(stream, line);)
    if (line.find("efimd") != std::string::npos) return true;
  return false;
}

/// A file of the user's that has efimd already; empty: none.
fs::path own_file(const fs::path& folder, const fs::path& ours) {
  std::error_code error;
  int files = 0;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto entry = fs::recursive_directory_iterator(folder, options, error);
       !error && entry != fs::recursive_directory_iterator() && files < kFilesMax;
       entry.increment(error)) {
    std::error_code unreadable;
    const fs::path extension = entry->path().extension();
    if ((extension != ".lua" && extension != ".vim") || !entry->is_regular_file(unreadable))
      continue;
    ++files;
    if (entry->path() != ours && mentions_efimd(entry->path())) return entry->path();
  }
  return {};
}

std::string plugin_lines(const SetupPlaces& places) {
  return fmt::format(
      "-- To set options, write your own require('efimd').setup() into init.lua, and run\n"
      "-- efimd setup --remove, which removes this file.\n"
      "local plugin = {}\n"
      "if vim.fn.isdirectory(plugin) == 1 then\n"
      "  vim.opt.runtimepath:append(plugin)\n"
      "  vim.cmd('source ' .. vim.fn.fnameescape(plugin .. '/plugin/efimd.lua'))\n"
      "  require('efimd').setup({{ cmd = {{ {}, 'lsp' }} }})\n"
      "end\n",
      in_quotes(places.neovim_plugin.string()), in_quotes(places.program.string()));
}

}  // namespace

Steps neovim_steps(const SetupPlaces& places, Direction direction) {
  const auto program = find_program("nvim");
  if (!program) return {};
  const char* other = std::getenv("NVIM_APPNAME");
  const fs::path folder = places.config / (other != nullptr && *other != '\0' ? other : "nvim");
  const BlockWish wish{
      "Neovim",     folder / "plugin/efimd_setup.lua",
      Syntax::kLua, plugin_lines(places),
      "efimd",      "Neovim shows suggestions from its next start on; Tab accepts one"};
  if (direction == Direction::kRemove) return {block_step(wish, direction)};
  const auto said = run_quietly({program->string(), "--version"});
  const auto minor = said ? minor_version(said->output) : std::nullopt;
  if (!minor || *minor < kMinorMin)
    return {by_hand_step(
        "Neovim",
        fmt::format("{} is older than 0.{}, which the plugin needs", program->string(), kMinorMin),
        "")};
  if (places.neovim_plugin.empty())
    return {
        by_hand_step("Neovim", "the plugin was not installed with efimd; install efimd again", "")};
  if (const fs::path own = own_file(folder, wish.file); !own.empty())
    return {done_step("Neovim",
                      fmt::format("{} has efimd already, and is left as it is", own.string()))};
  return {block_step(wish, direction)};
}

}  // namespace efimd::service
