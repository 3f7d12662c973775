-- A question that came while the model was loading was answered with nothing. It is asked again
-- when the model is ready, if text and cursor are still the same. Otherwise nothing would be shown
-- before the next key.
local state = require('efimd.state')
local M = {}

local unserved -- { buf, moment, ask }

--- Text and cursor of `buf`, which is the current one, as one value.
function M.moment_of(buf)
  local cursor = vim.api.nvim_win_get_cursor(0)
  return ('%d:%d:%d'):format(vim.api.nvim_buf_get_changedtick(buf), cursor[1], cursor[2])
end

function M.inserting(buf)
  return vim.api.nvim_get_current_buf() == buf and vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
end

--- The answer to a question of `moment`: with nothing in it, `ask` may be called later.
function M.answered(buf, moment, items, ask)
  unserved = #items == 0 and { buf = buf, moment = moment, ask = ask } or nil
end

function M.forget() unserved = nil end

state.on_ready(function()
  local question = unserved
  unserved = nil
  if question and M.inserting(question.buf) and M.moment_of(question.buf) == question.moment then question.ask() end
end)

return M
