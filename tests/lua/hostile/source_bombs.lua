-- expect: done or flow-limit
-- Sources that the parser or the compiler could take long for, or fall over.
local names = {
	"table", "functions", "blocks", "not", "powers", "joined", "sum", "calls", "members", "type", "generic", "union",
	"interpolated", "branches", "conditions", "casts", "faults", "values", "loops", "inlined",
}
for _, name in names do
	pcall(require, "./files/source_" .. name)
end
