--!strict
--- What is checked after each iteration: whether the phase changes, the idea is mature, the user still has energy, a technique
--- would help. Apart, because only one of these may ask something at a time.

local angles = require("./angles")
local app = require("./app")
local bias = require("./bias")
local dialogue = require("./dialogue")
local ems = require("./ems")
local lang = require("./lang")
local leader = require("./leader")
local notebook = require("./notebook")
local scoring = require("./scoring")
local session = require("./session")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local checkpoints = {}

--- An EMS from which the user is asked once more how it goes.
local LATE_EMS = 75
--- The iteration from which a session is long.
local LONG_SESSION = 7
--- How many iterations the user may add at the limit.
local MORE = 5
--- Points of EMS below which two iterations together are slow.
local SLOW_GAIN = 3

--- Asks how the user wants to go on, and does that.
function checkpoints.ask_energy(self: app.App, why: string): app.Signal?
	local s = self.doc.session
	local reason = self.t(`energy.why.{why}`, { ems = s.ems, iteration = s.iteration })
	local choice, signal = dialogue.choose(
		self,
		"energy",
		if reason == "" then self.t("energy.ask") else `{reason} {self.t("energy.ask")}`,
		dialogue.options_of(self, "energy.options", { "continue", "pause", "speed", "pivot" }),
		"continue"
	)
	if choice == "pause" then
		return { go = "quit" }
	elseif choice == "continue" then
		app.save(self)
	elseif choice == "speed" then
		s.phase = "convergent"
		app.save(self)
	elseif choice == "pivot" then
		signal = angles.pivot(self, "")
	end
	-- No question is open here, so none is asked again: the next iteration takes up the focus.
	return if signal and signal.go == "again" then nil else signal
end

--- Asks whether to finish, because the idea is `mature`, because of the `time`, or because no iteration is left (`limit`).
local function ask_to_finish(self: app.App, why: string): app.Signal?
	local s = self.doc.session
	local limit = why == "limit"
	local title = self.t(`checkpoint.{why}`, { ems = s.ems, iteration = s.iteration, minutes = s.duration_minutes })
	local choices = dialogue.options_of(self, "checkpoint.options", { "continue", "preview", "finish", "approaches" })
	if limit then
		choices[1] = { value = "pause", label = self.t("energy.options.pause") }
		table.insert(choices, { value = "more", label = self.t("checkpoint.more", { count = MORE }) })
	end
	local left = #notebook.holding(self.doc, { "open", "contested" })
	if left > 0 then
		title ..= " " .. translations.counted(self.t, "checkpoint.left", left)
	end
	while true do
		local choice, signal =
			dialogue.choose(self, "checkpoint", `{title}\n\n{self.t("checkpoint.ask")}`, choices, if limit then "finish" else "continue")
		if choice == "preview" then
			self:run_command("preview", "")
		elseif choice == "approaches" then
			local led = self:run_command("approaches", "")
			if led ~= nil and led.go ~= "next" and led.go ~= "again" then
				return led
			end
		elseif choice == "more" then
			self.doc.nietz.more = (self.doc.nietz.more or 0) + MORE
			app.save(self)
			return nil
		elseif choice == "finish" then
			return { go = "finish" }
		elseif choice == "pause" then
			return { go = "quit" }
		elseif choice == "continue" or (signal ~= nil and (signal.go == "next" or signal.go == "again")) then
			if not limit then
				return nil
			end
		else
			return signal
		end
	end
end

--- Moves from the divergent to the convergent phase at half-way, once: a user who goes back by `diverge` stays there.
local function advance_phase(self: app.App): boolean
	local s = self.doc.session
	local state = self.doc.nietz
	if s.phase == "transition" then
		s.phase = "convergent"
		if s.progressive_state then
			s.progressive_state.transition_completed = true
		end
		app.save(self)
		return false
	elseif s.phase ~= "divergent" or s.ems < ems.TRANSITION or state.crossed then
		return false
	end
	state.crossed = true
	s.phase = "transition"
	local summary: lang.Vars =
		{ ideas = #s.ideas, decisions = #notebook.holding(self.doc, { "decision" }), questions = session.answers(self.doc) }
	if self.options.choosing == "progressive" then
		s.progressive_state = { divergent_completed = true, transition_completed = false, transition_summary = summary }
	end
	ui.say(`{self.t("transition.title", { ems = s.ems })} {self.t("transition.summary", summary)}`)
	app.save(self)
	return true
end

--- Returns why the user is asked about their energy, or nil. Each reason counts once in a session.
local function energy_reason(self: app.App): string?
	local s = self.doc.session
	local state = self.doc.nietz
	local asked: { [string]: boolean } = state.asked_energy or {}
	state.asked_energy = asked
	local history = session.counted_history(self.doc)
	local before = history[#history - 1]
	local reason: string? = nil
	if s.ems >= LATE_EMS and not asked.late then
		reason = "late"
	elseif s.iteration >= LONG_SESSION and not asked.long then
		reason = "long"
	elseif before ~= nil and s.ems - before.ems < SLOW_GAIN and not asked.slow then
		reason = "slow"
	end
	if reason ~= nil then
		asked[reason] = true
	end
	return reason
end

--- Checks everything after an iteration. Returns where it leads, or nil to go on.
function checkpoints.after_iteration(self: app.App): app.Signal?
	local s = self.doc.session
	local state = self.doc.nietz
	local weighed = not app.is_light(self)
	-- A light session is weighed with its next questions: until then, nothing says that it stands still.
	if weighed then
		leader.adjust(self, scoring.said_in_iteration(self))
	end
	if self.options.suggest then
		bias.announce(self)
	end
	local crossed = advance_phase(self)
	local limit = #s.history >= self.options.iterations + (state.more or 0)
	local step = if s.ems >= ems.READY then ems.READY elseif s.ems >= self.options.checkpoint then self.options.checkpoint else 0
	if limit or step > (state.checkpoint or 0) then
		state.checkpoint = math.max(step, state.checkpoint or 0)
		return ask_to_finish(self, if limit then "limit" else "mature")
	elseif s.duration_minutes >= self.options.minutes and not (state.asked_energy or {} :: { [string]: boolean }).time then
		-- Only once: a session that is left open over lunch counts that as time spent.
		local asked: { [string]: boolean } = state.asked_energy or {}
		asked.time = true
		state.asked_energy = asked
		return ask_to_finish(self, "time")
	end
	if self.options.energy then
		local why = if crossed then "transition" else energy_reason(self)
		if why ~= nil then
			return checkpoints.ask_energy(self, why)
		end
	end
	if self.options.technique then
		return angles.propose(self)
	end
	return nil
end

return checkpoints
