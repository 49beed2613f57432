--!strict
--- What the project says: the files of `--about`, which the session remembers. Where the folder is a repository and somebody is
--- there, a new session asks for them.

local about = require("../common/about")
local cited = require("../common/cited")
local failure = require("../common/failure")
local files = require("@nietz/files")
local json = require("@nietz/json")
local lang = require("./lang")
local list = require("../common/list")
local mind = require("../common/mind")
local nietz = require("@nietz")
local session = require("./session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local project = {}

--- The share of a model's window that the project's files may take, what it is where the window is not known, and the most, in tokens.
local SHARE, UNKNOWN, MOST = 0.2, 12_000, 60_000

--- Whether the folder is a repository: what belongs to git is there, and refused.
local function is_repository(): boolean
	local there, err = pcall(files.read_lines, ".git/HEAD", 1, 1)
	return not there and failure.is(err, "path-refused")
end

--- Returns the paths that a person names in one line.
local function split(line: string): { string }
	return list.filter(string.split(text.trim((string.gsub(line, "[,%s]+", " "))), " "), function(path): boolean
		return path ~= ""
	end)
end

--- Reads the files that models may know of, and says which they are. Those of an earlier sitting are read again.
function project.read(t: lang.Say, doc: session.Doc, wished: { string }?, fresh: boolean): about.Reading
	local own = doc.nietz
	local paths: { string } = wished or {}
	if #paths == 0 and own.about ~= nil then
		paths = own.about.paths
	elseif #paths == 0 and fresh and ui.attended() and is_repository() then
		paths = split(ui.ask({ id = "about", prompt = t("about.ask"), optional = true }))
	end
	if #paths == 0 then
		return { files = {}, missing = {}, left_out = {} }
	end
	local reading = about.read(paths, math.min(MOST, mind.room(SHARE, UNKNOWN)))
	if #reading.missing > 0 and wished ~= nil and #reading.files == 0 then
		nietz.usage(t("about.missing", { paths = table.concat(reading.missing, ", ") }), t("about.hint"))
	end
	local lines: { string } = {}
	for _, file in reading.files do
		local part = if file.last < file.lines then ` ({file.first}–{file.last} / {file.lines})` else ""
		table.insert(lines, `- \`{file.path}\`{part}`)
	end
	if #reading.missing > 0 then
		table.insert(lines, `- {t("about.missing", { paths = table.concat(reading.missing, ", ") })}`)
	end
	if #reading.left_out > 0 then
		table.insert(lines, `- {t("about.left_out", { paths = table.concat(reading.left_out, ", ") })}`)
	end
	ui.say(`{t("about.read")}\n\n{table.concat(lines, "\n")}`)
	own.about = { paths = json.array(table.clone(paths)), files = cited.record(reading.files) }
	return reading
end

return project
