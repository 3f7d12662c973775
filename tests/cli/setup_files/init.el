;;; init.el --- quotes, characters and what custom writes  -*- lexical-binding: t; -*-
(require 'package)
(add-to-list 'package-archives '("melpa" . "https://melpa.org/packages/") t)
(defun my-pairs (char)
  "A doc string with \"quotes\", a paren ( and a semicolon ; in it."
  (memq char '(?\( ?\) ?\; ?\" ?a ?\\ ?\[)))
(global-set-key (kbd "C-c ;") #'comment-line) ; a comment with "quotes (
(setq what? "a symbol may end with a question mark" sentence-end "[.?!][]\"')]*")
(custom-set-variables
 ;; custom-set-variables was added by Custom.
 '(inhibit-startup-screen t)
 '(package-selected-packages '(lsp-mode magit)))
(provide 'init)
;;; init.el ends here
