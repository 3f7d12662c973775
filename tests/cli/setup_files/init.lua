-- A configuration as people keep it: options, keys, a plugin manager, language servers.
vim.g.mapleader = ' '
vim.opt.number = true
vim.opt.listchars = { tab = '» ', trail = '·', nbsp = '␣' }

local path = vim.fn.stdpath('data') .. '/lazy/lazy.nvim'
if vim.loop.fs_stat(path) then
  vim.opt.rtp:prepend(path)
  require('lazy').setup({
    { 'tpope/vim-sleuth' },
    { 'neovim/nvim-lspconfig', config = function() vim.lsp.set_log_level('off') end },
  })
end

local text = [[
  a long string -- that looks like a comment
]]
vim.keymap.set('n', '<leader>q', function() print(text) end) -- no line end follows