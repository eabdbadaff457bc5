-- A script of wrk: `wrk ... URL -- METHOD PATH TOKENS TYPE BODY`. TOKENS is a file with a bearer token a line; the
-- requests use them in turn. BODY is a file with the body of each request, of the media type TYPE; both may be empty.
-- Prints one line: requests, microseconds, requests that failed, and the latencies p50 and p99 in microseconds.

local requests, last = {}, 0

function init(arguments)
    local method, path, tokens, media_type, body = unpack(arguments)
    local content
    if body ~= "" then
        local file = assert(io.open(body, "rb"))
        content = file:read("*a")
        file:close()
    end
    for token in io.lines(tokens) do
        local headers = { Authorization = "Bearer " .. token }
        if content then headers["Content-Type"] = media_type end
        requests[#requests + 1] = wrk.format(method, path, headers, content)
    end
end

function request()
    last = last % #requests + 1
    return requests[last]
end

function done(summary, latency)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    print("RESULT", summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(99))
end
