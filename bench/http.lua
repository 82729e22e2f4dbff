-- Requests for wrk: wrk -s http.lua URL -- OPERATION TOKEN FIRST SHARE THREADS DOCUMENT, counted as bench/operations.py counts.
local threads = 0

function setup(thread)
  thread:set("id", threads)
  threads = threads + 1
end

local operation, token, first, share, count, document, k
local step = 0

function init(args)
  operation, token, first, share, count, document = args[1], args[2], tonumber(args[3]), tonumber(args[4]), tonumber(args[5]), args[6]
  if operation == "mixed" then document = '{"goal":"measure","progress":"' .. string.rep("0123456789abcdef", 4096) .. '"}' end
  -- wrk asks the first thread for a request that it never sends.
  k = id == 0 and -2 or -1
end

local function record(n) return string.format("/v1/records/bench/%d", n) end

local make = {
  healthz = function() return "GET", "/healthz" end,
  claim = function(path) return "POST", path .. "/fields/task/claim", '{"lease_seconds":1}' end,
  write = function(path, v)
    return "PUT", path .. "/fields/plan", string.format('{"value":%s,"expected_version":%d,"evidence":"log@1"}', document, v)
  end,
  save = function(path) return "PUT", path .. "/checkpoint", '{"document":' .. document .. "}" end,
  load = function(path) return "GET", path .. "/checkpoint" end,
  get = function(path) return "GET", path end,
}

-- One save of 64 KiB, then nine reads, a load among them.
function make.mixed(path)
  step = (step + 1) % 10
  return make[step == 0 and "save" or step == 5 and "load" or "get"](path)
end

function request()
  k = k + 1
  local method, path, body = make[operation](record(first + id + count * (k % share)), 1 + math.floor(k / share))
  return wrk.format(method, path, { Authorization = "Bearer " .. token, ["Content-Type"] = "application/json" }, body)
end
