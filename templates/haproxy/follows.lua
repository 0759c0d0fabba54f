-- Cuts the streams to the apps when this portal host does not follow the database any more.
--
-- HAProxy's health check of the agent (backend host of portal.cfg.j2) does so in the process that accepts
-- connections. A process from before a reload, which only has open streams, makes no checks.
-- portal.cfg.j2 sets the variables; HAProxy 2.6 passes no arguments.
local address = os.getenv("SLIPWAY_AGENT")
local most = tonumber(os.getenv("SLIPWAY_AGENT_CHECKS"))
local pause = tonumber(os.getenv("SLIPWAY_AGENT_INTERVAL"))
local patience = tonumber(os.getenv("SLIPWAY_AGENT_TIMEOUT"))

local function is_open()
    local socket = core.tcp()
    socket:settimeout(patience / 1000)
    local line = socket:connect(address) and socket:receive("*l")
    socket:close()
    return line == "open"
end

local function cut()
    for _, backend in pairs(core.backends) do
        local gateway = backend.servers["gateway"]
        if gateway ~= nil then
            gateway:shut_sess()
        end
    end
end

core.register_task(function()
    local failed = 0
    while true do
        core.msleep(pause)
        failed = is_open() and 0 or failed + 1
        -- Also later: a stream may have been on its way.
        if failed >= most then
            cut()
        end
    end
end)
