-- Inline completion for Neovims that have none: asks after each change, at once unless debounce_ms says otherwise.
local again = require('efimd.again')
local client = require('efimd.client')
local compat = require('efimd.compat')
local config = require('efimd.config')
local ghost = require('efimd.ghost')
local suggestion = require('efimd.suggestion')
local M = {}

local kInvoked, kAutomatic = 1, 2
local asked = {} -- buf -> { request, moment }
local timer

local inserting = again.inserting
local moment_of = again.moment_of -- an answer to another moment is too late

local function menu_hides() return config.values.menu == 'hide' and vim.fn.pumvisible() == 1 end

--- The part that may be accepted or shown now: as suggestion.rest().
function M.rest(buf)
  if not inserting(buf) or menu_hides() then return nil end
  return suggestion.rest(buf)
end

function M.draw(buf)
  local rest, tail = M.rest(buf)
  if rest then ghost.show(buf, rest, tail) else ghost.hide(buf) end
  return rest ~= nil
end

local function cancel(buf)
  local request = asked[buf] and asked[buf].request
  asked[buf] = nil
  local connection = client.get()
  if request and connection then compat.call(connection, 'cancel_request', request) end
end

local ask

local function answered(buf, moment, kind, result)
  if not asked[buf] or asked[buf].moment ~= moment then return end
  asked[buf].request = nil
  if type(result) ~= 'table' or not inserting(buf) or moment_of(buf) ~= moment then return end
  local connection = client.get()
  if not connection then return end
  local items = result.items or result
  again.answered(buf, moment, items, function() ask(buf, kind) end)
  suggestion.set(buf, items, connection.offset_encoding or 'utf-16')
  if M.draw(buf) then client.notify('efim/didShow', { textDocument = client.document(buf) }) end
end

ask = function(buf, kind)
  cancel(buf)
  local connection = client.get()
  if not connection or not connection.initialized or not client.attached(buf) or not inserting(buf) then return end
  local position = vim.lsp.util.make_position_params(0, connection.offset_encoding or 'utf-16').position
  local moment = moment_of(buf)
  client.tell_changes(buf)
  asked[buf] = { moment = moment }
  local sent, request = compat.call(connection, 'request', 'textDocument/inlineCompletion', {
    textDocument = client.document(buf),
    position = position,
    context = { triggerKind = kind },
  }, function(_, result) answered(buf, moment, kind, result) end, buf)
  if sent and asked[buf] then asked[buf].request = request end
end

local function ask_soon(buf)
  if timer then timer:stop() end
  if config.values.debounce_ms == 0 then return ask(buf, kAutomatic) end
  timer = vim.defer_fn(function()
    timer = nil
    if inserting(buf) then ask(buf, kAutomatic) end
  end, config.values.debounce_ms)
end

local last_moment

local function moved(buf)
  local moment = buf .. '/' .. moment_of(buf)
  if moment == last_moment then return end -- CursorMovedI and TextChangedI tell of one keystroke
  last_moment = moment
  M.draw(buf)
  if config.values.trigger == 'auto' and require('efimd').is_enabled(buf) then ask_soon(buf) end
end

--- Deferred, because a key that is an expression is evaluated before the keys typed before it are
--- text.
function M.trigger(buf)
  vim.schedule(function() ask(buf, kInvoked) end)
end

function M.dismiss(buf)
  again.forget()
  cancel(buf)
  suggestion.clear(buf)
  ghost.hide(buf)
end

function M.select(buf, count)
  if suggestion.select(buf, count) <= 1 then return M.trigger(buf) end -- there may be more for who asks
  M.draw(buf)
end

function M.accept(buf, what)
  local rest, tail, command = M.rest(buf)
  if not rest then return false end
  compat.before_typed_keys(function()
    if M.rest(buf) ~= rest then return end
    local part = suggestion.part(rest, what)
    suggestion.insert(buf, part, rest, tail)
    require('efimd.taken')(buf, part, rest, command)
    M.draw(buf)
  end)
  return true
end

function M.set_enabled(buf, enabled)
  if not enabled then M.dismiss(buf) end
end

function M.start(buf)
  local group = vim.api.nvim_create_augroup('efimd-own-' .. buf, {})
  local function on(events, call)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = function() call(buf) end })
  end
  on({ 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, moved)
  local function look_soon()
    vim.schedule(function()
      if inserting(buf) then moved(buf) end
    end)
  end
  on('InsertEnter', look_soon) -- it comes before the mode has changed
  on({ 'CompleteChanged', 'CompleteDone' }, function() vim.schedule(function() M.draw(buf) end) end)
  local function leave()
    last_moment = nil
    M.dismiss(buf)
  end
  on('InsertLeave', leave)
  -- <C-c> leaves insert mode without InsertLeave, and in 0.7 without ModeChanged; it moves the cursor. Until 0.9 a
  -- floating window that opens beside the cursor, as help for a call, leaves the buffer and comes back.
  on({ 'ModeChanged', 'CursorMoved', 'BufLeave' }, function()
    vim.schedule(function()
      if not inserting(buf) then leave() end
    end)
  end)
  last_moment = nil
  look_soon() -- at what was typed while efimd started
end

return M
