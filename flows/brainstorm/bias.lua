--!strict
--- Biases that the user's own words show. The list is data (`biases/*.yaml`); here is when one is named: rarely, so that it is
--- taken seriously.

local app = require("./app")
local data_files = require("../common/data_files")
local session = require("./session")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local bias = {}

export type Bias = { slug: string, signals: { string }, name: { [string]: string }, en: string }
--- A bias that was named, and in which iteration.
export type Alert = { slug: string, iteration: number }

bias.ALL = data_files.ordered(yaml.load_all("./biases", { schema = "./bias.schema.json" })) :: { Bias }

--- No bias is named before this iteration.
bias.FIRST_ITERATION = 3
--- How many different signals make an alert: a single one may be a way of speaking.
bias.MIN_SIGNALS = 2
--- The most alerts in one session, and how many iterations lie between two.
bias.MAX_ALERTS = 3
bias.MIN_DISTANCE = 2

local function count_signals(one: Bias, folded: string): number
	local count = 0
	for _, signal in one.signals do
		count += if string.find(folded, signal, 1, true) ~= nil then 1 else 0
	end
	return count
end

--- Returns the bias to name now, the one with the most signals, or nil. `said` is all that the user said. Pure.
function bias.find(said: string, raised: { Alert }, iteration: number): Bias?
	local last = raised[#raised]
	if
		iteration < bias.FIRST_ITERATION
		or #raised >= bias.MAX_ALERTS
		or (last ~= nil and iteration - last.iteration < bias.MIN_DISTANCE)
	then
		return nil
	end
	local named: { [string]: boolean } = {}
	for _, one in raised do
		named[one.slug] = true
	end
	local folded = text.fold(said)
	local found: Bias? = nil
	local most = bias.MIN_SIGNALS - 1
	for _, one in bias.ALL do
		local count = if named[one.slug] then 0 else count_signals(one, folded)
		if count > most then
			found, most = one, count
		end
	end
	return found
end

--- Names the bias that the user's words show, if any, with the question that helps against it.
function bias.announce(self: app.App)
	local s = self.doc.session
	local state = self.doc.nietz
	local said: { string } = {}
	for _, entry in session.counted_history(self.doc) do
		table.insert(said, table.concat(entry.responses, "\n"))
	end
	for _, note in session.notes(self.doc, { "user" }) do
		table.insert(said, note.text)
	end
	local raised: { Alert } = state.biases or {}
	local found = bias.find(table.concat(said, "\n"), raised, s.iteration)
	if found == nil then
		return
	end
	table.insert(raised, { slug = found.slug, iteration = s.iteration })
	state.biases = raised
	local name, question = translations.pick(found.name, self.lang), translations.pick(found :: any, self.lang)
	ui.say(self.t("bias.alert", { name = name, question = question }))
	app.save(self)
end

return bias
