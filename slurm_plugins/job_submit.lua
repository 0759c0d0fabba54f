-- Requests for GPUs that cannot work are refused when they are made, in plain words
-- (slurm.conf: JobSubmitPlugins=lua; this file is /etc/slurm/job_submit.lua on slurmctld's host).
-- It decides the shape only. What a job really gets is decided by Slurm, and fenced on the node.
--
-- The site's kinds of GPUs are a table in a file of their own, made by `slipway-gpu lua`:
--     return {{name = "a100", shards = 8, least = 1}, {name = "h100", shards = 0, least = 0}}
-- A kind with 0 shards is given whole. Without the file any kind and any number pass.

local KINDS_FILE = SLIPWAY_KINDS_FILE or "/etc/slurm/slipway_gpu.lua"

-- Read at each request that names shards: an administrator's change counts at once.
local function read_kinds()
    local chunk = loadfile(KINDS_FILE)
    if not chunk then
        return nil
    end
    local fine, kinds = pcall(chunk)
    if fine and type(kinds) == "table" then
        return kinds
    end
    slurm.log_error("slipway: %s holds no table of GPUs", KINDS_FILE)
    return nil
end

-- "gres/shard:a100:2,gres/gpu" -> {{name = "shard", kind = "a100", count = 2}, {name = "gpu"}}
-- Slurm up to 23.02 writes "gres:" in front instead of "gres/".
local function parse(text)
    local found = {}
    for item in string.gmatch(text or "", "[^,]+") do
        item = string.gsub(item, "^%s*gres[/:]", "")
        local one = {}
        for word in string.gmatch(item, "[^:=]+") do
            if not one.name then
                one.name = word
            elseif string.match(word, "^%d+$") then
                one.count = tonumber(word)
            else
                one.kind = word
            end
        end
        found[#found + 1] = one
    end
    return found
end

local function only(name, items)
    local found = {}
    for _, item in ipairs(items) do
        if item.name == name then
            found[#found + 1] = item
        end
    end
    return found
end

local function names(kinds)
    local found = {}
    for _, kind in ipairs(kinds) do
        found[#found + 1] = kind.name
    end
    return table.concat(found, ", ")
end

-- The kind that is asked for: itself, or why there is none such.
local function find_kind(shard, kinds)
    if not shard.kind then
        if #kinds == 1 then
            return kinds[1]
        end
        return nil, "There are several kinds of GPUs here. Say which one: --gres=shard:KIND:NUMBER "
            .. "with KIND one of " .. names(kinds) .. "."
    end
    for _, kind in ipairs(kinds) do
        if kind.name == shard.kind then
            return kind
        end
    end
    return nil, "There are no GPUs of the kind " .. shard.kind .. " here. There are: " .. names(kinds) .. "."
end

local function check_number(shard, kinds)
    local kind, why = find_kind(shard, kinds)
    if not kind then
        return why
    end
    if kind.shards == 0 then
        return "GPUs of the kind " .. kind.name .. " are given whole. Ask for one: --gres=gpu:"
            .. kind.name .. ":1"
    end
    shard.count = shard.count or kind.least
    if shard.count > kind.shards then
        local whole = kind.name == "" and "gpu" or "gpu:" .. kind.name
        return "One GPU has " .. kind.shards .. " shards, and you asked for " .. shard.count
            .. ". Ask for at most " .. kind.shards .. ", or for whole GPUs: --gres=" .. whole .. ":NUMBER"
    end
end

local function is_set(number)
    return number and number < slurm.NO_VAL16
end

-- Why a request cannot work; nil when it can.
local function refusal(job)
    local per_node = parse(job.tres_per_node)
    for _, field in ipairs({"tres_per_job", "tres_per_socket", "tres_per_task"}) do
        if #only("shard", parse(job[field])) > 0 then
            return "Shards of a GPU are asked for with --gres=shard:NUMBER, and not per job, socket or task."
        end
    end
    local shards = only("shard", per_node)
    if #shards == 0 then
        return nil
    end
    if #shards > 1 then
        return "Ask for shards of one kind of GPU only."
    end
    local gpus = #only("gpu", per_node)
    for _, field in ipairs({"tres_per_job", "tres_per_socket", "tres_per_task"}) do
        gpus = gpus + #only("gpu", parse(job[field]))
    end
    if gpus > 0 then
        return "A job has either shards of one GPU (--gres=shard:NUMBER) or whole GPUs "
            .. "(--gres=gpu:NUMBER), not both."
    end
    if is_set(job.min_nodes) and job.min_nodes > 1 then
        return "Shards are parts of one GPU on one node, and you asked for " .. job.min_nodes
            .. " nodes. Ask for one node, or for whole GPUs: --gres=gpu:NUMBER"
    end
    local kinds = read_kinds()
    return kinds and check_number(shards[1], kinds), shards[1]
end

-- What was not said: how many shards, and that all tasks run where the GPU is.
local function complete(job, shard)
    if shard.count then
        local words = {"gres/shard"}
        words[#words + 1] = shard.kind
        words[#words + 1] = tostring(shard.count)
        local items = {}
        for item in string.gmatch(job.tres_per_node, "[^,]+") do
            local is_shard = string.match(item, "shard") and parse(item)[1].name == "shard"
            items[#items + 1] = is_shard and table.concat(words, ":") or item
        end
        job.tres_per_node = table.concat(items, ",")
    end
    job.min_nodes = 1
    job.max_nodes = 1
end

local function check(job, new)
    local why, shard = refusal(job)
    if why then
        slurm.log_user("%s", why)
        return slurm.ESLURM_INVALID_GRES or slurm.ERROR
    end
    if new and shard then
        complete(job, shard)
    end
    return slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    return check(job_desc, true)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    return check(job_desc, false)
end

return slurm.SUCCESS
