-- The one language client of this Neovim, and which buffers it has.
local compat = require('efimd.compat')
local config = require('efimd.config')
local state = require('efimd.state')
local untitled = require('efimd.untitled')
local M = {}

local client_id
local serves = false -- the bridge has answered initialize
local ended = false -- it ended again and again; only :Efimd restart starts another

-- One that ends by itself is started again so often within this time.
local kRestartsMax, kRestartsWithinMs = 3, 60000
local kSigTerm = 15 -- as Neovim ends a client that :LspStop ends at once
local ends = {} -- their times, in ms

local on_attach_hooks = {}
function M.on_attach(hook) table.insert(on_attach_hooks, hook) end

function M.get() return client_id and vim.lsp.get_client_by_id(client_id) end

function M.attached(buf) return client_id ~= nil and vim.lsp.buf_is_attached(buf, client_id) end

local function attach_all()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if require('efimd').is_enabled(buf) then M.attach(buf) end
  end
end

local function may_start_again()
  local now = compat.uv.now()
  ends = vim.tbl_filter(function(time) return now - time < kRestartsWithinMs end, ends)
  table.insert(ends, now)
  return serves and #ends <= kRestartsMax
end

local function on_exit(code, signal, id)
  if id ~= client_id then return end -- of a client that restart() has replaced
  client_id = nil
  local asked = code == 0 and (signal == 0 or signal == kSigTerm)
  if asked or vim.v.exiting ~= vim.NIL then return state.set('stopped') end
  if may_start_again() then return attach_all() end
  ended = true
  local how = ('%s ended %s %d'):format(config.values.cmd[1], signal ~= 0 and 'by signal' or 'with', signal ~= 0 and signal or code)
  state.set('failed', how)
  state.tell('ended', how .. '. :Efimd doctor says what is wrong, :Efimd restart starts it again.', vim.log.levels.ERROR)
end

local function on_init(client)
  if client.id ~= client_id then return end
  serves = true
  M.follow_folder() -- it may have changed meanwhile
  local capabilities = client.server_capabilities or {}
  if not capabilities.inlineCompletionProvider then
    state.set('failed', 'no inline completion')
    state.tell('old', ('%s does not offer inline completion; is it a current efimd?'):format(config.values.cmd[1]),
      vim.log.levels.ERROR)
  elseif state.now.name == 'starting' then
    state.set('ready') -- efim/state says more, where the daemon knows it
  end
end

-- Neovim ends its telling of a buffer's changes with the first one that no client hears, and does not begin again for
-- another client. M.tell_changes() does it then.
local unheard = {} -- buf -> whether there was such a change; nil: nobody listens for one

local function has_client(buf)
  local others = vim.lsp.get_clients and vim.lsp.get_clients({ bufnr = buf }) or vim.lsp.buf_get_clients(buf)
  return M.attached(buf) or next(others) ~= nil
end

local function listen(buf)
  if unheard[buf] ~= nil then return end
  unheard[buf] = false
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function() unheard[buf] = unheard[buf] or not has_client(buf) end,
    on_detach = function() unheard[buf] = nil end,
  })
end

local function text_of(buf)
  return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, true), '\n') .. (vim.bo[buf].endofline and '\n' or '')
end

local languages = {} -- buf -> the language that its document was opened with

local folders = {} -- path -> true: those that the bridge was told of

--- The folder whose files are one project with those of the current folder: its git repository, else itself. A repository of
--- all of the home folder is none.
local function project_folder()
  local here = compat.uv.cwd()
  local folder = here
  while folder and folder ~= compat.uv.os_homedir() and folder ~= vim.fn.fnamemodify(folder, ':h') do
    if compat.uv.fs_stat(folder .. '/.git') then return folder end
    folder = vim.fn.fnamemodify(folder, ':h')
  end
  return here
end

local function client_config()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.textDocument.inlineCompletion = { dynamicRegistration = false }
  local folder = project_folder()
  folders = { [folder or ''] = true }
  return {
    name = 'efimd',
    cmd = config.values.cmd,
    root_dir = folder,
    capabilities = capabilities,
    init_options = { efim = vim.tbl_extend('keep', { receipts = true, state = true }, config.values.server) },
    handlers = state.handlers,
    on_init = on_init,
    on_exit = vim.schedule_wrap(on_exit),
    on_attach = function(client, buf)
      if client.id ~= client_id then return end -- restart() came before it had started
      languages[buf] = vim.bo[buf].filetype
      listen(buf)
      for _, hook in ipairs(on_attach_hooks) do hook(client, buf) end
    end,
  }
end

--- Files and unnamed texts that a person edits; not folders, terminals, prompts and the like.
local function editable(buf)
  return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and vim.bo[buf].modifiable
    and vim.fn.isdirectory(vim.api.nvim_buf_get_name(buf)) == 0
end

--- Whether `buf` became what no person edits after it was attached: a terminal takes over an empty buffer.
function M.is_no_text(buf) return vim.bo[buf].buftype ~= '' end

--- Silent, because 0.7 tells of it.
function M.detach(buf) vim.cmd(('silent lua vim.lsp.buf_detach_client(%d, %d)'):format(buf, client_id)) end

function M.attach(buf)
  if ended or M.attached(buf) or not editable(buf) then return end
  if vim.fn.executable(config.values.cmd[1]) == 0 then
    state.set('failed', 'efimd was not found')
    return state.tell('missing', ("%s was not found. Put it on the PATH, or name it in setup{ cmd = { '/path/to/efimd', 'lsp' } }.")
      :format(config.values.cmd[1]), vim.log.levels.ERROR)
  end
  if not client_id then
    serves = false
    state.set('starting')
  end
  untitled.take(buf)
  client_id = compat.attach(client_config(), buf, client_id)
end

--- Before the server has answered initialize nothing may be sent, and nothing is.
function M.notify(method, params)
  local client = M.get()
  if client and client.initialized then compat.call(client, 'notify', method, params) end
end

--- `:cd` went to another folder. The one before stays: buffers of it may be open.
function M.follow_folder()
  local client, folder = M.get(), project_folder()
  if not client or not client.initialized or not folder or folders[folder] then return end
  folders[folder] = true
  M.notify('workspace/didChangeWorkspaceFolders',
    { event = { added = { { uri = vim.uri_from_fname(folder), name = folder } }, removed = {} } })
end

function M.document(buf) return { uri = vim.uri_from_bufnr(buf) } end

--- Comes before each question.
function M.tell_changes(buf)
  local now = vim.api.nvim_buf_get_changedtick(buf)
  if not unheard[buf] or vim.lsp.util.buf_versions[buf] == now then return end
  M.notify('textDocument/didChange', {
    textDocument = { uri = vim.uri_from_bufnr(buf), version = now },
    contentChanges = { { text = text_of(buf) } },
  })
  vim.lsp.util.buf_versions[buf] = now
end

--- The document `uri` ends, and that of the buffer's name and language of now begins.
local function open_again(buf, uri)
  languages[buf] = vim.bo[buf].filetype
  M.notify('textDocument/didClose', { textDocument = { uri = uri } })
  M.notify('textDocument/didOpen', { textDocument = {
    uri = vim.uri_from_bufnr(buf),
    version = vim.lsp.util.buf_versions[buf] or 0,
    languageId = vim.bo[buf].filetype,
    text = text_of(buf),
  } })
  for _, hook in ipairs(on_attach_hooks) do hook(M.get(), buf) end
end

--- `buf` was written. Where it had no name before, its first document ends and its file's begins. `:write NAME` also takes
--- away the buffer's autocommands, and with them Neovim's own that would do this.
function M.written(buf)
  local uri = M.attached(buf) and untitled.was(buf)
  if uri then open_again(buf, uri) end
end

--- The filetype of `buf` was set; Neovim's own client tells of it only when it opens the document.
function M.filetype_set(buf)
  if M.attached(buf) and languages[buf] and languages[buf] ~= vim.bo[buf].filetype then open_again(buf, vim.uri_from_bufnr(buf)) end
end

local renamed = {} -- buf -> its URI before `:file NAME`, which Neovim's own client follows only when the buffer is written

function M.before_rename(buf) renamed[buf] = M.attached(buf) and vim.uri_from_bufnr(buf) or nil end

function M.after_rename(buf)
  local before = renamed[buf]
  renamed[buf] = nil
  untitled.was(buf)
  if before and before ~= vim.uri_from_bufnr(buf) then open_again(buf, before) end
end

function M.restart()
  local client = M.get()
  if client then compat.call(client, 'stop') end
  client_id, ended, ends = nil, false, {}
  state.forget()
  attach_all()
end

return M
