-- The daemon's last known state, for the status line; and messages that are shown once.
local M = {}

-- name: 'stopped', 'starting', 'loading', 'ready', 'thinking', 'failed'; receipt: the last efim/receipt.
M.now = { name = 'stopped', progress = 0, message = '' }
M.receipt = nil

local function redraw()
  vim.schedule(function() vim.cmd('redrawstatus') end)
end

local on_ready_hooks = {}

--- `hook` is called whenever a model has become ready.
function M.on_ready(hook) table.insert(on_ready_hooks, hook) end

local function is_ready(name) return name == 'ready' or name == 'thinking' end

local function change(now)
  local became_ready = is_ready(now.name) and not is_ready(M.now.name)
  M.now = now
  redraw()
  for _, hook in ipairs(became_ready and on_ready_hooks or {}) do vim.schedule(hook) end
end

function M.set(name, message)
  change({ name = name, progress = 0, message = message or '' })
end

--- Handlers of efimd's own notifications (docs/protocol.md).
M.handlers = {
  ['efim/state'] = function(_, state)
    if type(state) ~= 'table' then return end
    change({ name = state.name, progress = state.progress or 0, message = state.message or '' })
  end,
  ['efim/receipt'] = function(_, receipt)
    if type(receipt) ~= 'table' then return end
    M.receipt = receipt
    redraw()
  end,
}

local told = {}

--- A message that is shown once for its `key`, until forget().
function M.tell(key, message, level)
  if told[key] then return end
  told[key] = true
  vim.schedule(function() vim.notify('efimd: ' .. message, level or vim.log.levels.WARN) end)
end

function M.forget() told = {} end

-- The origin of a suggestion in a word. What is typed through, prefetched or remembered is the model's.
local words = {
  engine = 'model', elsewhere = 'model', ['typed-through'] = 'model', prefetched = 'model', remembered = 'model',
  recalled = 'recalled', ['recalled+model'] = 'recalled+model',
}

--- "recalled", "recalled+model" or "model"; nil unless the last answer was for `buf` and had a suggestion.
function M.source(buf)
  local receipt = M.receipt
  if not receipt or receipt.reason or receipt.uri ~= vim.uri_from_bufnr(buf) then return nil end
  return words[receipt.source]
end

--- The origin of a suggestion, if not the model alone.
local sources = {
  recalled = 'from your own text',
  ['recalled+model'] = 'from your own text, and the model agrees',
}

--- "3 of 2914 tokens evaluated, 41 ms"; nil before the first answer.
function M.receipt_text()
  local receipt = M.receipt
  if not receipt then return nil end
  local text = ('%d of %d tokens evaluated, %.0f ms'):format(
    receipt.evaluatedTokens or 0, receipt.promptTokens or 0, receipt.totalMs or 0)
  if receipt.reason then return text .. '; no suggestion: ' .. receipt.reason end
  local source = sources[receipt.source]
  return source and text .. '; ' .. source or text
end

return M
