--!strict
--- What `protected.yaml` says, and which guard a path has by it.

local globs = require("./globs")
local sections = require("./sections")
local yaml = require("@nietz/yaml")

local rules = {}

--- Added text that gives what tests run with another meaning, in files that match `files`.
export type Reach = { files: { string }, patterns: { string }, but_files: { string }?, but_tests: boolean?, only_tests: boolean? }

--- What `protected.yaml` says.
export type Rules = {
	tests: { string },
	expectations: { string },
	test_names: { string },
	signs: string,
	helpers: { has: string, names: { string } },
	config: { string },
	planted: { string },
	shadows: { runners: { string }, paths: { string }, programs: { string }, folders: { string }, modules: { string } },
	sections: { sections.Section },
	prose: { string },
	reaches: { Reach },
	exits: string,
	forged: string,
	hides: string,
	idle: string,
}

rules.all = yaml.load("./protected.yaml") :: Rules

local RULES = rules.all

--- What kind of guard a path has. `config`: put back, and removed where it is new. `planted`: the same, for what nobody writes by
--- hand. `tests`: put back where it was there. `named`: a test by its name, if there is anything of a test in it. `sections`: put
--- back where a guarded part differs. `source`: tests may stand beside its code.
export type Kind = "config" | "planted" | "tests" | "named" | "sections" | "source" | "none"

--- What the user's commands and options say of paths: globs, and of `in_the_way` plain paths.
export type Named = {
	--- Files that are put back whatever they are.
	files: { string },
	--- Folders of tests.
	folders: { string },
	--- Paths that stand in the way of what the commands make or start.
	in_the_way: { string },
	--- Whether tests and their settings are guarded, or only what nobody writes by hand.
	whole: boolean,
}

--- The endings of files of code.
local CODE = "^[cm]?[jt]sx?$"
local MORE_CODE: { [string]: boolean } = {}
for ending in string.gmatch("py pyi pyw rs go rb java kt cs php c h cc cpp hpp swift scala lua luau pl pm t ex exs dart", "%w+") do
	MORE_CODE[ending] = true
end

--- Whether a path is called like a file of code.
function rules.is_code(path: string): boolean
	local ending = string.match(path, "%.(%w+)$")
	return ending ~= nil and (MORE_CODE[ending] or string.find(ending, CODE) ~= nil)
end

--- Returns the name of the module that a path of Python's is found by, with the folder before it.
local function module_of(path: string): (string, string?)
	local folder, base = string.match(path, "^(.*/)([^/]+)$")
	local name = base or path
	if string.find(name, "^__init__%.pyc?$") ~= nil and folder ~= nil then
		return module_of(string.sub(folder, 1, -2) .. ".py")
	end
	return folder or "",
		string.match(name, "^([%w_]+)%.pyc?$") or string.match(name, "^([%w_]+)%.so$") or string.match(name, "^([%w_]+)%.[%w_%-]+%.so$")
end

--- Whether a path, where it is new, takes the place of what a runner or a script needs.
function rules.is_shadow(path: string): boolean
	local folder, name = module_of(path)
	if name ~= nil then
		local is_runner = table.find(RULES.shadows.runners, name) ~= nil
		local is_found = table.find(RULES.shadows.folders, folder) ~= nil
		if is_runner or (is_found and table.find(RULES.shadows.modules, name) ~= nil) then
			return true
		end
	end
	local program = string.match(`/{path}`, "/bin/([^/]+)$")
	return globs.matches(RULES.shadows.paths, path) or program ~= nil and table.find(RULES.shadows.programs, program) ~= nil
end

--- Returns the path of the module that Python would not find any more if this one is new, or nil.
function rules.hidden_module(path: string): string?
	local folder, name = module_of(path)
	local hidden = if name ~= nil then `{folder}{name}.py` else nil
	return if hidden ~= path then hidden else nil
end

--- Returns what `protected.yaml` says of the parts of a file.
function rules.section_of(path: string): sections.Section?
	local base = string.match(path, "([^/]+)$")
	for _, section in RULES.sections do
		if section.file == base then
			return section
		end
	end
	return nil
end

--- Returns what kind of guard a path has.
function rules.kind_of(named: Named, path: string): Kind
	if globs.matches(named.files, path) then
		return "config"
	elseif rules.is_shadow(path) or globs.matches(RULES.planted, path) or table.find(named.in_the_way, path) ~= nil then
		return "planted"
	elseif not named.whole then
		return if globs.matches(named.folders, path) then "config" else "none"
	elseif globs.matches(RULES.config, path) then
		return "config"
	elseif globs.matches(RULES.tests, path) or globs.matches(named.folders, path) then
		return "tests"
	elseif globs.matches(RULES.expectations, path) and not rules.is_code(path) then
		return "tests"
	elseif globs.matches(RULES.test_names, path) then
		return if rules.is_code(path) then "named" else "tests"
	elseif rules.section_of(path) ~= nil then
		return "sections"
	end
	return if string.find(path, "%.rs$") ~= nil then "source" else "none"
end

return rules
