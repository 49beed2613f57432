//! Finds in source what a command that only looks (`reads_only = true`) would be refused when it is run. It sees what stands in
//! the command's own table; the gate sees everything.

use std::collections::BTreeMap;

use crate::lua::scan::Word;

/// The functions of the host that do more than look.
const ACTING: &[(&str, &[&str])] = &[
    ("@nietz/llm", &["chat"]),
    ("@nietz/ui", &["ask", "choose", "confirm"]),
    ("@nietz/git", &["branch", "delete_branch", "snapshot", "merge", "worktree"]),
];
/// The methods of a collection that change its documents.
const CHANGING: &[&str] = &["save", "append", "delete"];

/// Returns each word in a command that only looks which names something that does more, with what it names. `hosts` has the
/// host's module that each local name holds.
pub(super) fn acting<'w>(words: &'w [Word], hosts: &BTreeMap<String, &'static str>) -> Vec<(&'w Word, String)> {
    let mut found = Vec::new();
    for command in (0..words.len()).filter_map(|at| command_around(words, at)) {
        for [before, sign, word] in command.array_windows() {
            let (Some(name), Some(module)) = (word.name(), before.name().and_then(|local| hosts.get(local))) else {
                continue;
            };
            let acts = ACTING.iter().any(|(acting, names)| acting == module && names.contains(&name));
            if sign.is_sign('.') && acts {
                found.push((word, format!("{module} `{name}`")));
            }
        }
        if hosts.values().any(|module| *module == "@nietz/documents") {
            let is_called = |sign: &Word, next: &Word| sign.is_sign(':') && next.is_sign('(');
            for [sign, word, next] in command.array_windows() {
                if let Some(name) = word.name().filter(|name| is_called(sign, next) && CHANGING.contains(name)) {
                    found.push((word, format!("`:{name}`")));
                }
            }
        }
    }
    found
}

/// Returns the words of the table that a `reads_only = true` at this place stands in.
fn command_around(words: &[Word], at: usize) -> Option<&[Word]> {
    let [name, equals, value, ..] = &words[at..] else { return None };
    if name.name() != Some("reads_only") || !equals.is_sign('=') || value.name() != Some("true") {
        return None;
    }
    let mut depth = 0;
    let step = |depth: &mut i32, word: &Word| {
        *depth += i32::from(word.is_sign('{')) - i32::from(word.is_sign('}'));
        *depth
    };
    let start = (0..at).rev().find(|before| step(&mut depth, &words[*before]) > 0)?;
    let mut depth = 0;
    let end = (start..words.len()).find(|behind| step(&mut depth, &words[*behind]) == 0)?;
    Some(&words[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lua::api;
    use crate::lua::scan;

    #[test]
    fn each_acting_function_is_one_of_the_host_s() {
        let all = api::names();
        for (module, names) in ACTING {
            for name in *names {
                assert!(all[module].contains(*name), "{module} {name}");
            }
        }
    }

    #[test]
    fn what_stands_in_a_command_that_only_looks_is_found_and_nothing_beside_it() {
        let source = "commands = {
            show = { params = { a = { type = \"string\" } }, reads_only = true, run = function() notes:save({}) u.ask {} u.say(\"x\") end },
            keep = { reads_only = false, run = function() notes:save({}) u.ask {} end },
            make = { run = function() notes:delete({}) end },
        }";
        let words = scan::words(source);
        let hosts =
            [("u", "@nietz/ui"), ("documents", "@nietz/documents")].map(|(name, module)| (name.to_owned(), module));
        let found: Vec<_> = acting(&words, &hosts.into()).into_iter().map(|(word, what)| (word.line, what)).collect();
        assert_eq!(found, [(2, "@nietz/ui `ask`".to_owned()), (2, "`:save`".to_owned())]);
    }
}
