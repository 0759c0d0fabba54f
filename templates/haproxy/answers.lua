-- Sends a copy of gunicorn's response, so that gunicorn's part of the request ends with it.
--
-- HAProxy's own `http-response return` would write line breaks and letters beyond ASCII as %0A, and would
-- need a list of headers and statuses. portal.cfg.j2 says when, and that the whole body has arrived.
local OF_THE_CONNECTION = {["content-length"] = true, ["connection"] = true, ["transfer-encoding"] = true}

core.register_action("answer_at_once", {"http-res"}, function(txn)
    local reply = txn:reply({status = txn.f:status(), body = txn.f:res_body()})
    for name, values in pairs(txn.http:res_get_headers()) do
        if not OF_THE_CONNECTION[name] then
            for index = 0, #values do
                reply:add_header(name, values[index])
            end
        end
    end
    txn:done(reply)
end)
