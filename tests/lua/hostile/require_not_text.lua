-- expect: module-not-found
return require(setmetatable({}, {
  __tostring = function()
    return "./files/link"
  end,
}))
