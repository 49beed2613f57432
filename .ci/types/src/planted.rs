//! Mistakes made on purpose. What cannot see them checks nothing, however well it speaks of the tree.

use crate::samples::Source;

const HOST: &str = "--!strict
local ui = {}
function ui.ask(question: { id: string, prompt: string }): string
	return nil :: any
end
return ui
";

const ROOM: &str = "--!strict
local room = {}
export type Room = { name: string }
function room.of(name: string): Room
	return { name = name }
end
return room
";

const FLOW: &str = "--!strict
local room = require(\"./rooms/room\")
local ui = require(\"@nietz/ui\")
local nowhere = require(\"./rooms/nowhere\")
local one = room.off(\"a\")
local two: room.Room = { nam = \"b\" }
local three: number = ui.ask({ id = \"a\", prompt = \"?\" })
local four = ui.ask({ id = \"a\" })
local five = #string.gsub(\"a\", \"(.)\", function(letter: string): number return 5 end)
return { one, two, three, nowhere }
";

/// A word of what must be said of each line of the flow.
const EXPECTED: &[(u32, &str)] = &[
    (4, "is not there"),
    (5, "'off' not found"),
    (6, "'name'"),
    (7, "'number'"),
    (8, "'prompt'"),
    (9, "number"),
    (9, "never used"),
];

/// Returns a host's module, a room and a flow with mistakes in it.
pub fn sources() -> Vec<Source> {
    [("src/lua/api/ui.d.luau", HOST), ("rooms/room.lua", ROOM), ("flow.lua", FLOW)]
        .into_iter()
        .map(|(name, text)| Source::whole(name.to_owned(), name.to_owned(), text.to_owned()))
        .collect()
}

/// Returns which of the mistakes are not among what was found.
pub fn missed(found: &[String]) -> Vec<&'static (u32, &'static str)> {
    let told = |(line, word): &(u32, &str)| {
        found.iter().any(|fault| fault.starts_with(&format!("flow.lua:{line}:")) && fault.contains(word))
    };
    EXPECTED.iter().filter(|expected| !told(expected)).collect()
}
