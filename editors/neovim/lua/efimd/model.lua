-- Offers the model that efimd recommends for this machine, once; :Efimd model does it at any time.
local config = require('efimd.config')
local state = require('efimd.state')
local M = {}

local kGiB = 1024 * 1024 * 1024

local function say(text, level) vim.notify('efimd: ' .. text, level or vim.log.levels.INFO) end

local function decoded(text)
  local ok, value = pcall(vim.fn.json_decode, text)
  return ok and type(value) == 'table' and value or nil
end

--- Remembers over sessions that the offer was shown.
local function shown_file() return vim.fn.stdpath('data') .. '/efimd-model-offered' end

local function note_shown(name)
  vim.fn.mkdir(vim.fn.stdpath('data'), 'p')
  vim.fn.writefile({ name }, shown_file())
end

--- Runs efimd; `on_line` gets each line of its stdout, `done` its exit code, both streams as texts.
local function run(arguments, done, on_line)
  local command = vim.list_extend({ config.values.cmd[1] }, arguments)
  if vim.fn.executable(command[1]) == 0 then return done(127, '', command[1] .. ' was not found') end
  local out, err, rest = {}, {}, ''
  local function on_stdout(_, data)
    -- The first piece goes on with the last line, which had no end yet.
    data[1] = rest .. data[1]
    rest = table.remove(data)
    for _, line in ipairs(data) do
      table.insert(out, line)
      if on_line then on_line(line) end
    end
  end
  return vim.fn.jobstart(command, {
    stdin = 'null',
    on_stdout = on_stdout,
    on_stderr = function(_, data) vim.list_extend(err, data) end,
    on_exit = function(_, code)
      if rest ~= '' then table.insert(out, rest) end
      done(code, table.concat(out, '\n'), vim.trim(table.concat(err, '\n')))
    end,
  })
end

--- Loads a model, which is then in use. Progress is a message each tenth.
function M.get(name)
  local tenth, failure = -1, nil
  say('loading ' .. name)
  return run({ 'model', 'get', '--json', '--use', '--yes', '--no-speed', name }, function(code, _, err)
    if code == 0 then return say(name .. ' is in use') end
    say(failure or (err ~= '' and err or 'model get ended with ' .. code), vim.log.levels.ERROR)
  end, function(line)
    local event = decoded(line) or {}
    if event.event == 'failed' then failure = event.reason .. (event.remedy ~= '' and '; ' .. event.remedy or '') end
    if event.event ~= 'progress' or event.totalBytes <= 0 then return end
    local now = math.floor(10 * event.bytes / event.totalBytes)
    if now > tenth then say(('%s: %d %% of %.1f GiB'):format(name, 10 * now, event.totalBytes / kGiB)) end
    tenth = math.max(tenth, now)
  end)
end

--- Names the best model for this machine, with its size and licence, and asks whether to get it.
function M.recommend()
  run({ 'model', 'recommend', '--json' }, function(_, out, err)
    local found = decoded(out)
    if not found then return say(err ~= '' and err or out, vim.log.levels.ERROR) end
    local best = found.recommended
    if type(best) ~= 'table' then return say("none of the models that it knows fits into this machine's memory") end
    local prompt = ('efimd recommends %s for this machine (%.1f GiB, %s): %s.'):format(
      best.name, best.bytes / kGiB, best.license, best.reason)
    vim.ui.select({ 'Get it', 'No' }, { prompt = prompt }, function(answer)
      if answer == 'Get it' then M.get(best.name) end
    end)
  end)
end

--- Says once that there are better models, if only the bundled one is there. False if it was said before, or is not wanted.
function M.offer()
  if not config.values.offer_model or vim.fn.filereadable(shown_file()) == 1 then return false end
  run({ 'model', 'list', '--json' }, function(code, out)
    local models = decoded(out)
    if code ~= 0 or not models or #models == 0 then return end
    for _, model in ipairs(models) do
      if not model.bundled then return end
    end
    run({ 'model', 'recommend', '--json' }, function(_, said)
      local best = (decoded(said) or {}).recommended
      if type(best) ~= 'table' or vim.fn.filereadable(shown_file()) == 1 then return end
      if not pcall(note_shown, best.name) then return end -- it would be said at each start
      -- A message, not a question: nobody is interrupted while typing.
      state.tell('model', ('this is the small bundled model. For this machine %s is recommended (%.1f GiB, %s): :Efimd model gets it.')
        :format(best.name, best.bytes / kGiB, best.license), vim.log.levels.INFO)
    end)
  end)
  return true
end

return M
