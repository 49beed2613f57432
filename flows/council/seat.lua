--!strict
--- One turn of one member, in a run of its own: what a council with `--spread` begins. It asks what the council would ask itself, with the
--- same words, and gives back what the council would have had.

local app = require("./app")
local dissent = require("./dissent")
local json = require("@nietz/json")
local lang = require("./lang")
local list = require("../common/list")
local members = require("./members")
local nietz = require("@nietz")
local persona_turns = require("./persona_turns")
local personas = require("@nietz/personas")
local spread = require("./spread")

local seat = {}

seat.PARAMS = {
	member = { type = "string", required = true, help = "Who speaks" },
	by = { type = "model", help = "The model that speaks [default: the run's]" },
	case = { type = "string", required = true, help = "The council so far, as --spread writes it" },
} :: { [string]: nietz.Param }

--- Returns the council as the member knows it.
local function council_of(case: spread.Case, code: string): app.App
	return {
		doc = case.doc,
		params = {},
		limit = case.limit,
		lang = code,
		t = lang.translator(lang.code(code)),
		moderator = members.moderator(),
		seats = list.map(case.seats, function(slug: string): personas.Persona
			return members.find(slug) :: personas.Persona
		end),
		models = case.models,
		points = case.points,
		book = case.book,
		files = case.files,
		looking = case.looking,
		shown = {},
		cited = {},
		conversation = case.conversation,
		spent = {},
		looked_until = 0,
		apart = true,
	}
end

local function request_of(self: app.App, persona: personas.Persona, turn: spread.Turn): app.ModelRequest
	if turn.kind == "position" then
		return persona_turns.request(self, persona, turn.seen)
	end
	return dissent.request(self, persona, turn.position, turn.made)
end

--- Lets the member speak, and returns what it says.
function seat.run(ctx: nietz.Context): spread.Said
	local persona = members.find(ctx.params.member)
	if persona == nil then
		nietz.usage(`no council persona is called "{ctx.params.member}"`, "each machine that works needs the same personas")
	end
	local case: spread.Case = json.decode(ctx.params.case)
	local self = council_of(case, ctx.lang)
	local value, made = app.ask_model_or_raise(self, request_of(self, persona :: personas.Persona, case.turn))
	return { value = value, made = made, spent = self.spent, shown = self.shown }
end

return seat
