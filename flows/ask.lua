--!strict
--- Ask: one question to one model, about texts of the user's own where they give any.

local llm = require("@nietz/llm")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local template = require("@nietz/template")

--- Returns how a text is named to the model: by the file it came from, or by its number.
local function name_of(origin: nietz.Origin?, number: number): string
	if origin ~= nil and origin.kind == "file" and origin.name ~= nil then
		return origin.name
	end
	return if origin ~= nil and origin.kind == "pipe" then "standard input" else `text {number}`
end

--- Returns a line of `=` that stands in none of the texts, so that none of them can end itself.
local function fence(texts: { string }): string
	local mark = "====="
	for _, one in texts do
		while string.find(one, mark, 1, true) do
			mark ..= "="
		end
	end
	return mark
end

--- Returns the texts with their names, each between two fences.
local function set_apart(texts: { string }, names: { string }): string
	local mark = fence(texts)
	local parts = {}
	for number, one in texts do
		table.insert(parts, `{mark} {names[number]}\n{one}\n{mark}\n`)
	end
	return table.concat(parts, "\n")
end

--- Returns the texts that the user gave, those of params first, and what each is called.
local function given(ctx: nietz.Context): ({ string }, { string })
	local texts, names = {}, {}
	local origins = ctx.origins.texts or {}
	for number, one in ctx.params.texts do
		table.insert(texts, one)
		table.insert(names, name_of(origins[number], number))
	end
	for _, attached in ctx.attachments do
		if attached.text ~= nil then
			table.insert(texts, attached.text)
			table.insert(names, attached.name)
		end
	end
	return texts, names
end

--- Returns the images and PDFs that the user gave, or nil where there are none.
local function pictures(ctx: nietz.Context): { llm.Attached }?
	local found: { llm.Attached } = {}
	for _, attached in ctx.attachments do
		if attached.text == nil then
			table.insert(found, attached)
		end
	end
	return if #found > 0 then found else nil
end

return nietz.flow {
	name = "ask",
	host_api = 2,
	summary = "Asks a model one question, about texts of yours if you give any",
	params = {
		question = { type = "string", positional = true, required = true, order = 1, help = "What to ask" },
		texts = {
			type = "string",
			positional = true,
			many = true,
			default = {},
			order = 2,
			help = "What the question is about: @FILE (also an image or a PDF), - for standard input, or words",
		},
		persona = { type = "string", help = "Who answers: one of `nietz personas`" },
	},
	attachments = true,
	permissions = { llm = true },
	run = function(ctx)
		local texts, names = given(ctx)
		local prompt = ctx.params.question
		local system: string? = nil
		if #texts > 0 then
			prompt = set_apart(texts, names) .. "\n" .. prompt
			system = template.render("./ask/prompts/system.md")
		end
		local window, tokens = llm.window(), math.ceil(#prompt / 4)
		if window ~= nil and tokens > window then
			nietz.usage(
				`question and texts have about {tokens} tokens, and {llm.model()} takes {window}`,
				"give less, or a model that takes more (--model)"
			)
		end
		local persona = if ctx.params.persona ~= nil then personas.get(ctx.params.persona) else nil
		local reply = llm.chat {
			persona = persona,
			system = system,
			prompt = prompt,
			attach = pictures(ctx),
			stream = true,
			label = "",
		}
		return reply.text
	end,
}
