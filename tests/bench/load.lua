-- A script of wrk: `wrk ... URL -- REQUESTS BODY`. Both are files. REQUESTS has the head of each request, with its
-- empty line, then a number in hexadecimal digits, or nothing, and the end of a line; they are sent in turn. BODY is the
-- body of all of them, which may be empty; the number takes the place of as many `#` in it, so that no two bodies are
-- alike. Prints one line: requests, microseconds, requests that failed, and the latencies p50 and p99 in microseconds.

local heads, numbers, last = {}, {}, 0
local before, after

local function read(path)
    local file = assert(io.open(path, "rb"))
    local content = file:read("*a")
    file:close()
    return content
end

function init(arguments)
    local body = read(arguments[2])
    for head, number in read(arguments[1]):gmatch("(.-\r\n\r\n)(%x*)\n") do
        heads[#heads + 1], numbers[#numbers + 1] = head, number
    end
    if numbers[1] == "" then
        for index, head in ipairs(heads) do heads[index] = head .. body end
    else
        local first, final = body:find(string.rep("#", #numbers[1]), 1, true)
        before, after = body:sub(1, first - 1), body:sub(final + 1)
    end
end

function request()
    last = last % #heads + 1
    if not before then return heads[last] end
    return heads[last] .. before .. numbers[last] .. after
end

function done(summary, latency)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    print("RESULT", summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(99))
end
