-- Draws a suggestion with extmarks, where Neovim does not do it itself (before 0.12, or with native = false).
local compat = require('efimd.compat')
local M = {}

M.namespace = vim.api.nvim_create_namespace('efimd')

function M.hide(buf)
  if vim.api.nvim_buf_is_valid(buf) then vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1) end
end

local function width_of(text, column) return vim.fn.strdisplaywidth(text, column) end

--- `text` with blanks for its tabs. Neovim gives those of inline text to the terminal as they are: they end at the terminal's
--- own tab stops, and what was drawn behind them stays on the screen.
local function without_tabs(text, column)
  local parts = vim.split(text, '\t', { plain = true })
  local made = parts[1]
  for i = 2, #parts do
    made = made .. (' '):rep(width_of('\t', column + width_of(made, column))) .. parts[i]
  end
  return made
end

--- `text` as far as `room` cells hold it, and the rest in rows of `width` cells. It begins at screen column `column`.
local function rows_of(text, column, room, width)
  if width_of(text, column) <= room then return { text } end
  local rows, row = {}, ''
  for _, character in ipairs(vim.fn.split(text, '\\zs')) do
    local cells = width_of(character, column)
    if cells > room then
      table.insert(rows, row)
      row, room = '', width
    end
    row, room, column = row .. character, room - cells, column + cells
  end
  table.insert(rows, row)
  return rows
end

--- Blanks after `shown` over the text behind the cursor, as wide as that is shown.
local function blanks_over(behind, shown, column)
  return (' '):rep(math.max(0, width_of(behind, column) - width_of(shown, column)))
end

--- The parts of a suggestion: text in the cursor's line, lines below it, and whether it covers the
--- text after the cursor.
local function layout(rest, before, behind, tail)
  local lines = vim.split(rest, '\n', { plain = true })
  local kept = behind:sub(tail + 1)
  local first = table.remove(lines, 1)
  if compat.has_inline_text and (behind == '' or (#lines == 0 and tail == 0)) then
    return without_tabs(first, width_of(before, 0)), lines, 'inline'
  end
  if #lines == 0 then
    first = first .. kept
  else
    lines[#lines] = lines[#lines] .. kept
  end
  local column = width_of(before, 0)
  if vim.wo.wrap then -- what covers text ends at the window's edge
    local width = vim.api.nvim_win_get_width(0) - vim.fn.getwininfo(vim.api.nvim_get_current_win())[1].textoff
    local rows = rows_of(first, column, width - column % width, width)
    first = table.remove(rows, 1)
    lines = vim.list_extend(rows, lines)
  end
  return first .. blanks_over(behind, first, column), lines, 'overlay'
end

--- Shows `rest` at the cursor of the current window, in place of `tail` bytes after it.
function M.show(buf, rest, tail)
  M.hide(buf)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local row, column = cursor[1] - 1, cursor[2]
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  local first, lines, position = layout(rest, line:sub(1, column), line:sub(column + 1), tail)
  local below = {}
  for _, line in ipairs(lines) do
    table.insert(below, { { line == '' and ' ' or line, 'EfimdSuggestion' } })
  end
  vim.api.nvim_buf_set_extmark(buf, M.namespace, row, column, {
    virt_text = { { first, 'EfimdSuggestion' } },
    virt_text_pos = position,
    virt_lines = #below > 0 and below or nil,
    hl_mode = 'combine',
  })
end

--- The same for the suggestion that Neovim itself has drawn in `namespace`.
function M.expand_tabs(buf, namespace)
  local mark = vim.api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { details = true })[1]
  local text = mark and mark[4].virt_text and mark[4].virt_text[1]
  if not text or not text[1]:find('\t') or mark[4].virt_text_pos ~= 'inline' then return end
  local id, row, column, drawn = unpack(mark)
  local before = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]:sub(1, column)
  text[1] = without_tabs(text[1], width_of(before, 0))
  vim.api.nvim_buf_set_extmark(buf, namespace, row, column, {
    id = id,
    virt_text = drawn.virt_text,
    virt_text_pos = 'inline',
    virt_lines = drawn.virt_lines,
    hl_mode = drawn.hl_mode,
  })
end

return M
