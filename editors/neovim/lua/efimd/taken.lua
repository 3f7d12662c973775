-- Tells the daemon what was taken: the whole item by its command, a part by efim/didPartiallyAccept.
local client = require('efimd.client')
local compat = require('efimd.compat')

return function(buf, part, rest, command)
  local connection = client.get()
  if not connection then return end
  if #part < #rest then
    return client.notify('efim/didPartiallyAccept',
      { textDocument = client.document(buf), acceptedLength = compat.utf16_length(part) })
  end
  if command then
    compat.call(connection, 'request', 'workspace/executeCommand',
      { command = command.command, arguments = command.arguments }, function() end, buf)
  end
end
