-- :checkhealth efimd
local compat = require('efimd.compat')
local config = require('efimd.config')
local state = require('efimd.state')
local M = {}

local health = vim.health or require('health')
local start, ok = health.start or health.report_start, health.ok or health.report_ok
local warn, bad = health.warn or health.report_warn, health.error or health.report_error

local function check_daemon(program)
  if vim.fn.executable(program) == 0 then
    return bad(program .. ' was not found', { "put it on the PATH, or set cmd in require('efimd').setup()" })
  end
  ok(vim.fn.exepath(program) .. ': ' .. vim.trim(vim.fn.system({ program, '--version' })))
  local decoded, doctor = pcall(vim.fn.json_decode, vim.fn.system({ program, 'doctor', '--json' }))
  if not decoded or type(doctor) ~= 'table' or type(doctor.findings) ~= 'table' then
    return bad('`' .. program .. ' doctor --json` gave no report', { 'is it a current efimd?' })
  end
  for _, finding in ipairs(doctor.findings) do
    -- In backquotes, because the report takes *...* for a tag and hides its stars.
    local text = ('%s: %s'):format(finding.subject, finding.what):gsub('[^%s;]*%*[^%s;]*', '`%0`')
    local report = ({ good = ok, note = warn, wrong = bad })[finding.level] or warn
    report(text, finding.remedy ~= '' and { finding.remedy } or nil)
  end
end

local function check_editor()
  local native = compat.has_native and config.values.native
  ok(native and "suggestions are shown by Neovim's own inline completion" or 'suggestions are shown by the plugin')
  for _, problem in ipairs(config.problems) do bad(problem, { 'see :help efimd-options' }) end
  local now = state.now
  if now.name == 'stopped' then
    warn('no buffer has been attached', { "call require('efimd').setup() and open a file" })
  elseif now.name == 'failed' then
    bad(now.message)
  else
    ok('the model is ' .. now.name)
  end
  local receipt = state.receipt_text()
  if receipt then ok('last answer: ' .. receipt) end
end

function M.check()
  start('efimd: this editor')
  check_editor()
  start('efimd: this machine')
  check_daemon(config.values.cmd[1])
end

return M
