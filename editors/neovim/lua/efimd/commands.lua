-- :Efimd NAME [SCOPE]: :help :Efimd.
local client = require('efimd.client')
local config = require('efimd.config')
local state = require('efimd.state')
local M = {}

local function say(text, level) vim.notify('efimd: ' .. text, level or vim.log.levels.INFO) end

--- The efimd of `cmd`, run with other arguments; `done` gets its exit code and the lines of both streams.
local function run_efimd(arguments, done)
  local command = { config.values.cmd[1] }
  vim.list_extend(command, arguments)
  local lines = {}
  local function collect(_, data) vim.list_extend(lines, data) end
  if vim.fn.executable(command[1]) == 0 then return done(127, { command[1] .. ' was not found' }) end
  vim.fn.jobstart(command, {
    stdin = 'null',
    stdout_buffered = true,
    stderr_buffered = true,
    on_stdout = collect,
    on_stderr = collect,
    on_exit = function(_, code)
      done(code, vim.tbl_filter(function(line) return line ~= '' end, lines))
    end,
  })
end

local kLogLines = 10000 -- of its end

--- Shows `lines` in a window that is no file's. It is made before anything enters it, so that no client attaches to it.
local function show(title, lines)
  local name = 'efimd://' .. title
  for _, old in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(old) == name then vim.api.nvim_buf_delete(old, { force = true }) end
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  vim.api.nvim_buf_set_name(buf, name)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.cmd('botright sbuffer ' .. buf)
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf })
end

local function log_file()
  local folder = vim.env.EFIMD_STATE_DIR
  if not folder or folder == '' then
    local states = vim.env.XDG_STATE_HOME
    folder = (states and states ~= '' and states or vim.fn.expand('~/.local/state')) .. '/efimd'
  end
  return folder .. '/efimd.log'
end

M.commands = {
  status = function()
    run_efimd({ 'status' }, function(_, lines)
      local receipt = state.receipt_text()
      if receipt then vim.list_extend(lines, { '', 'last answer: ' .. receipt }) end
      show('status', lines)
    end)
  end,
  doctor = function()
    run_efimd({ 'doctor' }, function(_, lines) show('doctor', lines) end)
  end,
  purge = function()
    local file = vim.api.nvim_buf_get_name(0)
    if file == '' then return say('this buffer has no file, so it has no cache', vim.log.levels.WARN) end
    run_efimd({ 'cache', 'purge', '--', file }, function(code, lines)
      say(table.concat(lines, '\n'), code == 0 and vim.log.levels.INFO or vim.log.levels.ERROR)
    end)
  end,
  log = function()
    local file = log_file()
    if vim.fn.filereadable(file) == 0 then return say('there is no log yet: ' .. file, vim.log.levels.WARN) end
    show('log', vim.fn.readfile(file, '', -kLogLines))
    vim.cmd('normal! G')
  end,
  toggle = function(scope)
    local on = require('efimd').toggle(scope or 'all')
    say((on and 'on' or 'off') .. ' for ' .. (scope == 'buffer' and 'this buffer'
      or scope == 'filetype' and vim.bo.filetype or 'all buffers'))
  end,
  restart = function() client.restart() end,
  model = function() require('efimd.model').recommend() end,
}

local scopes = { toggle = { 'all', 'filetype', 'buffer' } }

function M.run(arguments)
  local name = arguments[1] or 'status'
  local scope = arguments[2]
  if not M.commands[name] then
    return say('no such command; there are ' .. table.concat(M.names(), ', '), vim.log.levels.ERROR)
  end
  if scope and not vim.tbl_contains(scopes[name] or {}, scope) then
    local takes = scopes[name] and table.concat(scopes[name], ', ') or 'nothing'
    return say(('%s takes %s; not %s'):format(name, takes, scope), vim.log.levels.ERROR)
  end
  M.commands[name](scope)
end

function M.names()
  local names = vim.tbl_keys(M.commands)
  table.sort(names)
  return names
end

function M.complete(lead, line)
  local words = vim.split(line, '%s+')
  local offered = #words <= 2 and M.names() or scopes[words[2]] or {}
  return vim.tbl_filter(function(name) return name:sub(1, #lead) == lead end, offered)
end

return M
