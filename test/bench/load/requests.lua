-- Sends the requests of a file in turn: wrk -s requests.lua URL -- FILE FIRST
-- The file holds whole requests, each ended by a byte 0; a byte 1 in them stands for ten digits that no other request has,
-- counted from FIRST. `done` says in one line of JSON what wrk.ts reads.

local requests = {}
local count = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for request in file:read("*a"):gmatch("%Z+") do requests[#requests + 1] = request end
  file:close()
  count = tonumber(args[2])
end

function request()
  count = count + 1
  return (requests[count % #requests + 1]:gsub("\1", string.format("%010d", count)))
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"micros":%d,"p50Micros":%d,"p95Micros":%d,"p99Micros":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
