#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/digest.h"
#include "base/small_file.h"
#include "daemon/cli/setup/programs.h"
#include "daemon/cli/setup/step.h"
#include "daemon/config/version.h"

// VS Code and its relatives: the extension is installed by their own programs.

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kExtension = "efimd.efimd";
constexpr std::size_t kPackageBytesMax = std::size_t{16} << 20;
constexpr std::size_t kDigestBytesMax = 64;

struct Product {
  std::string_view program;
  std::string_view name;
  std::string_view folder;  ///< of its user's settings, in $XDG_CONFIG_HOME
};
constexpr std::array kProducts = {
    Product{"code", "VS Code", "Code"},
    Product{"code-insiders", "VS Code Insiders", "Code - Insiders"},
    Product{"codium", "VSCodium", "VSCodium"},
    // A server reads settings of the machine from a folder of its own.
    Product{"code-server", "code-server", ""}};

/// "0.1.0" of the line "efimd.efimd@0.1.0"; empty: not installed.
std::string installed_version(std::string_view listed) {
  while (!listed.empty()) {
    const std::string_view line = listed.substr(0, listed.find('\n'));
    if (line.starts_with(kExtension) && line.substr(kExtension.size()).starts_with('@'))
      return std::string(line.substr(kExtension.size() + 1));
    listed.remove_prefix(std::min(listed.size(), line.size() + 1));
  }
  return "";
}

Result<void> run_editor(const std::vector<std::string>& words) {
  const auto ran = run_quietly(words);
  if (!ran) return tl::unexpected(ran.error());
  if (ran->status == 0) return {};
  return fail(Fault::kIo,
              fmt::format("{} ended with {}: {}", fmt::join(words, " "), ran->status, ran->output));
}

std::string digest_of_package(const fs::path& package) {
  const std::string bytes = read_small_file(package, kPackageBytesMax);
  return digest_of(std::as_bytes(std::span(bytes))).hex();
}

/// Has the digest of the package that setup installed last: a later build may have the same version.
fs::path record_of(const SetupPlaces& places, const Product& product) {
  return places.data / "efimd/setup" / product.program;
}

bool is_current(const SetupPlaces& places, const Product& product, std::string_view installed) {
  if (installed != version()) return false;
  return places.vscode_package.empty() ||
         read_small_file(record_of(places, product), kDigestBytesMax) ==
             digest_of_package(places.vscode_package);
}

Step extension_step(const SetupPlaces& places, const Product& product, const std::string& program,
                    Direction direction) {
  const std::string name(product.name);
  const auto listed = run_quietly({program, "--list-extensions", "--show-versions"});
  if (!listed || listed->status != 0)
    return by_hand_step(name,
                        fmt::format("{} does not list its extensions: {}", program,
                                    listed ? listed->output : listed.error().message()),
                        "");
  const std::string installed = installed_version(listed->output);
  Step step{Step::State::kOffer, name, "", "", "", {}};
  if (direction == Direction::kRemove) {
    if (installed.empty()) return done_step(name, "efimd's extension is not installed");
    step.what = fmt::format("uninstall the extension {} {}", kExtension, installed);
    step.apply = [program, record = record_of(places, product)]() -> Result<void> {
      auto done = run_editor({program, "--uninstall-extension", std::string(kExtension)});
      std::error_code error;
      if (done && fs::remove(record, error)) fs::remove(record.parent_path(), error);
      return done;
    };
    return step;
  }
  if (is_current(places, product, installed))
    return done_step(name, fmt::format("has the extension {}", installed));
  if (places.vscode_package.empty())
    return by_hand_step(name,
                        "efimd.vsix was not installed with efimd, because npm was missing when "
                        "it was built; editors/vscode/README.md says how to build it",
                        "");
  step.what = fmt::format("install the extension {} {}", kExtension, version());
  step.after = fmt::format("{} shows suggestions when it is started or reloaded", name);
  step.lines = fmt::format("{} --install-extension {}\n", program, places.vscode_package.string());
  step.apply = [program, package = places.vscode_package,
                record = record_of(places, product)]() -> Result<void> {
    const std::string digest = digest_of_package(package);
    auto done = run_editor({program, "--install-extension", package.string(), "--force"});
    return done ? replace_small_file(record, digest) : done;
  };
  return step;
}

/// Whether the extension finds this efimd without being told: editors/vscode/src/program.ts.
bool finds_program(const SetupPlaces& places) {
  const std::array folders = {places.home / ".local/bin", fs::path("/usr/local/bin"),
                              fs::path("/usr/bin")};
  return std::ranges::any_of(folders, [&](const fs::path& folder) {
    std::error_code error;
    return fs::equivalent(folder / "efimd", places.program, error);
  });
}

}  // namespace

Steps vscode_steps(const SetupPlaces& places, Direction direction) {
  Steps steps;
  for (const Product& product : kProducts) {
    const auto program = find_program(product.program);
    if (!program) continue;
    steps.push_back(extension_step(places, product, program->string(), direction));
    if (direction == Direction::kAdd && finds_program(places)) continue;
    const fs::path file = product.folder.empty()
                              ? places.data / "code-server/Machine/settings.json"
                              : places.config / product.folder / "User/settings.json";
    steps.push_back(block_step(
        {std::string(product.name), file, Syntax::kJson,
         fmt::format("\"efimd.path\": {}", in_quotes(places.program.string())), "efimd.path"},
        direction));
  }
  return steps;
}

}  // namespace efimd::service
