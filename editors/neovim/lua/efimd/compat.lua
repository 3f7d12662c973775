-- Functions whose name or parameters changed between Neovim 0.7 and 0.12.
local M = {}

M.uv = vim.uv or vim.loop
M.has_native = vim.lsp.inline_completion ~= nil -- 0.12
M.has_inline_text = vim.fn.has('nvim-0.10') == 1  -- virtual text that moves the text after it

local methods = vim.fn.has('nvim-0.11') == 1 -- client:request() instead of client.request()

--- client:METHOD(...) in every version.
function M.call(client, method, ...)
  if methods then return client[method](client, ...) end
  return client[method](...)
end

--- Starts a client for `buf`, or attaches `client_id` where there is one. Returns the id.
function M.attach(config, buf, client_id)
  if client_id then
    vim.lsp.buf_attach_client(buf, client_id)
    return client_id
  end
  local another = function() return false end -- not the one that is ending still, which has the same name
  if vim.lsp.start then return vim.lsp.start(config, { bufnr = buf, reuse_client = another }) end
  local id = vim.lsp.start_client(config)
  if id then vim.lsp.buf_attach_client(buf, id) end
  return id
end

--- What `key` is mapped to in insert mode, as maparg() says it; nil if to nothing.
function M.mapping(key)
  local found = vim.fn.maparg(key, 'i', false, true)
  if vim.tbl_isempty(found) then return nil end
  if found.rhs then found.rhs = found.rhs:gsub('<SID>', ('<SNR>%d_'):format(found.sid)) end
  if type(found.callback) ~= 'number' then return found end
  for _, each in ipairs(vim.api.nvim_get_keymap('i')) do -- 0.7's maparg() has no functions of Lua
    if each.lhs == found.lhs then found.callback = each.callback end
  end
  return found
end

local queued = {}

--- Calls `change` before the keys that were typed already. A key that is an expression may not change text itself, and
--- vim.schedule() would come after those keys: then `change` would find another text.
function M.before_typed_keys(change)
  table.insert(queued, change)
  local key = vim.api.nvim_replace_termcodes("<Cmd>lua require('efimd.compat').change_now()<CR>", true, true, true)
  vim.api.nvim_feedkeys(key, 'in', false)
end

function M.change_now() table.remove(queued, 1)() end

--- The code units that the character with this first byte of UTF-8 has; 0 for a byte inside a character.
local function units(byte, encoding)
  if encoding == 'utf-8' then return 1 end
  if byte >= 0x80 and byte < 0xC0 then return 0 end
  return byte >= 0xF0 and encoding == 'utf-16' and 2 or 1
end

--- The byte in `line` of an LSP character; past the line's end it is the line's end.
function M.byte_of(line, character, encoding)
  local passed = 0
  for i = 1, #line do
    local width = units(line:byte(i), encoding)
    if width > 0 and passed >= character then return i - 1 end
    passed = passed + width
  end
  return #line
end

--- The number of UTF-16 code units of `text`.
function M.utf16_length(text)
  local length = 0
  for i = 1, #text do length = length + units(text:byte(i), 'utf-16') end
  return length
end

return M
