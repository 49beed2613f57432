//! Ten small migrations in three languages, played whole by scripted agents of three strengths and judged by checks that no
//! session sees. One of each language is played here, each by an agent of another strength; `.ci/long shots` plays all of them
//! in each way and prints the table that the mode's README has, and by hand it plays them with models of one's own.

mod agents;
mod javascript;
mod project;
mod python;
mod rust;
mod sessions;

use std::sync::Arc;

use super::guarded::has;
use agents::Strength;
use project::{Files, Language, Migration};
use sessions::{Figures, HEAD, Play, Players, play, run, run_hidden};

fn all() -> Vec<Arc<Migration>> {
    [python::all(), rust::all(), javascript::all()].into_iter().flatten().map(Arc::new).collect()
}

/// The migrations of this run: one of each language, or all.
fn chosen() -> Vec<Arc<Migration>> {
    let whole = std::env::var_os("NIETZ_TEST_WHOLE").is_some();
    let mut seen: Vec<Language> = Vec::new();
    let mut is_chosen = |migration: &Arc<Migration>| {
        let first = !seen.contains(&migration.language);
        seen.push(migration.language);
        has_tools(migration.language) && (whole || first)
    };
    all().into_iter().filter(|migration| is_chosen(migration)).collect()
}

/// Tells whether the machine has what a language needs, and says so where it has not.
fn has_tools(language: Language) -> bool {
    let programs: &[&str] = match language {
        Language::Python => &["python3"],
        Language::Rust => &[],
        Language::JavaScript => &["node", "npm"],
    };
    programs.iter().all(|program| has(program))
}

/// Whether what validates passes, and whether the hidden checks do, of files in a folder of their own.
fn look(migration: &Migration, files: &Files) -> (bool, bool) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be made");
        std::fs::write(path, text).expect("it can be written");
    }
    let validates = migration.validate.iter().all(|command| run(command, folder.path()));
    (validates, run_hidden(migration, folder.path()))
}

/// A migration that passes before, or whose solution fails, would measure nothing.
#[test]
fn before_nothing_passes_and_after_everything_does() {
    for migration in chosen() {
        let (name, size) = (migration.name, migration.before.len());
        assert!((10..=40).contains(&size), "{name} has {size} files");
        assert_eq!(look(&migration, &migration.before), (false, false), "{name} before");
        assert_eq!(look(&migration, &migration.after), (true, true), "{name} after");
    }
}

/// Plays one session for each of some migrations.
fn played(migrations: &[Arc<Migration>], strength: Strength, how: Play) -> Figures {
    let mut figures = Figures::default();
    for migration in migrations {
        figures += play(migration, &Players::Scripted(strength), how).0;
    }
    figures
}

/// The chosen migrations of one language.
fn of(language: Language) -> Vec<Arc<Migration>> {
    chosen().into_iter().filter(|migration| migration.language == language).collect()
}

#[test]
fn a_strong_agent_reaches_its_goal_in_one_attempt() {
    let Figures { sessions, validated, reached, attempts, .. } =
        played(&of(Language::Rust), Strength::Strong, Play::Alone);
    assert_eq!((validated, reached, attempts), (sessions, sessions, sessions));
}

#[test]
fn of_three_shots_of_a_middling_agent_the_one_that_forgot_nothing_is_kept() {
    let migrations = of(Language::JavaScript);
    let alone = played(&migrations, Strength::Middling, Play::Alone);
    assert_eq!((alone.validated, alone.attempts), (0, alone.sessions), "alone it forgets files");
    let Figures { sessions, validated, reached, attempts, .. } = played(&migrations, Strength::Middling, Play::Thrice);
    assert_eq!((validated, reached, attempts), (sessions, sessions, 3 * sessions));
}

#[test]
fn a_weak_agent_reaches_in_parts_what_it_breaks_as_a_whole() {
    let migrations = of(Language::Python);
    let alone = played(&migrations, Strength::Weak, Play::Alone);
    assert_eq!(alone.validated, 0, "alone it breaks a file");
    let Figures { sessions, validated, reached, attempts, .. } = played(&migrations, Strength::Weak, Play::PingPong);
    // The whole, the breakdown, and four parts.
    assert_eq!((validated, reached, attempts), (sessions, sessions, 6 * sessions));
}

/// All ways to play, by the strengths that `NIETZ_TEST_TABLE` names or by the models that are named: minutes, so only when it is
/// asked for.
#[test]
fn the_table_of_all_sessions() {
    let Ok(strengths) = std::env::var("NIETZ_TEST_TABLE") else { return };
    let named = |name: &str| std::env::var(name).ok().filter(|model| !model.is_empty());
    let players: Vec<(String, Players)> = match named("NIETZ_TEST_MODEL_A") {
        Some(a) => {
            let b = named("NIETZ_TEST_MODEL_B").unwrap_or_else(|| a.clone());
            vec![(a.clone(), Players::Real { a, b })]
        }
        None => {
            let wanted = Strength::ALL.into_iter().filter(|strength| strengths.contains(strength.name()));
            wanted.map(|strength| (strength.name().to_owned(), Players::Scripted(strength))).collect()
        }
    };
    assert!(!players.is_empty(), "`{strengths}` names none of strong, middling and weak");
    let mut sums = HEAD.to_owned();
    print!("\n{HEAD}");
    for (who, players) in &players {
        for how in Play::ALL {
            let mut sum = Figures::default();
            for migration in chosen() {
                let figures = play(&migration, players, how).0;
                print!("{}", figures.line(&format!("{who}: {}", migration.name), how.name()));
                sum += figures;
            }
            sums += &sum.line(who, how.name());
        }
    }
    println!("\nThe sums, of all migrations:\n\n{sums}");
}
