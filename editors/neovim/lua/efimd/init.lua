-- efimd for Neovim 0.7 and later: :help efimd.
local client = require('efimd.client')
local compat = require('efimd.compat')
local config = require('efimd.config')
local state = require('efimd.state')
local M = {}

local off = { all = false, filetypes = {}, buffers = {} } -- what was toggled in this session; nil: as configured

local function current(buf) return (buf == nil or buf == 0) and vim.api.nvim_get_current_buf() or buf end

--- How suggestions are shown here: Neovim's own way, or the plugin's.
local function way() return require(compat.has_native and config.values.native and 'efimd.native' or 'efimd.own') end

--- Whether `buf` gets suggestions: the buffer's own switch first, then its filetype's, then everything's.
function M.is_enabled(buf)
  buf = current(buf)
  if off.buffers[buf] ~= nil then return not off.buffers[buf] end
  local filetype = vim.bo[buf].filetype
  if off.filetypes[filetype] ~= nil then return not off.filetypes[filetype] end
  if off.all then return false end
  local wanted = config.values.filetypes[filetype]
  if wanted == nil then wanted = config.values.filetypes['*'] end
  return wanted ~= false
end

local function apply()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if M.is_enabled(buf) then client.attach(buf) end
    if client.attached(buf) then way().set_enabled(buf, M.is_enabled(buf)) end
  end
  vim.cmd('redrawstatus')
end

--- Turns suggestions on or off for 'all', for the 'filetype' of the buffer or for the 'buffer'. Returns what is now.
function M.toggle(scope, buf)
  buf = current(buf)
  local now = M.is_enabled(buf)
  if scope == 'filetype' then
    off.filetypes[vim.bo[buf].filetype] = now
  elseif scope == 'buffer' then
    off.buffers[buf] = now
  else
    off = { all = now, filetypes = {}, buffers = {} }
  end
  apply()
  return M.is_enabled(buf)
end

--- Takes what is suggested at the cursor: 'all', the next 'word' or the 'line'. False when nothing is shown.
function M.accept(what) return way().accept(current(), what or 'all') end

--- Whether something is shown at the cursor that accept() would take.
function M.visible() return way().rest(current()) ~= nil end

--- Hides what is shown; the daemon does not suggest it there again.
function M.dismiss()
  local buf = current()
  if M.visible() then client.notify('efim/didDismiss', { textDocument = client.document(buf) }) end
  way().dismiss(buf)
end
function M.select(count) way().select(current(), count) end
function M.trigger() way().trigger(current()) end

--- What the daemon last said: { name, progress, message }, the last receipt, and whether this buffer is on.
function M.status()
  return { state = state.now, receipt = state.receipt, enabled = M.is_enabled() }
end

local texts = {
  stopped = '', starting = 'efimd ...', ready = 'efimd', thinking = 'efimd *', failed = 'efimd!',
}

--- For 'statusline': "efimd", "efimd *" while it thinks, "efimd 40%" while it loads, "efimd!" when it failed, "efimd off".
--- After an answer that suggests something in this buffer, its source: "efimd recalled", "efimd recalled+model", "efimd model".
--- With { highlight = true } between EfimdStatus or EfimdStatusError and the end of it.
function M.statusline(options)
  local now = state.now
  local text = now.name == 'loading' and ('efimd %.0f%%'):format(now.progress * 100) or texts[now.name] or ''
  if text ~= '' and now.name ~= 'failed' and not M.is_enabled() then
    text = 'efimd off'
  elseif now.name == 'ready' then
    local source = state.source(current())
    if source then text = text .. ' ' .. source end
  end
  text = text:gsub('%%', '%%%%')
  if text == '' or not (options and options.highlight) then return text end
  return ('%%#%s#%s%%*'):format(now.name == 'failed' and 'EfimdStatusError' or 'EfimdStatus', text)
end

--- The name of a mapping that does what `key` does without efimd: what the user mapped it to, or Neovim its own <Tab>.
local function name_without_efimd(key)
  local name = '<Plug>(efimd-without-' .. key:gsub('[<>|]', '_') .. ')'
  local was = compat.mapping(key)
  local options = {
    expr = was and was.expr == 1, silent = was and was.silent == 1, noremap = not was or was.noremap == 1,
    callback = was and was.callback, replace_keycodes = was and was.replace_keycodes == 1 or nil,
  }
  -- A mapped <Tab> ends no abbreviation; <C-]> does, and inserts nothing.
  local rhs = not was and (key:lower() == '<tab>' and '<C-]><Tab>' or key) or was and was.rhs or ''
  vim.api.nvim_set_keymap('i', name, rhs, options)
  return name
end

local without = {} -- key -> name_without_efimd(); a second setup() finds efimd's own mappings

--- `call` returns false where it does nothing; then the key does what it did before.
local function map(key, desc, call)
  if not key then return end
  without[key] = without[key] or name_without_efimd(key)
  vim.keymap.set('i', key, function()
    return call() == false and without[key] or ''
  end, { expr = true, remap = true, desc = 'efimd: ' .. desc })
end

--- `call` always does something, so a mapping of the user's is left alone.
local function map_if_free(key, desc, call)
  if key and (without[key] or not compat.mapping(key)) then map(key, desc, call) end
end

local function map_keys(keys)
  map(keys.accept, 'accept the suggestion', function() return M.accept('all') end)
  map(keys.accept_word, "accept the suggestion's next word", function() return M.accept('word') end)
  map(keys.accept_line, "accept the suggestion's line", function() return M.accept('line') end)
  map(keys.dismiss, 'dismiss the suggestion', function()
    if not M.visible() then return false end
    M.dismiss()
  end)
  map_if_free(keys.next, 'next suggestion', function() M.select(1) end)
  map_if_free(keys.previous, 'previous suggestion', function() M.select(-1) end)
  map_if_free(keys.trigger, 'ask for a suggestion', function() M.trigger() end)
end

local offered = false
local function offer_model()
  if offered then return end
  offered = true
  require('efimd.model').offer()
end

local function tell_focus(buf)
  if vim.api.nvim_get_current_buf() == buf then client.notify('efim/didFocus', { textDocument = client.document(buf) }) end
end

--- Attaches `buf`, or detaches what is no text any more.
local function look_at(buf, filetype_is_new)
  if not vim.api.nvim_buf_is_valid(buf) then return end
  if client.attached(buf) and client.is_no_text(buf) then
    way().set_enabled(buf, false)
    return client.detach(buf)
  end
  if M.is_enabled(buf) then client.attach(buf) end
  if not client.attached(buf) then return end
  if filetype_is_new then
    client.filetype_set(buf)
    way().set_enabled(buf, M.is_enabled(buf))
  end
  tell_focus(buf)
end

--- Starts efimd. Options: :help efimd-options.
function M.setup(options)
  local problems = config.set(options)
  if #problems > 0 then
    state.tell('options', table.concat(problems, '; ') .. '. See :help efimd-options; defaults are used.')
  end
  state.on_ready(offer_model)
  off = { all = not config.values.enabled, filetypes = {}, buffers = {} }
  map_keys(config.values.keys)
  client.on_attach(function(_, buf)
    way().start(buf)
    tell_focus(buf)
  end)
  local group = vim.api.nvim_create_augroup('efimd', {})
  vim.api.nvim_create_autocmd({ 'BufEnter', 'FileType', 'TermOpen' }, {
    group = group,
    callback = function(event)
      -- Who makes a terminal, a list or the command-line window enters the buffer first, and then says what it is.
      vim.schedule(function() look_at(event.buf, event.event == 'FileType') end)
    end,
  })
  vim.api.nvim_create_autocmd('OptionSet', {
    group = group,
    pattern = 'buftype',
    callback = function()
      local buf = vim.api.nvim_get_current_buf()
      vim.schedule(function() look_at(buf) end)
    end,
  })
  vim.api.nvim_create_autocmd('BufWritePost', { group = group, callback = function(event) client.written(event.buf) end })
  vim.api.nvim_create_autocmd('BufFilePre', { group = group, callback = function(event) client.before_rename(event.buf) end })
  vim.api.nvim_create_autocmd('BufFilePost', { group = group, callback = function(event) client.after_rename(event.buf) end })
  vim.api.nvim_create_autocmd('DirChanged', { group = group, pattern = { 'global', 'tabpage', 'window' }, callback = client.follow_folder })
  vim.api.nvim_create_autocmd('BufWipeout', { group = group, callback = function(event) off.buffers[event.buf] = nil end })
  apply()
end

return M
