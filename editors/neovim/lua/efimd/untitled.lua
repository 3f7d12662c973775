-- Buffers without a name. Neovim gives all of them the URI "file://", so the daemon would take two for one document, and
-- closing one would end the other. Those of efimd's client are "untitled:nvim-BUFFER" instead.
--
-- Neovim's own client makes the URIs of didOpen, didChange and didClose, and before 0.12 it does not say for which
-- buffer. They all come from vim.uri_from_bufnr, so that one is changed, for these buffers only.
local M = {}

local mine = {} -- buf -> its URI

local uri_from_bufnr = vim.uri_from_bufnr
vim.uri_from_bufnr = function(buf)
  buf = buf == 0 and vim.api.nvim_get_current_buf() or buf
  if mine[buf] and vim.api.nvim_buf_get_name(buf) == '' then return mine[buf] end
  return uri_from_bufnr(buf)
end

--- Comes before the client is attached to `buf`, because 0.7 asks for the URI first.
function M.take(buf)
  if vim.api.nvim_buf_get_name(buf) == '' then mine[buf] = 'untitled:nvim-' .. buf end
end

--- The URI that `buf` had before it got its name, once; else nil.
function M.was(buf)
  if not mine[buf] or vim.api.nvim_buf_get_name(buf) == '' then return nil end
  local uri = mine[buf]
  mine[buf] = nil
  return uri
end

return M
