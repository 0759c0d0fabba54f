-- Holds a request for files until the file server of its user runs: the portal is asked to start it.
--
-- Stock programs repeat no request and follow no redirect with a body, so they get no answer meanwhile. HAProxy
-- reads no more of the body than its buffer holds. portal.cfg.j2 sets the variable.
local address = os.getenv("SLIPWAY_FILES_STARTS")
local PATIENCE = 60 -- seconds for all attempts
local LONGEST_ANSWER = 30 -- seconds of one attempt
local OF_THE_BODY = {
    ["content-length"] = true, ["transfer-encoding"] = true, ["content-encoding"] = true, ["expect"] = true,
    ["connection"] = true, ["upgrade"] = true, ["trailer"] = true, ["te"] = true,
}

local function head(txn)
    local source = txn.f:src()
    local family = source:find(":", 1, true) and "TCP6" or "TCP4"
    local lines = {
        ("PROXY %s %s %s %d %d"):format(family, source, source, txn.f:src_port(), txn.f:src_port()),
        txn.f:method() .. " " .. txn.f:url() .. " HTTP/1.1",
    }
    for name, values in pairs(txn.http:req_get_headers()) do
        if not OF_THE_BODY[name] then
            for index = 0, #values do
                lines[#lines + 1] = name .. ": " .. values[index]
            end
        end
    end
    return table.concat(lines, "\r\n") .. "\r\nConnection: close\r\n\r\n"
end

-- The portal's answer: status, list of headers, body; status nil if there is none.
local function ask(txn)
    local socket = core.tcp()
    socket:settimeout(LONGEST_ANSWER)
    if not socket:connect(address) then
        return nil
    end
    socket:send(head(txn))
    local text = socket:receive("*a") or ""
    socket:close()
    local first, rest = text:match("^HTTP/1%.[01] (%d%d%d)[^\r\n]*\r\n(.*)$")
    if not first then
        return nil
    end
    local fields, body = rest:match("^(.-\r\n)\r\n(.*)$")
    local headers = {}
    for name, value in (fields or ""):gmatch("([^:\r\n]+): *([^\r\n]*)\r\n") do
        headers[#headers + 1] = {name:lower(), value}
    end
    return tonumber(first), headers, body or ""
end

local function value_of(headers, wanted)
    for _, header in ipairs(headers) do
        if header[1] == wanted then
            return header[2]
        end
    end
end

local function relay(txn, status, headers, body)
    local reply = txn:reply({status = status, body = body})
    for _, header in ipairs(headers) do
        if not OF_THE_BODY[header[1]] then
            reply:add_header(header[1], header[2])
        end
    end
    txn:done(reply)
end

core.register_action("start_file_server", {"http-req"}, function(txn)
    local deadline = core.now().sec + PATIENCE
    while true do
        local status, headers, body = ask(txn)
        local state = status and value_of(headers, "x-slipway-files")
        if state == "started" then
            return
        end
        local pause = state == "starting" and tonumber(value_of(headers, "retry-after"))
        if not pause or core.now().sec + pause > deadline then
            if status then
                relay(txn, status, headers, body)
            end
            return -- without an answer of the portal: there is no route, which is refused
        end
        core.msleep(pause * 1000)
    end
end)
