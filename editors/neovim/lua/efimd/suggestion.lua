-- The suggestion of a buffer, and whether it still fits the text. Both ways of showing it share
-- this.
--
-- An item is kept with the text around the cursor for which it was made. It holds as long as what was typed since is
-- the item's own text: then what is left of it is shown. Anything else ends it; old text never stands at a new place.
local compat = require('efimd.compat')
local M = {}

local buffers = {} -- buf -> { items, index, typed-through state }

local function cursor_of(buf)
  local window = vim.api.nvim_get_current_win()
  if vim.api.nvim_win_get_buf(window) ~= buf then return nil end
  local cursor = vim.api.nvim_win_get_cursor(window)
  return cursor[1] - 1, cursor[2]
end

local function line_at(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
end

--- The item of an answer to the present text and cursor, in bytes; nil when it is for another line.
local function item_of(buf, answer, encoding)
  local row, column = cursor_of(buf)
  if not row then return nil end
  local text = type(answer.insertText) == 'table' and answer.insertText.value or answer.insertText
  local range = answer.range
  if not range then return { text = text, row = row, column = column, tail = 0, command = answer.command } end
  if range.start.line ~= row or range['end'].line ~= row then return nil end
  local line = line_at(buf, row)
  local from = compat.byte_of(line, range.start.character, encoding)
  local to = compat.byte_of(line, range['end'].character, encoding)
  if from > column or to < column then return nil end
  return { text = text, row = row, column = from, tail = to - column, command = answer.command }
end

--- Keeps the items of an answer to the present text of `buf`; an empty list ends what was there.
function M.set(buf, answers, encoding)
  local row, column = cursor_of(buf)
  local items = {}
  for _, answer in ipairs(answers) do
    table.insert(items, item_of(buf, answer, encoding))
  end
  if not row or #items == 0 then
    buffers[buf] = nil
    return
  end
  buffers[buf] = { items = items, index = 1, behind = line_at(buf, row):sub(column + 1) }
end

function M.clear(buf) buffers[buf] = nil end

--- The rest to insert at the cursor, and how many bytes after the cursor it replaces; nil if
--- nothing fits.
function M.rest(buf)
  local kept = buffers[buf]
  local row, column = cursor_of(buf)
  if not kept or not row then return nil end
  local item = kept.items[kept.index]
  if row ~= item.row or column < item.column then return nil end
  local line = line_at(buf, row)
  local typed = line:sub(item.column + 1, column)
  if line:sub(column + 1) ~= kept.behind or item.text:sub(1, #typed) ~= typed then return nil end
  local rest = item.text:sub(#typed + 1)
  if rest == '' then return nil end
  return rest, item.tail, item.command
end

--- Moves by `count` among the items; returns how many there are.
function M.select(buf, count)
  local kept = buffers[buf]
  if not kept then return 0 end
  kept.index = (kept.index - 1 + count) % #kept.items + 1
  return #kept.items
end

--- The first part of `rest`: 'all', a 'word' with what stands before it, or the rest of a 'line'.
function M.part(rest, what)
  if what == 'word' then return rest:match('^%s*[%w_\128-\255]+') or rest:match('^%s*[^%w_%s\128-\255]+') or rest end
  if what == 'line' then return rest:match('^\n?[^\n]*') end
  return rest
end

--- Inserts `part` of `rest` at the cursor and puts the cursor after it. The tail is replaced by the last part only.
function M.insert(buf, part, rest, tail)
  local row, column = cursor_of(buf)
  local whole = #part == #rest
  local lines = vim.split(part, '\n', { plain = true })
  vim.cmd('let &l:undolevels = &l:undolevels') -- ends the undo step of what was typed
  vim.api.nvim_buf_set_text(buf, row, column, row, column + (whole and tail or 0), lines)
  local last_column = (#lines == 1 and column or 0) + #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last_column })
  if whole then return M.clear(buf) end
  local kept = buffers[buf]
  local item = kept.items[kept.index]
  item.text, item.row, item.column = rest:sub(#part + 1), row + #lines - 1, last_column
  kept.items, kept.index = { item }, 1
end

return M
