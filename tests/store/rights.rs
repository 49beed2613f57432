//! The promise: people who ask, workers and readers may each do their own, and nobody sees or touches anything of a workspace that
//! is not theirs.

use super::held;
use crate::support::postgres::{self, Session};

const NO_GRANT: &str = "42501";
const NOT_THERE: &str = "NZ009";

/// All tables that have rows of a workspace.
const TABLES: [&str; 11] = [
    "workspace",
    "member",
    "run",
    "line",
    "answer",
    "document",
    "document_row",
    "trust",
    "budget",
    "spent",
    "reserved",
];

/// Makes a second workspace with something in each table, and returns a run of it with its claim.
fn other(owner: &mut Session) -> (String, String) {
    assert_eq!(owner.get("SELECT nietz.workspace('theirs', true)"), "2");
    owner.get("SELECT nietz.enqueue(2, 'secret', 'f', '{open}', '{}')");
    let taken = owner.get("SELECT run, claim FROM nietz.take(2, '{\"\"}', 15, 'w')");
    let (run, claim) = taken.split_once('|').expect("it is due");
    owner.get(&format!("SELECT nietz.append({run}, {claim}, 2, '{{i}}', '[{{\"key\": \"c\", \"calls\": 1}}]')"));
    owner.get(&format!("SELECT nietz.answer({run}, 'k', '1')"));
    owner.get("SELECT nietz.save_document(2, '', 'a.yaml', 'x', 'd', NULL)");
    owner.get("SELECT nietz.append_row(2, '', 'r.jsonl', '1')");
    owner.get("SELECT nietz.sign(2, 'folder', '{}')");
    owner.get("SELECT nietz.set_budget(2, 100, NULL, NULL)");
    owner.get("SELECT nietz.admit(2, 'nietz', 'asker')");
    (run.to_owned(), claim.to_owned())
}

#[test]
fn no_row_of_one_workspace_is_seen_or_touched_by_a_role_of_another() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    let (run, claim) = other(&mut owner);
    let before: Vec<String> = TABLES
        .map(|table| owner.get(&format!("SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM nietz.{table} t")))
        .into();
    let (mine, _) = held(&mut owner, "mine");
    for kinds in [&["asker"][..], &["worker"], &["reader"], &["asker", "worker", "reader"]] {
        let mut session = database.role(&kinds.join("_"), 1, kinds);
        for table in TABLES {
            let column = match table {
                "workspace" => "id",
                "line" | "answer" | "reserved" => "(SELECT workspace FROM nietz.run r WHERE r.id = t.run)",
                _ => "workspace",
            };
            let seen = session.get(&format!("SELECT count(*) FROM nietz.{table} t WHERE {column} IS DISTINCT FROM 1"));
            assert_eq!(seen, "0", "{kinds:?} {table}");
            let all = owner.get(&format!("SELECT count(*) > 0 FROM nietz.{table} t WHERE {column} = 2"));
            assert_eq!(all, "t", "{table} has something to hide");
            let writes = format!("SELECT has_table_privilege('nietz.{table}', 'INSERT, UPDATE, DELETE, TRUNCATE')");
            assert_eq!(session.get(&writes), "f", "{kinds:?} {table}");
        }
        assert_eq!(session.get(&format!("SELECT name FROM nietz.run WHERE id IN ({mine}, {run})")), "mine");
        for call in [
            "workspace('theirs')".to_owned(),
            "workspace('nowhere')".to_owned(),
            "enqueue(2, 'x', 'f', '{open}', '{}')".to_owned(),
            "take(2, '{\"\"}', 15, 'w')".to_owned(),
            format!("hold({run}, 'w')"),
            format!("append({run}, {claim}, 3, '{{x}}')"),
            format!("park({run}, {claim}, 3, '{{x}}', '[{{\"key\": \"k\"}}]', '{{}}')"),
            format!("finish({run}, {claim}, 3, '{{x}}', 'done', '{{}}')"),
            format!("release({run}, {claim})"),
            format!("asked({run}, {claim}, '[]')"),
            format!("refuse({run}, {claim}, 'k')"),
            format!("answer({run}, 'l', '1')"),
            format!("answers({run})"),
            format!("cancel({run})"),
            format!("requeue({run})"),
            format!("remove({run})"),
            format!("lines({run})"),
            format!("state({run}, {claim})"),
            "prune(2, now())".to_owned(),
            "keep(2, 'x', 'f', 'done', '{open}', '{}')".to_owned(),
            "queue_metrics(2)".to_owned(),
            "save_document(2, '', 'b.yaml', 'x', 'd', NULL)".to_owned(),
            "remove_document(2, '', 'a.yaml', 'd')".to_owned(),
            "append_row(2, '', 'r.jsonl', '2')".to_owned(),
            "sign(2, 'folder', '{}')".to_owned(),
            "revoke(2, 'folder')".to_owned(),
            "set_budget(2, 1, 1, 1)".to_owned(),
            "admit(2, session_user, 'asker')".to_owned(),
            "dismiss(2, 'nietz', 'asker')".to_owned(),
        ] {
            let refused = session.say(&format!("SELECT nietz.{call}")).expect_err(&call);
            assert!([NOT_THERE, NO_GRANT].contains(&refused.as_str()), "{kinds:?} {call}: {refused}");
        }
        let beat = session.say(&format!("SELECT nietz.beat({run}, {claim}, 15)"));
        assert!([Ok("f".to_owned()), Err(NO_GRANT.to_owned())].contains(&beat), "{kinds:?} {beat:?}");
        assert_eq!(session.say("SELECT * FROM pgmq.q_nietz_2"), Err(NO_GRANT.to_owned()));
        assert_eq!(session.say("SELECT * FROM pgmq.read('nietz_2', 1, 1)"), Err(NO_GRANT.to_owned()));
    }
    let mut stranger = database.role("stranger", 1, &[]);
    assert_eq!(stranger.say("SELECT * FROM nietz.run"), Err(NO_GRANT.to_owned()));
    for table in TABLES.iter().filter(|table| !["run", "line", "member"].contains(table)) {
        let at = TABLES.iter().position(|other| other == table).expect("it is one of them");
        let now = owner.get(&format!("SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM nietz.{table} t"));
        assert_eq!(now, before[at], "{table}");
    }
    assert_eq!(owner.get(&format!("SELECT count(*) FROM nietz.line WHERE run = {run}")), "2");
}

/// What each kind may do in its own workspace, and what it may not.
#[test]
fn who_asks_who_works_and_who_reads_are_apart() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    let mut asker = database.role("asker", 1, &["asker"]);
    let mut worker = database.role("worker", 1, &["worker"]);
    let mut reader = database.role("reader", 1, &["reader"]);
    asker.get("SELECT nietz.enqueue(1, 'r1', 'f', '{open}', '{}')");
    for session in [&mut worker, &mut reader] {
        let refused = session.say("SELECT nietz.enqueue(1, 'r2', 'f', '{open}', '{}')").expect_err("it may not");
        assert!(["NZ008", NO_GRANT].contains(&refused.as_str()), "{refused}");
    }
    for session in [&mut asker, &mut reader] {
        assert_eq!(session.say("SELECT nietz.take(1, '{\"\"}', 15, 'w')"), Err(NO_GRANT.to_owned()));
    }
    let taken = worker.get("SELECT run, claim, began_by FROM nietz.take(1, '{\"\"}', 15, 'w')");
    let columns: Vec<&str> = taken.split('|').collect();
    let [run, claim, began_by] = columns[..] else { panic!("{taken}") };
    assert_eq!(began_by, format!("asker_{}", database.name), "who began it is who connected");
    worker.get(&format!("SELECT nietz.append({run}, {claim}, 2, '{{a}}')"));
    // Another worker's connection has not claimed it, whatever numbers it names.
    let mut second = database.role("worker2", 1, &["worker"]);
    assert_eq!(second.say(&format!("SELECT nietz.append({run}, {claim}, 3, '{{a}}')")), Err("NZ001".to_owned()));
    assert_eq!(worker.say(&format!("SELECT nietz.cancel({run})")), Err(NO_GRANT.to_owned()));
    assert_eq!(reader.say(&format!("SELECT nietz.answer({run}, 'k', '1')")), Err(NO_GRANT.to_owned()));
    assert_eq!(reader.get(&format!("SELECT count(*) FROM nietz.lines({run})")), "2");
    assert_eq!(asker.say("SELECT nietz.sign(1, 'folder', '{}')"), Err("NZ008".to_owned()), "nobody let them sign");
    owner.get(&format!("SELECT nietz.admit(1, 'asker_{}', 'asker', true)", database.name));
    asker.get("SELECT nietz.sign(1, 'folder', '{\"exec\": true}')");
    assert_eq!(worker.get("SELECT subject, signed_by FROM nietz.trust"), format!("folder|asker_{}", database.name));
    // Documents of a run's own are those of who began it; what is shared is everybody's.
    worker.get(&format!("SELECT nietz.save_document(1, 'asker_{}', 'own.yaml', 'x', 'd', NULL)", database.name));
    worker.get("SELECT nietz.save_document(1, '', 'all.yaml', 'x', 'd', NULL)");
    assert_eq!(asker.get("SELECT count(*) FROM nietz.document"), "2");
    assert_eq!(reader.get("SELECT path FROM nietz.document"), "all.yaml");
    let theirs = "SELECT nietz.save_document(1, 'somebody', 'a.yaml', 'x', 'd', NULL)";
    assert_eq!(asker.say(theirs), Err("NZ008".to_owned()));
    // Whoever is dismissed sees nothing from then on.
    owner.get(&format!("SELECT nietz.dismiss(1, 'asker_{}', 'asker')", database.name));
    assert_eq!(asker.get("SELECT count(*) FROM nietz.run"), "0");
    assert_eq!(asker.say(&format!("SELECT nietz.cancel({run})")), Err(NOT_THERE.to_owned()));
}

#[test]
fn whoever_is_a_member_of_a_role_has_what_it_has() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    let mut group = database.role("team", 1, &["asker"]);
    let mut person = database.role("person", 1, &[]);
    assert_eq!(person.say("SELECT nietz.workspace('team')"), Err(NO_GRANT.to_owned()));
    owner.get(&format!("GRANT team_{0} TO person_{0}", database.name));
    assert_eq!(person.get("SELECT nietz.workspace('team')"), "1");
    assert_eq!(group.get("SELECT nietz.workspace('team')"), "1");
    assert_eq!(person.get("SELECT name FROM nietz.workspace"), "team");
    assert_eq!(person.say("SELECT nietz.workspace('more', true)"), Err("NZ008".to_owned()));
}

/// A channel's name is a secret of its workspace, since anybody may listen to any channel.
#[test]
fn channels_cannot_be_guessed() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    owner.get("SELECT nietz.workspace('theirs', true)");
    let channels = owner.get("SELECT string_agg(channel, ' ') FROM nietz.workspace");
    for channel in channels.split(' ') {
        assert_eq!(channel.len(), "nietz_".len() + 32, "{channel}");
    }
    let mut asker = database.role("asker", 1, &["asker"]);
    assert_eq!(asker.get("SELECT count(*) FROM nietz.workspace"), "1");
}
