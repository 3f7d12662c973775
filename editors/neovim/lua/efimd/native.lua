-- Neovim 0.12's own inline completion, kept honest: it asks and draws. Its suggestions for a text
-- that has changed are removed, and so is an answer that comes too late. A part of an item can be
-- accepted.
local again = require('efimd.again')
local client = require('efimd.client')
local compat = require('efimd.compat')
local config = require('efimd.config')
local ghost = require('efimd.ghost')
local suggestion = require('efimd.suggestion')
local M = {}

local kMethod = 'textDocument/inlineCompletion'
local namespace = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
local kInvoked = 1
local kAcceptMs = 1000 -- Neovim accepts in its next turn, which takes no time
local kServerBusy = { [-32800] = true, [-32801] = true, [-32802] = true } -- cancelled, outdated, refused: no errors to show

local function menu_hides() return config.values.menu == 'hide' and vim.fn.pumvisible() == 1 end

function M.rest(buf)
  if not again.inserting(buf) or menu_hides() then return nil end -- in replace mode Neovim draws nothing
  return suggestion.rest(buf)
end

-- buf -> true after a part was taken, until the next answer: Neovim has forgotten the rest, so the plugin draws it
local left = {}

local function hide_left(buf)
  left[buf] = nil
  ghost.hide(buf)
end

local function hide_what_is_old(buf)
  local rest, tail = M.rest(buf)
  if rest then
    ghost.expand_tabs(buf, namespace)
  else
    vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
  if not left[buf] then return end
  if rest and again.inserting(buf) then ghost.show(buf, rest, tail) else hide_left(buf) end
end

local function is_shown(buf) return left[buf] or vim.api.nvim_buf_get_extmarks(buf, namespace, 0, -1, {})[1] ~= nil end

local by_hand = {} -- buf -> whether its next question is one

--- Neovim has no call to ask now. If it is enabled, it asks when the cursor next moves, so this
--- moves the cursor in place.
local function ask(buf, is_by_hand)
  by_hand[buf] = is_by_hand
  vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = buf })
end

--- The handler of one answer. An answer that comes too late becomes an empty list, which clears the
--- shown suggestion.
local function checked(connection, buf, is_by_hand, handler)
  local moment = vim.api.nvim_get_current_buf() == buf and again.moment_of(buf)
  return function(problem, result, context, ...)
    if problem and kServerBusy[problem.code] then problem, result = nil, nil end
    if result then
      local late = not vim.api.nvim_buf_is_valid(buf) or vim.api.nvim_get_current_buf() ~= buf
        or again.moment_of(buf) ~= moment
      if late then result = { items = {} } end
      again.answered(buf, moment, result.items or result, function() ask(buf, is_by_hand) end)
      suggestion.set(buf, result.items or result, connection.offset_encoding)
    end
    if result then hide_left(buf) end
    handler(problem, result, context, ...)
    if not result then return end
    hide_what_is_old(buf)
    if M.rest(buf) then client.notify('efim/didShow', { textDocument = client.document(buf) }) end
  end
end

--- Puts checked() around the handlers of this client's inline completion requests.
local function watch(connection)
  if connection.efimd_watched then return end
  connection.efimd_watched = true
  local request = connection.request
  connection.request = function(self, method, params, handler, buf, ...)
    if method == kMethod and handler then
      buf = vim._resolve_bufnr and vim._resolve_bufnr(buf) or buf or vim.api.nvim_get_current_buf()
      local is_by_hand = by_hand[buf] or false
      by_hand[buf] = nil
      local automatic = config.values.trigger == 'auto' and require('efimd').is_enabled(buf)
      if not is_by_hand and not automatic then return false end
      client.tell_changes(buf)
      if is_by_hand then params.context.triggerKind = kInvoked end
      handler = checked(connection, buf, is_by_hand, handler)
    end
    return request(self, method, params, handler, buf, ...)
  end
end

--- Ends what is suggested in `buf`; Neovim clears its own.
function M.forget(buf)
  suggestion.clear(buf)
  hide_left(buf)
end

function M.start(buf)
  watch(client.get())
  vim.lsp.inline_completion.enable(false, { bufnr = buf }) -- its autocommands may be gone: client.written()
  M.set_enabled(buf, require('efimd').is_enabled(buf))
  vim.defer_fn(function() -- what was typed while efimd started; Neovim gets its own part ready in a call after this one
    if again.inserting(buf) then ask(buf, false) end
  end, 0)
end

function M.set_enabled(buf, enabled)
  local automatic = enabled and config.values.trigger == 'auto'
  vim.lsp.inline_completion.enable(automatic, { bufnr = buf })
  local group = vim.api.nvim_create_augroup('efimd-native-' .. buf, {})
  -- enable() has made Neovim's own handlers; these must come after them in each event.
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'CursorMovedI', 'TextChangedI', 'TextChangedP', 'CompleteChanged' }, {
    group = group,
    buffer = buf,
    callback = function() hide_what_is_old(buf) end,
  })
  vim.api.nvim_create_autocmd('ModeChanged', { -- <C-c> leaves insert mode without InsertLeave, for which Neovim waits
    group = group,
    buffer = buf,
    callback = function()
      if again.inserting(buf) then return end
      M.forget(buf)
      hide_what_is_old(buf)
    end,
  })
  if not enabled then suggestion.clear(buf) end
end

function M.dismiss(buf)
  again.forget()
  M.forget(buf)
  hide_what_is_old(buf)
end

function M.trigger(buf)
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
  ask(buf, true)
end

function M.select(buf, count)
  if suggestion.select(buf, count) <= 1 then return M.trigger(buf) end -- there may be more for who asks
  vim.lsp.inline_completion.select({ bufnr = buf, count = count })
  ghost.expand_tabs(buf, namespace)
end

--- Calls `insert` where Neovim forgets the item that it shows.
local function take(buf, insert)
  if left[buf] then return insert() end
  local done = false
  local function on_accept()
    done = true
    insert()
  end
  if vim.lsp.inline_completion.get({ bufnr = buf, on_accept = on_accept }) then
    vim.wait(kAcceptMs, function() return done end, 1)
  end
end

function M.accept(buf, what)
  local rest, tail, command = M.rest(buf)
  if not rest or not is_shown(buf) then return false end
  compat.before_typed_keys(function()
    take(buf, function()
      if M.rest(buf) ~= rest then return end
      local part = suggestion.part(rest, what)
      suggestion.insert(buf, part, rest, tail)
      require('efimd.taken')(buf, part, rest, command)
      left[buf] = true
      hide_what_is_old(buf)
    end)
  end)
  return true
end

return M
