--!strict
--- Whether a fix helped, told from what was recorded of the run before it and the run after it, and not from what anybody
--- claimed: what takes tests away, skips them or makes others fail has mended nothing.

local verdicts = {}

--- What a run of the tests came to, as far as it was recorded.
export type Run = {
	total: number,
	failed: number,
	skipped: number,
	--- The names of the tests that failed.
	failing: { string },
}

export type Verdict = {
	helped: boolean,
	--- What the run after the fix shows.
	why: string,
}

--- Returns a test's name without its groups, which only some runners print.
local function short_name(name: string): string
	return string.match(name, "› ([^›]+)$") or string.match(name, " > ([^>]+)$") or name
end

local function plural(count: number, one: string, many: string): string
	return if count == 1 then `1 {one}` else `{count} {many}`
end

local function names(list: { string }): string
	return table.concat(list, ", ", 1, math.min(#list, 5)) .. (if #list > 5 then " …" else "")
end

--- Returns a run as it stands in a session's execution.
function verdicts.run_of(execution: any): Run
	local failing = {}
	for _, failure in execution.failures or {} do
		table.insert(failing, failure.test_name)
	end
	local results = execution.test_results
	return { total = results.total, failed = results.failed, skipped = results.skipped or 0, failing = failing }
end

--- Judges the fix between two runs.
function verdicts.judge(before: Run, after: Run): Verdict
	local executed_before, executed = before.total - before.skipped, after.total - after.skipped
	if executed == 0 then
		return { helped = false, why = "no test was executed after it" }
	elseif after.skipped > before.skipped then
		return { helped = false, why = `{plural(after.skipped - before.skipped, "more test was", "more tests were")} skipped after it` }
	elseif after.total < before.total then
		return { helped = false, why = `{plural(before.total - after.total, "test was", "tests were")} gone after it` }
	elseif executed < executed_before then
		return { helped = false, why = `{plural(executed_before - executed, "test was", "tests were")} not executed any more after it` }
	end
	local failed_before: { [string]: boolean } = {}
	for _, name in before.failing do
		failed_before[short_name(name)] = true
	end
	local fails: { [string]: boolean } = {}
	local fresh = {}
	for _, name in after.failing do
		fails[short_name(name)] = true
		if not failed_before[short_name(name)] then
			table.insert(fresh, name)
		end
	end
	-- Where all failed, nothing could be built or begun, and what fails now may have failed before.
	local comparable = before.failed < before.total and #before.failing >= before.failed
	if comparable and #fresh > 0 then
		return { helped = false, why = `{names(fresh)} failed after it and not before` }
	end
	local mended = {}
	for _, name in before.failing do
		if not fails[short_name(name)] then
			table.insert(mended, name)
		end
	end
	if after.failed == 0 and #after.failing == 0 then
		return { helped = true, why = "all tests passed after it" }
	elseif #mended > 0 then
		return { helped = true, why = `mended {#mended} of {plural(#before.failing, "failure", "failures")}: {names(mended)}` }
	end
	return { helped = false, why = if #after.failing > 0 then `{names(after.failing)} failed as before` else "the tests failed as before" }
end

return verdicts
