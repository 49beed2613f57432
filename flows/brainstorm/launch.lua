--!strict
--- Which session a run works on: one that exists or a new one; and the list of sessions.

local clock = require("@nietz/clock")
local dialogue = require("./dialogue")
local documents = require("@nietz/documents")
local lang = require("./lang")
local leader = require("./leader")
local list = require("../common/list")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local session = require("./session")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local launch = {}

--- Finished sessions are kept for this many days.
launch.DAYS = 30
local FOLDER = ".project-memory/brainstorm-sessions"
--- The longest slug: a name and not a sentence.
local LONGEST_SLUG = 48

local sessions = documents.collection("sessions")

--- Returns when a session was last touched, as far as its file says: at least its id has a date.
function launch.last_change(s: session.Session): string
	local latest = s.history and s.history[#s.history]
	local date = string.match(s.id, "(%d%d%d%d%-%d%d%-%d%d)$") or "1970-01-01"
	return s.updated or (latest and latest.timestamp) or s.created or s.started_at or `{date}T00:00:00Z`
end

--- Returns the words that describe a session in a list.
local function session_vars(t: lang.Say, s: session.Session, now: number): lang.Vars
	local updated = clock.parse(launch.last_change(s)) or now
	return {
		name = s.slug,
		slug = s.slug,
		ems = s.ems,
		ago = lang.time_ago(t, now - updated),
		phase = t(`phases.{s.phase}`),
		status = t(`statuses.{s.status}`),
		iteration = s.iteration,
	}
end

--- Returns the sessions that can be read, latest first; says which files are broken, and does not touch those.
function launch.readable_sessions(t: lang.Say): { session.Doc }
	local found: { session.Doc } = {}
	for _, entry in sessions:list() do
		if entry.value ~= nil then
			table.insert(found, entry.value)
		elseif entry.error ~= nil then
			local why: { string } = { entry.error.message }
			for _, detail in entry.error.details or {} :: { string } do
				table.insert(why, `- {detail}`)
			end
			ui.say(t("launch.broken", { path = entry.path, message = table.concat(why, "\n") }))
		end
	end
	table.sort(found, function(a: session.Doc, b: session.Doc): boolean
		local left, right = launch.last_change(a.session), launch.last_change(b.session)
		return if left == right then a.session.slug < b.session.slug else left > right
	end)
	return found
end

--- Removes what was finished or given up long ago, after saying so. Sessions in progress are never touched.
function launch.remove_old(t: lang.Say, all: { session.Doc }): { session.Doc }
	local now = clock.unix()
	local kept: { session.Doc } = {}
	local old: { string } = {}
	for _, doc in all do
		local s = doc.session
		local updated = clock.parse(launch.last_change(s))
		local done = s.status == "completed" or s.status == "abandoned"
		if done and updated ~= nil and now - updated > launch.DAYS * 86400 then
			table.insert(old, s.slug)
		else
			table.insert(kept, doc)
		end
	end
	if #old > 0 then
		table.sort(old)
		ui.say(t("launch.cleanup", { days = launch.DAYS, names = table.concat(old, ", ") }))
		for _, slug in old do
			sessions:load(slug)
			sessions:delete(slug)
		end
	end
	return kept
end

--- The command `sessions`.
function launch.show_sessions(t: lang.Say)
	local all = launch.readable_sessions(t)
	if #all == 0 then
		ui.say(t("launch.none"))
		return
	end
	local now = clock.unix()
	local lines: { string } = { t("sessions.title", { folder = `\`{FOLDER}\`` }), "" }
	for _, doc in all do
		table.insert(lines, t("sessions.row", session_vars(t, doc.session, now)))
	end
	table.insert(lines, "")
	table.insert(lines, t("sessions.resume", { command = "`nietz run brainstorm --continue SLUG`" }))
	ui.say(table.concat(lines, "\n"))
end

local function frame(t: lang.Say, body: string): string
	return "```text\n" .. t("rule") .. "\n" .. body .. "\n" .. t("rule") .. "\n```"
end

--- Offers sessions to resume. Returns the chosen one, or nil for a new one.
local function offer_sessions(t: lang.Say, found: { session.Doc }): session.Doc?
	local now = clock.unix()
	local options: { dialogue.Option } = {}
	local shown: string
	if #found == 1 then
		shown = frame(t, t("launch.found", session_vars(t, found[1].session, now)))
		table.insert(options, { value = found[1].session.slug, label = t("launch.resume") })
	else
		local lines: { string } = { t("launch.several"), "" }
		for index, doc in found do
			local words = session_vars(t, doc.session, now)
			words.number = index
			table.insert(lines, t("launch.row", words))
			table.insert(options, { value = doc.session.slug, label = doc.session.slug })
		end
		table.insert(lines, t("launch.new", { number = #found + 1 }))
		shown = frame(t, table.concat(lines, "\n"))
	end
	table.insert(options, { value = "new", label = "new" })
	while true do
		local line = ui.ask({ id = "launch", prompt = `{shown}\n\n{t("launch.ask")}`, default = "1" })
		local chosen = dialogue.match_option(line, options)
		if chosen ~= nil then
			return list.find(found, function(doc): boolean
				return doc.session.slug == chosen.value and chosen.value ~= "new"
			end)
		end
		ui.say(t("ask.not_an_option", { list = `1–{#options}` }))
	end
end

--- Makes the persona lead that the user asked for.
local function set_leader(t: lang.Say, doc: session.Doc, wish: string?)
	if wish == nil then
		return
	end
	local persona = leader.find(wish)
	if persona == nil then
		local told = if personas.find(wish) == nil then "persona.unknown" else "persona.leads_none"
		nietz.usage(t(told, { name = wish }), t("persona.hint", { names = table.concat(leader.slugs(), ", ") }))
	else
		doc.session.persona, doc.nietz.pinned = persona.slug, true
	end
end

--- Returns a session that exists, ready to go on.
local function resume(t: lang.Say, doc: session.Doc, persona: string?): session.Doc
	local s = session.fill_defaults(doc).session
	local own = doc.nietz
	set_leader(t, doc, persona)
	if personas.find(s.persona) == nil then
		ui.say(t("persona.gone", { name = s.persona }))
		s.persona = session.LEADER
	end
	if own.scored == nil then
		-- A file from elsewhere: its EMS is that of all that was answered, and is not weighed once more.
		local entry = session.current_entry(doc)
		local open = entry ~= nil and #entry.responses < #entry.questions
		own.scored = if open then math.max(0, s.iteration - 1) else s.iteration
	end
	-- A party that was stopped left its question to the user: the roles speak again in the next iteration.
	own.heard = own.heard or s.iteration
	if s.status ~= "in_progress" then
		ui.say(t("launch.closed", { status = t(`statuses.{s.status}`) }))
	end
	ui.say(t("launch.resumed", { name = s.slug, ems = s.ems, phase = t(`phases.{s.phase}`), iteration = s.iteration }))
	return doc
end

--- Returns the document for `--continue SLUG`.
local function load_by_slug(t: lang.Say, wish: string): session.Doc
	local slug = text.slug(wish)
	local doc = if slug == "" then nil else sessions:load(slug)
	if doc ~= nil then
		return doc
	end
	local names: { string } = {}
	for _, other in launch.readable_sessions(t) do
		table.insert(names, other.session.slug)
	end
	local near = text.nearest(slug, names)
	return nietz.usage(
		t("launch.missing", { slug = wish }),
		if near then t("launch.nearest_hint", { slug = near }) else t("launch.missing_hint")
	)
end

--- Returns a slug of whole words that is not too long.
function launch.slug(topic: string): string
	local slug = text.slug(topic)
	if #slug > LONGEST_SLUG then
		slug = string.gsub(string.sub(slug, 1, LONGEST_SLUG), "%-[^%-]*$", "")
	end
	return if slug == "" then "brainstorm" else slug
end

local function free_slug(slug: string, all: { session.Doc }): string
	local taken: { [string]: boolean } = {}
	for _, doc in all do
		taken[doc.session.slug] = true
	end
	local candidate, number = slug, 1
	while taken[candidate] do
		number += 1
		candidate = `{slug}-{number}`
	end
	return candidate
end

--- Returns the session to work on, and whether it is new.
function launch.open(t: lang.Say, params: { [string]: any }): (session.Doc, boolean)
	if params["continue"] then
		return resume(t, load_by_slug(t, params["continue"]), params.persona), false
	end
	local all = launch.remove_old(t, launch.readable_sessions(t))
	local topic = text.trim(params.topic or "")
	local wished = launch.slug(params.name or topic)
	local found: { session.Doc } = {}
	local running = 0
	for _, doc in all do
		local same = topic ~= "" and doc.session.slug == wished
		running += if doc.session.status == "in_progress" then 1 else 0
		if same or (topic == "" and doc.session.status == "in_progress") then
			table.insert(found, doc)
		end
	end
	local chosen = if #found > 0 then offer_sessions(t, found) else nil
	if chosen ~= nil then
		-- `load` migrates an older file, and keeps its original until that is safe.
		return resume(t, sessions:load(chosen.session.slug), params.persona), false
	end
	if #found == 0 and running > 0 then
		ui.say(translations.counted(t, "launch.others", running))
	end
	if topic == "" then
		topic = text.trim((ui.ask({ id = "topic", prompt = t("topic.ask") })))
	end
	if topic == "" then
		nietz.usage(t("topic.empty"), t("topic.empty_hint"))
	end
	local slug = free_slug(launch.slug(params.name or topic), all)
	local doc = session.new({ topic = topic, slug = slug, now = clock.now() })
	set_leader(t, doc, params.persona)
	return doc, true
end

return launch
