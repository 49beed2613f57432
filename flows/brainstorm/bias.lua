--!strict
--- Ways of thinking that go wrong unnoticed, heard by the user's own words. The list is data (`biases.yaml`); here is
--- when one is named: rarely, so that it is heard.

local app = require("./app")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local bias = {}

export type Bias = { slug: string, signals: { string }, name: { [string]: string }, en: string, fr: string }
--- One that was named: which, and when.
export type Raised = { slug: string, iteration: number }

bias.ALL = yaml.load("./biases.yaml").biases :: { Bias }

--- Nothing can be heard before this iteration.
bias.FIRST = 3
--- So many different signals make an alert; one can be a way of speaking.
bias.SIGNALS = 2
--- The most alerts in one session, and how many iterations lie between two.
bias.MOST = 3
bias.APART = 2

local function signals(one: Bias, folded: string): number
	local count = 0
	for _, signal in one.signals do
		count += if string.find(folded, signal, 1, true) ~= nil then 1 else 0
	end
	return count
end

--- Returns the bias to name now, the one with the most signals, or nil. `said` is all that the user said. Pure.
function bias.heard(said: string, raised: { Raised }, iteration: number): Bias?
	local last = raised[#raised]
	if iteration < bias.FIRST or #raised >= bias.MOST or (last ~= nil and iteration - last.iteration < bias.APART) then
		return nil
	end
	local named: { [string]: boolean } = {}
	for _, one in raised do
		named[one.slug] = true
	end
	local folded = text.fold(said)
	local found: Bias? = nil
	local most = bias.SIGNALS - 1
	for _, one in bias.ALL do
		local count = if named[one.slug] then 0 else signals(one, folded)
		if count > most then
			found, most = one, count
		end
	end
	return found
end

--- Names a bias where one is heard, with the question that answers it.
function bias.watch(self: app.App)
	local s = self.doc.session
	local state = s.flow_state
	local said: { string } = {}
	for _, entry in s.history do
		table.insert(said, table.concat(entry.responses, "\n"))
	end
	for _, note in state.notes do
		if note.kind == "user" then
			table.insert(said, note.text)
		end
	end
	local raised: { Raised } = state.biases or {}
	local found = bias.heard(table.concat(said, "\n"), raised, s.iteration)
	if found == nil then
		return
	end
	table.insert(raised, { slug = found.slug, iteration = s.iteration })
	state.biases = raised
	ui.say(self.t("bias.alert", { name = found.name[self.lang], question = (found :: any)[self.lang] }))
	app.save(self)
end

return bias
