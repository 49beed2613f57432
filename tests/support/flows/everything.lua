--!strict
-- Uses every kind of effect that there is, so that a run of it can be killed in each.
local nietz = require("@nietz")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local llm = require("@nietz/llm")
local random = require("@nietz/random")
local task = require("@nietz/task")
local ui = require("@nietz/ui")

local notes = documents.collection("notes")
local rows = documents.collection("rows")

local function note(slug, text, more)
	return notes:save { format = "2", slug = slug, text = text, more = more }
end

local function branch(name)
	return function()
		local reply = llm.chat { prompt = "branch " .. name }
		note("branch-" .. name, reply.text)
		return reply.text
	end
end

return nietz.flow {
	name = "everything",
	summary = "Uses every kind of effect",
	permissions = { llm = true },
	collections = {
		notes = {
			path = "notes/{slug}.yaml",
			schema = {
				type = "object",
				required = { "format", "slug", "text" },
				additionalProperties = false,
				properties = {
					format = { const = "2" },
					slug = { type = "string" },
					text = { type = "string" },
					more = { type = "array", items = { type = "string" } },
				},
			},
			version = {
				field = "/format",
				current = "2",
				migrations = {
					["1"] = function(doc)
						return { format = "2", slug = doc.slug, text = "was: " .. doc.body }
					end,
				},
			},
		},
		rows = {
			path = "rows.jsonl",
			schema = { type = "object", required = { "what" }, properties = { what = { type = "string" } } },
		},
	},
	run = function()
		ui.say("# Begin")
		ui.status("not recorded")
		local topic = ui.ask { id = "topic", prompt = "What is it about?" }
		local colour = ui.choose { id = "colour", prompt = "Which?", options = { "red", "green" } }
		local old = notes:load("old")
		assert(notes:load("absent") == nil)
		local plain = llm.chat { prompt = "plain " .. string.rep(topic .. " ", 400) }
		note("plain", plain.text, { clock.now(), random.uuid(), tostring(random.integer(1, 1000)), colour, old.text })
		local sized = llm.chat {
			prompt = "size",
			schema = { type = "object", required = { "size" }, properties = { size = { enum = { "S", "M" } } } },
		}
		local looked = llm.chat {
			prompt = "look it up",
			tools = {
				lookup = {
					description = "Looks a word up",
					parameters = {
						type = "object",
						required = { "word" },
						properties = { word = { type = "string" } },
					},
					run = function(arguments)
						rows:append { what = "looked up " .. arguments.word }
						return { meaning = "a drink" }
					end,
				},
			},
		}
		local ok, problem: any = pcall(llm.chat, { prompt = "refuse" })
		assert(not ok and problem.code == "model-refused")
		ui.say("handled " .. problem.code)
		local replies = task.all { a = branch("a"), b = branch("b"), c = branch("c") }
		local sure = task.scope("closing", function()
			note("doomed", "not for long")
			rows:append { what = "closing" }
			return ui.confirm { id = "sure", prompt = "Sure?" }
		end)
		notes:delete("doomed")
		rows:append { what = sized.value.size }
		local plain_note = notes:load("plain")
		plain_note.text ..= " " .. looked.text
		notes:save(plain_note)
		return { notes = #notes:list(), rows = #rows:rows(), sure = sure, replies = replies, plain = plain_note }
	end,
}
