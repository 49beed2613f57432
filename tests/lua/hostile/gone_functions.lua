-- expect: done
-- Nothing of the stock library that could reach out, and none of the functions that look behind the sandbox.
for _, name in {
  "loadstring", "getfenv", "setfenv", "newproxy", "collectgarbage", "gcinfo", "dofile", "loadfile", "load", "io",
  "package", "_G", "jit", "ffi", "nietz", "host",
} do
  local found = select(2, pcall(function()
    return getmetatable("").__index[name]
  end))
  assert(found == nil, name)
end
assert(loadstring == nil and getfenv == nil and setfenv == nil and newproxy == nil and collectgarbage == nil)
assert(gcinfo == nil and dofile == nil and loadfile == nil and load == nil and io == nil and package == nil)
assert(_G == nil and os.execute == nil and os.getenv == nil and os.remove == nil and os.exit == nil)
assert(debug.getinfo == nil and debug.info == nil and debug.sethook == nil and debug.getupvalue == nil)
assert(string.dump == nil and math.randomseed == nil)
