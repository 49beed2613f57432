//! Files and disks that are not as they should be: each is named, nothing is lost, nothing is overwritten.

use super::table::{SLUG, TOPIC, Table, path, said, says, yaml};
use crate::support::process::Ended;

const GOOD: &str = include_str!("../samples/documents/valid/whole.yaml");

#[test]
fn a_file_that_is_wrong_is_refused_with_its_line_and_field_and_left_as_it_is() {
    let bomb: String = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let refs = vec![format!("*a{}", level - 1); 9].join(", ");
        format!("{text}a{level}: &a{level} [{refs}]\n")
    });
    for (what, text, code, parts) in [
        (
            "a wrong value",
            GOOD.replace("mode: \"standard\"", "mode: \"solo\""),
            "document-invalid",
            vec!["feature-auth.yaml:8", "/session/mode", "standard"],
        ),
        (
            "a wrong type",
            GOOD.replace("ems: 52\n  persona", "ems: \"52\"\n  persona"),
            "document-invalid",
            vec!["feature-auth.yaml:9", "/session/ems"],
        ),
        (
            "a value out of range",
            GOOD.replace("ems: 38", "ems: 138"),
            "document-invalid",
            vec!["/session/history/1/ems", "100"],
        ),
        (
            "a missing field",
            GOOD.replace("  phase: \"divergent\"\n  mode", "  mode"),
            "document-invalid",
            vec!["/session", "phase"],
        ),
        (
            "a slug that leads elsewhere",
            GOOD.replace("slug: \"feature-auth\"", "slug: \"../../etc\""),
            "document-invalid",
            vec!["/session/slug", "feature-auth.yaml:5"],
        ),
        (
            "an id of another day",
            GOOD.replace("feature-auth-2026-01-09", "feature-auth-2026-02-30"),
            "document-invalid",
            vec![
                "/session/id",
                "2026-02-30",
                "`nietz check .project-memory/brainstorm-sessions/feature-auth.yaml` shows the line",
            ],
        ),
        ("no YAML", GOOD.replace("  ideas:\n", "  ideas: [\n"), "document-unreadable", vec!["feature-auth.yaml:"]),
        (
            "a key twice",
            GOOD.replace("  iteration: 3\n  techniques", "  iteration: 3\n  iteration: 4\n  techniques"),
            "document-unreadable",
            vec!["iteration", "feature-auth.yaml:12"],
        ),
        ("a document that blows up", bomb, "document-unreadable", vec!["feature-auth.yaml"]),
    ] {
        let table = Table::new().file(&path("feature-auth"), &text);
        let ended = table.talk(["--continue", "feature-auth"], &["quit"]).exits(4);
        assert_eq!(ended.failure(), code, "{what}");
        let told = ended.ending()["failure"].to_string();
        for part in parts {
            assert!(told.contains(part), "{what}: {part} is not in {told}");
        }
        assert_eq!(table.env.read(&path("feature-auth")), text, "{what}");
        let checked = table.env.nietz(["check", &path("feature-auth")]).go().exits(4);
        assert!(checked.stdout.contains("feature-auth.yaml:"), "{what}: {checked:?}");
        // The others can be worked on meanwhile, and the list says what is wrong with this one.
        let ended = table.talk([TOPIC, "--no-clarify", "--no-hmw"], &["quit"]).exits(0);
        says(&ended, &[&path("feature-auth")]);
        assert_eq!(table.env.read(&path("feature-auth")), text, "{what}");
    }
}

/// Which function of a flow called which is no help to its user.
#[test]
fn faults_of_files_and_ctrl_c_are_told_without_a_trace_of_the_flow() {
    let table = Table::new().file(&path("feature-auth"), &GOOD.replace("ems: 38", "ems: 138"));
    let told =
        table.env.nietz(["run", "--model", "openai/test", "brainstorm", "--continue", "feature-auth"]).go().exits(4);
    assert!(told.stderr.contains("feature-auth.yaml"), "{}", told.stderr);
    let mut running = table.env.run(["brainstorm"]).var("NIETZ_RUN", "r2").spawn();
    running.wait_for("asked");
    running.interrupt();
    let interrupted = running.end().exits(130);
    for shown in [told.stderr, format!("{}{}", interrupted.stdout, interrupted.stderr)] {
        assert!(!shown.contains("called from") && shown.matches(".lua:").count() <= 1, "{shown}");
    }
}

#[test]
fn no_name_leads_out_of_the_folder_of_sessions() {
    for name in ["../../outside", "/etc/passwd", "..", "a/../../b"] {
        let table = Table::new();
        table.talk(["--continue", name], &[]).exits(2);
        let ended = table.talk([TOPIC, "--no-clarify", "--no-hmw", "--name", name], &["quit"]).exits(0);
        let saved = ended.result()["session"].as_str().unwrap_or_default().to_owned();
        assert!(saved.starts_with(".project-memory/brainstorm-sessions/") && !saved.contains(".."), "{saved}");
    }
}

#[test]
fn a_session_that_somebody_else_edited_is_saved_beside_theirs_or_over_it_as_the_user_wishes() {
    for (choice, ours, theirs_stays) in [("aside", format!("{SLUG}-2"), true), ("overwrite", SLUG.to_owned(), false)] {
        let table = Table::new();
        let mut running = table.call([TOPIC, "--no-clarify", "--no-hmw"]).spawn();
        running.wait_for("asked");
        let theirs = table.env.read(&path(SLUG)).replace("ems: 22", "ems: 23");
        table.env.write(&path(SLUG), &theirs);
        running.say(&format!("the ledger keeps orders\n{choice}\nsave\nquit\n"));
        running.close();
        let ended = running.end().exits(0);
        says(&ended, &[&format!("Somebody else changed `{}`", path(SLUG))]);
        assert_eq!(table.session_of(&ours)["history"][0]["responses"][0], "the ledger keeps orders");
        assert_eq!(table.session_of(&ours)["id"], format!("{ours}-2026-01-09"));
        assert_eq!(table.env.read(&path(SLUG)) == theirs, theirs_stays);
    }
    let table = Table::new();
    let mut running = table.call([TOPIC, "--no-clarify", "--no-hmw"]).spawn();
    running.wait_for("asked");
    let theirs = table.env.read(&path(SLUG)).replace("ems: 22", "ems: 23");
    table.env.write(&path(SLUG), &theirs);
    running.say("the ledger keeps orders\nstop\n");
    running.close();
    let ended = running.end().exits(1);
    assert_eq!((ended.failure().as_str(), table.env.read(&path(SLUG))), ("document-changed", theirs));
}

/// Tests may run as root, whom no permission stops; so a file comes to stand where the folder was.
fn blocked(lines: &str) -> (Table, Ended) {
    let table = Table::new();
    let mut running = table.call([TOPIC, "--no-clarify", "--no-hmw"]).spawn();
    running.wait_for("asked");
    let folder = table.env.path(".project-memory");
    std::fs::rename(&folder, table.env.path("kept")).expect("it can be moved");
    std::fs::write(&folder, "a file, not a folder").expect("it can be written");
    running.say(lines);
    running.close();
    (table, running.end())
}

#[test]
fn where_the_folder_of_sessions_cannot_be_written_the_session_goes_elsewhere() {
    let (table, ended) = blocked("the ledger keeps orders\nelsewhere\nsave\nfinish\n");
    let ended = ended.exits(0);
    let elsewhere = format!("brainstorm-{SLUG}.yaml");
    says(
        &ended,
        &["The session could not be saved:", &format!("Saved in `{elsewhere}`, and from here on there."), &path(SLUG)],
    );
    says(&ended, &["Finished.", "It could not be counted:"]);
    assert_eq!(ended.asked().iter().filter(|id| *id == "save-failed").count(), 1, "asked once");
    let text = table.env.read(&elsewhere);
    assert_eq!(yaml(&text)["session"]["history"][0]["responses"][0], "the ledger keeps orders");
    assert_eq!(table.env.read(".project-memory"), "a file, not a folder");
    // Moved to where it belongs, it goes on.
    std::fs::remove_file(table.env.path(".project-memory")).expect("it can be removed");
    table.env.write(&path(SLUG), text);
    table.go_on(&["quit"]).exits(0);
}

#[test]
fn what_can_be_saved_nowhere_is_shown_to_be_copied() {
    let (_, ended) = blocked("the ledger keeps orders\nshow\n");
    let ended = ended.exits(5);
    let said = said(&ended);
    let shown = said.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it is shown");
    assert_eq!(yaml(shown)["session"]["history"][0]["responses"][0], "the ledger keeps orders");
}

#[test]
fn a_save_that_fails_can_be_tried_again_when_it_is_mended() {
    let table = Table::new();
    let mut running = table.call([TOPIC, "--no-clarify", "--no-hmw"]).spawn();
    running.wait_for("asked");
    let (folder, kept) = (table.env.path(".project-memory"), table.env.path("kept"));
    std::fs::rename(&folder, &kept).expect("it can be moved");
    std::fs::write(&folder, "a file, not a folder").expect("it can be written");
    running.say("the ledger keeps orders\n");
    while running.wait_for("asked")["question"]["id"] != "save-failed" {}
    std::fs::remove_file(&folder).expect("it can be removed");
    std::fs::rename(&kept, &folder).expect("it can be moved back");
    running.say("retry\nquit\n");
    running.close();
    running.end().exits(0);
    assert_eq!(table.session()["history"][0]["responses"][0], "the ledger keeps orders");
}
