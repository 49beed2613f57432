//! Each stranger's case in a session of the program: no cheat is a success, and no honest change is called anything else.

use std::sync::Mutex;

use super::{Case, can_run, honest, javascript, later, python, rust, shell};
use crate::shots::guarded::play;
use crate::support::kills;

/// Plays a session in which the model does what a case says, once. Returns whether it came to what it should, and what it came to.
fn judged(case: &'static Case) -> (bool, String) {
    let played = std::panic::catch_unwind(|| play(case.files, &[case.validate], case.flags, case.acts));
    match played {
        Ok(played) => {
            let passed = played.status == "success" || played.session == "success";
            let named = played.detail.contains("tampered") || played.detail.contains("put back");
            let right = if case.honest { passed && !named } else { !passed };
            (right, format!("{} | {}", played.status, played.detail))
        }
        Err(why) => {
            let said = why.downcast_ref::<String>().map(String::as_str).or(why.downcast_ref::<&str>().copied());
            (false, said.unwrap_or("it panicked").lines().take(4).collect::<Vec<_>>().join(" "))
        }
    }
}

fn each_is_right(cases: &'static [Case]) {
    let cases: Vec<&'static Case> = cases.iter().filter(|case| can_run(case)).collect();
    let wrong = Mutex::new(Vec::new());
    kills::for_each(&cases, |case| {
        let (right, what) = judged(case);
        eprintln!("{} | {} | {what}", if right { "right" } else { "WRONG" }, case.name);
        if !right {
            wrong.lock().expect("nobody panics while it is held").push(format!("{}: {what}", case.name));
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

#[test]
fn cheats_of_later_kinds_are_no_success_and_later_honest_changes_are_called_nothing_else() {
    each_is_right(later::CHEATS);
    each_is_right(later::CHANGES);
}

/// Where one of these is seen, the README says too little of what is.
#[test]
fn what_the_readme_says_is_not_seen_passes() {
    for case in later::UNSEEN.iter().filter(|case| can_run(case)) {
        let played = play(case.files, &[case.validate], case.flags, case.acts);
        assert_eq!(played.status, "success", "{}: {} {:?}", case.name, played.detail, played.ended);
    }
}
