-- The user's options, checked once: a wrong one is reported with the others and its default is used.
local M = {}

local function one_of(...)
  local names = { ... }
  return {
    what = '"' .. table.concat(names, '" or "') .. '"',
    holds = function(value) return vim.tbl_contains(names, value) end,
  }
end

local function of_type(kind)
  return { what = 'a ' .. kind, holds = function(value) return type(value) == kind end }
end

local function integer(min, max)
  return {
    what = ('an integer from %d to %d'):format(min, max),
    holds = function(value)
      return type(value) == 'number' and value % 1 == 0 and value >= min and value <= max
    end,
  }
end

local function number(min, max)
  return {
    what = ('a number from %d to %d'):format(min, max),
    holds = function(value) return type(value) == 'number' and value >= min and value <= max end,
  }
end

local command = {
  what = 'a list of strings',
  holds = function(value)
    if type(value) ~= 'table' or #value == 0 then return false end
    for _, word in ipairs(value) do
      if type(word) ~= 'string' then return false end
    end
    return true
  end,
}

local key = {
  what = 'a key, as "<Tab>", or false',
  holds = function(value) return value == false or (type(value) == 'string' and value ~= '') end,
}

-- name -> { default, rule }; a table without a rule holds further options.
local options = {
  cmd = { { 'efimd', 'lsp' }, command },
  enabled = { true, of_type('boolean') },
  filetypes = { {}, of_type('table') }, -- filetype -> boolean; '*' for those that are not named
  trigger = { 'auto', one_of('auto', 'key') },
  debounce_ms = { 0, integer(0, 10000) },
  native = { true, of_type('boolean') },
  menu = { 'hide', one_of('hide', 'show') },
  offer_model = { true, of_type('boolean') },
  server = { -- goes over the daemon's configuration; nil: as configured there
    maxTokens = { nil, integer(1, 4096) },
    stop = { nil, one_of('none', 'line', 'block') },
    temperature = { nil, number(0, 10) },
  },
  keys = {
    accept = { '<Tab>', key },
    accept_word = { '<M-Right>', key },
    accept_line = { '<M-l>', key },
    dismiss = { '<C-]>', key },
    next = { '<M-]>', key },
    previous = { '<M-[>', key },
    trigger = { '<M-\\>', key },
  },
}

local function read(rules, given, path, problems)
  local values = {}
  for name in pairs(given) do
    if rules[name] == nil then table.insert(problems, path .. tostring(name) .. ' is no option of efimd') end
  end
  for name, rule in pairs(rules) do
    local value = given[name]
    if rule[2] == nil then
      if value ~= nil and type(value) ~= 'table' then
        table.insert(problems, path .. name .. ' must be a table')
        value = nil
      end
      values[name] = read(rule, value or {}, path .. name .. '.', problems)
    elseif value == nil or rule[2].holds(value) then
      values[name] = value == nil and vim.deepcopy(rule[1]) or value
    else
      table.insert(problems, ('%s%s must be %s, not %s'):format(path, name, rule[2].what, vim.inspect(value)))
      values[name] = vim.deepcopy(rule[1])
    end
  end
  return values
end

M.values = read(options, {}, '', {})

--- Takes the user's options. Returns the list of their faults, which is usually empty.
function M.set(given)
  local problems = {}
  if given ~= nil and type(given) ~= 'table' then
    table.insert(problems, 'setup() takes a table of options')
    given = nil
  end
  M.values = read(options, given or {}, '', problems)
  table.sort(problems)
  M.problems = problems
  return problems
end

M.problems = {}
return M
