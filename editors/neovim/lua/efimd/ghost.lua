-- Draws a suggestion with extmarks, where Neovim does not do it itself (before 0.12, or with native = false).
local compat = require('efimd.compat')
local M = {}

M.namespace = vim.api.nvim_create_namespace('efimd')

function M.hide(buf)
  if vim.api.nvim_buf_is_valid(buf) then vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1) end
end

--- Blanks over the text after the cursor, as wide as that is shown.
local function blanks_over(text, shown) return (' '):rep(math.max(0, vim.fn.strdisplaywidth(text) - vim.fn.strdisplaywidth(shown))) end

--- The parts of a suggestion: text in the cursor's line, lines below it, and whether it covers the
--- text after the cursor.
local function layout(rest, behind, tail)
  local lines = vim.split(rest, '\n', { plain = true })
  local kept = behind:sub(tail + 1)
  local first = table.remove(lines, 1)
  if #lines == 0 and tail == 0 and (compat.has_inline_text or behind == '') then
    return first, lines, compat.has_inline_text and 'inline' or 'overlay'
  end
  if #lines == 0 then
    first = first .. kept
  else
    lines[#lines] = lines[#lines] .. kept
  end
  return first .. blanks_over(behind, first), lines, 'overlay'
end

--- Shows `rest` at the cursor of the current window, in place of `tail` bytes after it.
function M.show(buf, rest, tail)
  M.hide(buf)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local row, column = cursor[1] - 1, cursor[2]
  local behind = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]:sub(column + 1)
  local first, lines, position = layout(rest, behind, tail)
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

return M
