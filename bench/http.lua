-- Requests for wrk: wrk -s http.lua URL -- OPERATION TOKEN FIRST SHARE THREADS DOCUMENT, counted as bench/operations.py counts.
-- What pgbench does with a kept statement is done here with a text made once, in which key and version stand at their places:
-- whoever sends the requests runs on the same cores as who answers them.
local threads = 0

function setup(thread)
  thread:set("id", threads)
  threads = threads + 1
end

-- As wide as what is put there.
local KEY, VERSION = "kkkkkkkkkkkk", "vvvvvv"
local RECORD = "/v1/records/bench/" .. KEY

local requests = {
  healthz = function() return "GET", "/healthz" end,
  claim = function() return "POST", RECORD .. "/fields/task/claim", '{"lease_seconds":1}' end,
  write = function(document)
    return "PUT", RECORD .. "/fields/plan", '{"value":' .. document .. ',"expected_version":' .. VERSION .. ',"evidence":"log@1"}'
  end,
  save = function(document) return "PUT", RECORD .. "/checkpoint", '{"document":' .. document .. "}" end,
  load = function() return "GET", RECORD .. "/checkpoint" end,
  get = function() return "GET", RECORD end,
}

local first, share, count, k
local turn, texts = 0, {}

local function text(operation, token, document)
  local method, path, body = requests[operation](document)
  local whole = wrk.format(method, path, { Authorization = "Bearer " .. token, ["Content-Type"] = "application/json" }, body)
  return (whole:gsub("%%", "%%%%"):gsub(KEY, "%%012d"):gsub(VERSION, "%%6d"))
end

function init(args)
  local operation, token, document = args[1], args[2], args[6]
  first, share, count = tonumber(args[3]), tonumber(args[4]), tonumber(args[5])
  -- One save of 64 KiB, then nine reads, a load among them.
  local turns = { operation }
  if operation == "mixed" then
    turns = { "save", "get", "get", "get", "get", "load", "get", "get", "get", "get" }
    document = '{"goal":"measure","progress":"' .. string.rep("0123456789abcdef", 4096) .. '"}'
  end
  for place, one in ipairs(turns) do texts[place] = text(one, token, document) end
  -- wrk asks the first thread for a request that it never sends.
  k = id == 0 and -2 or -1
end

function request()
  k = k + 1
  turn = turn % #texts + 1
  return string.format(texts[turn], first + id + count * (k % share), 1 + math.floor(k / share))
end
