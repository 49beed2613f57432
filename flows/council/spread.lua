--!strict
--- `--spread`: a member speaks in a run of its own, which on a store whichever worker is free does. What it must know goes along as one
--- text, and what it says comes back with what that took. `seat.lua` is the other end.

local json = require("@nietz/json")
local ledger = require("../common/ledger")
local look = require("../common/look")
local options = require("./options")
local session = require("./session")
local task = require("@nietz/task")

local spread = {}

--- What a member is asked: its position in a cycle, where `seen` are the points that it answers; or what it says to an answer, and where
--- it stood then.
export type Turn = { kind: "position", seen: { any } } | { kind: "review", position: session.Position, made: session.Decision }

--- A council as a member must know it.
export type Case = {
	turn: Turn,
	doc: session.Session,
	limit: options.Limit,
	--- Who sits in it, by their slugs.
	seats: { string },
	models: { [string]: string },
	points: { any },
	book: ledger.Ledger,
	files: { any },
	looking: boolean,
	conversation: { string },
}

--- What calls of one purpose used; `cost` is nil as soon as one of them has no known price.
export type Spent = { calls: number, input: number, output: number, cached: number, cost: number?, priced: boolean }

--- What a member says, what it took, and the lines of the project that it was shown.
export type Said = { value: session.Values, made: session.Made, spent: { [string]: Spent }, shown: { look.Line } }

--- Lets a member speak in a run of its own, by this model where it has one of its own. Raises what that run failed with.
function spread.ask(slug: string, model: string?, case: Case): Said
	return task.spawn("council seat", { member = slug, by = model, case = json.encode(case) }).result
end

return spread
