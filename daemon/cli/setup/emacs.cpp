#include <fmt/format.h>

#include <array>
#include <string>

#include "daemon/cli/setup/programs.h"
#include "daemon/cli/setup/step.h"
#include "daemon/cli/setup/user_file.h"

// Emacs with lsp-mode: the lines of editors/README.md, at the end of the first init file that Emacs
// would read.

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

std::string emacs_lines(const SetupPlaces& places) {
  return fmt::format(
      "(with-eval-after-load 'lsp-mode\n"
      "  (lsp-register-client\n"
      "   (make-lsp-client :new-connection (lsp-stdio-connection '({} \"lsp\"))\n"
      "                    :activation-fn (lambda (&rest _) t)\n"
      "                    :add-on? t\n"
      "                    :server-id 'efimd)))\n"
      "(with-eval-after-load 'lsp-inline-completion\n"
      "  (when (eql lsp-inline-completion-idle-delay 2)\n"
      "    (setq lsp-inline-completion-idle-delay 0.2)))\n"
      "(add-hook 'lsp-mode-hook #'lsp-inline-completion-mode)\n",
      in_quotes(places.program.string()));
}

/// As Emacs looks for it; a new one goes where Emacs has looked longest.
fs::path init_file(const SetupPlaces& places) {
  std::error_code error;
  const std::array candidates = {places.home / ".emacs", places.home / ".emacs.el",
                                 places.home / ".emacs.d/init.el", places.config / "emacs/init.el"};
  for (const fs::path& file : candidates)
    if (fs::exists(file, error)) return file;
  const bool is_new =
      !fs::exists(places.home / ".emacs.d", error) && fs::exists(places.config / "emacs", error);
  return is_new ? candidates[3] : candidates[2];
}

/// A distribution's init file is its own, and is overwritten by its next version.
bool is_distribution(const fs::path& file) {
  const auto read = read_user_file(file);
  const std::string text = read && read->text ? *read->text : "";
  for (const char* const word : {"doom-core", "doom-start", "spacemacs"})
    if (text.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

Steps emacs_steps(const SetupPlaces& places, Direction direction) {
  if (!find_program("emacs")) return {};
  const BlockWish wish{
      "Emacs",       init_file(places),
      Syntax::kLisp, emacs_lines(places),
      "efimd",       "Emacs shows suggestions in buffers with lsp-mode 10 or later"};
  if (direction == Direction::kAdd && is_distribution(wish.file))
    return {by_hand_step("Emacs",
                         fmt::format("{} belongs to a distribution of Emacs. Write these "
                                     "lines into your own part of it:",
                                     wish.file.string()),
                         wish.lines)};
  return {block_step(wish, direction)};
}

}  // namespace efimd::service
