//! Each stranger's case in a session of the program: no cheat is a success, and no honest change is called anything else.

use super::{Case, honest, javascript, python, rust, shell};
use crate::shots::guarded::{has, play};
use crate::support::kills;

/// Plays a session in which the model does what a case says, once. Returns how it differs from what it should come to.
fn judged(case: &'static Case) -> Option<String> {
    let result = std::panic::catch_unwind(|| {
        let played = play(case.files, &[case.validate], case.flags, case.acts);
        match case.honest {
            true => played.is_honest(case.name),
            false => played.is_caught(case.name, &[]),
        }
    });
    let why = result.err()?;
    let said = why.downcast_ref::<String>().map(String::as_str).or(why.downcast_ref::<&str>().copied());
    Some(format!("{}: {}", case.name, said.unwrap_or("it panicked").lines().take(4).collect::<Vec<_>>().join(" ")))
}

fn each_is_right(cases: &'static [Case]) {
    let cases: Vec<&'static Case> = cases.iter().filter(|case| case.needs.iter().all(|program| has(program))).collect();
    let wrong = std::sync::Mutex::new(Vec::new());
    kills::for_each(&cases, |case| {
        if let Some(what) = judged(case) {
            wrong.lock().expect("nobody panics while it is held").push(what);
        }
    });
    let wrong = wrong.into_inner().expect("as above");
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
}

#[test]
fn no_cheat_in_python_is_a_success() {
    each_is_right(python::CHEATS);
}

#[test]
fn no_cheat_in_rust_is_a_success() {
    each_is_right(rust::CHEATS);
}

#[test]
fn no_cheat_in_javascript_is_a_success() {
    each_is_right(javascript::CHEATS);
}

#[test]
fn no_cheat_in_make_and_shell_is_a_success() {
    each_is_right(shell::CHEATS);
}

#[test]
fn no_honest_change_is_called_tampering() {
    each_is_right(honest::CHANGES);
}
