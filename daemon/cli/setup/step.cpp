#include "daemon/cli/setup/step.h"

#include <fmt/format.h>

#include "daemon/cli/setup/user_file.h"
#include "daemon/config/this_system.h"
#include "daemon/models/model_catalog.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

Step with_reason(const BlockWish& wish, const Error& error) {
  return by_hand_step(wish.subject,
                      fmt::format("{} is not changed: {}. These lines are for you to write:",
                                  wish.file.string(), error.message()),
                      wish.lines);
}

Step offer(const BlockWish& wish, const UserFile& file, std::string what, std::string text) {
  return {
      Step::State::kOffer, wish.subject,
      std::move(what),     wish.lines,
      wish.after,          [file, text = std::move(text)] { return write_user_file(file, text); }};
}

Step removal(const BlockWish& wish, const UserFile& file, const MarkedBlock& block) {
  const bool is_empty =
      block.rest.empty() || (wish.syntax == Syntax::kJson && block.rest == "{\n}\n");
  Step step{Step::State::kOffer, wish.subject, "", "", "", {}};
  if (block.made.file && is_empty) {
    step.what = fmt::format("remove {}", wish.file.string());
    step.apply = [file, folders = block.made.folders] { return remove_user_file(file, folders); };
  } else {
    step.what = fmt::format("take efimd's lines out of {}", wish.file.string());
    step.apply = [file, rest = block.rest] { return write_user_file(file, rest); };
  }
  return step;
}

}  // namespace

Step done_step(std::string subject, std::string what) {
  return {Step::State::kDone, std::move(subject), std::move(what), "", "", {}};
}

Step by_hand_step(std::string subject, std::string what, std::string lines) {
  return {Step::State::kByHand, std::move(subject), std::move(what), std::move(lines), "", {}};
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

Step block_step(const BlockWish& wish, Direction direction) {
  const auto file = read_user_file(wish.file);
  if (!file) {
    if (direction == Direction::kAdd) return with_reason(wish, file.error());
    return done_step(wish.subject, file.error().message());
  }
  const std::string text = file->text.value_or("");
  const auto block = find_block(text, wish.syntax);
  if (!block)
    return by_hand_step(wish.subject,
                        fmt::format("{}: {}", wish.file.string(), block.error().message()), "");
  if (direction == Direction::kRemove) {
    if (*block) return removal(wish, *file, **block);
    return done_step(wish.subject,
                     fmt::format("{} has nothing of efimd setup", wish.file.string()));
  }
  if (*block && (*block)->lines == wish.lines)
    return done_step(wish.subject, fmt::format("is set up in {}", wish.file.string()));
  if (!*block && text.find(wish.own_word) != std::string::npos)
    return done_step(wish.subject, fmt::format("{} has {} already, and is left as it is",
                                               wish.file.string(), wish.own_word));
  MadeFor made;
  std::string before = *block ? (*block)->rest : text;
  if (*block) {
    made = (*block)->made;
  } else if (!file->text) {
    made = {true, folders_missing(wish.file)};
    if (wish.syntax == Syntax::kJson) before = "{\n}\n";
  }
  auto changed = with_block(before, wish.syntax, wish.lines, made);
  if (!changed) return with_reason(wish, changed.error());
  return offer(
      wish, *file,
      fmt::format("{} {}", *block ? "renew efimd's lines in" : "write into", wish.file.string()),
      std::move(*changed));
}

Result<SetupPlaces> find_setup_places() {
  const auto home = absolute_variable("HOME");
  if (!home) return fail(Fault::kNotFound, "$HOME is not set", "set it to your home folder");
  const auto program = own_executable();
  if (!program) return tl::unexpected(program.error());
  SetupPlaces places{*home,
                     absolute_variable("XDG_CONFIG_HOME").value_or(*home / ".config"),
                     absolute_variable("XDG_DATA_HOME").value_or(*home / ".local/share"),
                     *program,
                     {},
                     {}};
  // Installed, or where it was built.
  const fs::path folder = program->parent_path();
  std::error_code error;
  const auto first = [&error](std::initializer_list<fs::path> candidates) {
    for (const fs::path& path : candidates)
      if (fs::exists(path, error)) return path.lexically_normal();
    return fs::path();
  };
  places.neovim_plugin = first(
      {folder / "../share/nvim/site/pack/efimd/opt/efimd", folder / "../../../../editors/neovim"});
  places.vscode_package =
      first({folder / "../share/efimd/efimd.vsix", folder / "../../efimd.vsix"});
  return places;
}

}  // namespace efimd::service
