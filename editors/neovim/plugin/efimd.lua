-- Loaded by Neovim at start: highlight groups, <Plug> keys and the command. Nothing runs before require('efimd').setup().
if vim.g.loaded_efimd or vim.fn.has('nvim-0.7') == 0 then return end
vim.g.loaded_efimd = true

local has_hint = vim.fn.hlexists('ComplHint') == 1 -- Neovim 0.12's own group for this
vim.cmd('highlight default link EfimdSuggestion ' .. (has_hint and 'ComplHint' or 'Comment'))
vim.cmd('highlight default link EfimdStatus StatusLine')
vim.cmd('highlight default link EfimdStatusError ErrorMsg')

local function plug(name, call)
  vim.keymap.set('i', '<Plug>(efimd-' .. name .. ')', function()
    call(require('efimd'))
    return ''
  end, { expr = true, desc = 'efimd: ' .. name })
end
plug('accept', function(efimd) efimd.accept('all') end)
plug('accept-word', function(efimd) efimd.accept('word') end)
plug('accept-line', function(efimd) efimd.accept('line') end)
plug('dismiss', function(efimd) efimd.dismiss() end)
plug('next', function(efimd) efimd.select(1) end)
plug('previous', function(efimd) efimd.select(-1) end)
plug('trigger', function(efimd) efimd.trigger() end)

vim.api.nvim_create_user_command('Efimd', function(arguments)
  require('efimd.commands').run(arguments.fargs)
end, {
  nargs = '*',
  desc = 'efimd: status, doctor, purge, log, toggle, restart',
  complete = function(lead, line) return require('efimd.commands').complete(lead, line) end,
})
