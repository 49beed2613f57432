//! The promise: runs move between stores byte for byte, what is old goes when it is said to, metrics say what is so, and what
//! OPERATIONS.md shows can be used as it stands.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::children::{Team, end};
use crate::cli::children;

const PAGE: &str = include_str!("../../src/store/OPERATIONS.md");

#[test]
fn a_run_moves_from_a_server_into_files_and_back_byte_for_byte() {
    let Some(team) = Team::new(None) else { return };
    let (on_server, in_files) = (team.machine(), children::env(&team.server));
    on_server.run(["part", "1"]).go().exits(0);
    on_server.nietz(["runs", "export", "r1", "--into", "out"]).go().exits(0);
    let exported = on_server.read("out/r1.jsonl");
    let file = on_server.path("out/r1.jsonl").display().to_string();
    in_files.nietz(["runs", "import", "--own", &file]).go().exits(0);
    in_files.nietz(["verify", "r1"]).go().exits(0);
    assert_eq!(in_files.read(".nietz/runs/r1/journal.jsonl"), exported);
    // Into another workspace of the server, and out of it again.
    team.ask("SELECT nietz.workspace('other', true)");
    let other = team.machine().var("NIETZ_STORE_WORKSPACE", "other");
    in_files.nietz(["runs", "export", "r1", "--into", "back"]).go().exits(0);
    let file = in_files.path("back/r1.jsonl").display().to_string();
    other.nietz(["runs", "import", "--own", &file]).go().exits(0);
    other.nietz(["verify", "r1"]).go().exits(0);
    other.nietz(["runs", "export", "r1", "--into", "out"]).go().exits(0);
    assert_eq!(other.read("out/r1.jsonl"), exported);
    assert_eq!(other.resume().go().exits(0).ending()["result"], on_server.resume().go().ending()["result"]);
    assert_eq!(team.server.chats(), 3, "nothing is asked again");
}

#[test]
fn what_is_old_goes_when_it_is_said_to_and_what_waits_stays() {
    let Some(team) = Team::new(None) else { return };
    let env = team.machine();
    env.run(["part", "1"]).go().exits(0);
    env.run(["part", "2", "--asks"]).var("NIETZ_RUN", "r2").go().exits(7);
    env.run(["part", "3"]).var("NIETZ_RUN", "r3").go().exits(0);
    env.nietz(["runs", "prune", "--keep", "1"]).go().exits(0);
    assert_eq!(team.ask("SELECT count(*) FROM nietz.run"), "3", "it is only listed");
    env.nietz(["runs", "prune", "--keep", "1", "--yes"]).go().exits(0);
    assert_eq!(team.ask("SELECT string_agg(name, ' ' ORDER BY name) FROM nietz.run"), "r2 r3");
    assert_eq!(
        team.ask("SELECT count(*) FROM nietz.line l WHERE NOT EXISTS (SELECT FROM nietz.run r WHERE r.id = l.run)"),
        "0"
    );
}

#[test]
fn metrics_say_what_a_worker_has_done_and_what_waits() {
    let Some(team) = Team::new(None) else { return };
    let env = team.machine();
    let mut worker = env.nietz(["worker", "--metrics", "127.0.0.1:0"]).patient().spawn();
    worker.close();
    let address =
        worker.line().rsplit_once("http://").expect("it says where").1.trim_end_matches("/metrics").to_owned();
    team.queue(&env, &[]);
    team.until("SELECT status FROM nietz.run WHERE name = 'r1'", "done");
    let scrape = || {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        text
    };
    let mut text = scrape();
    while !text.contains("nietz_worker_runs 0\n") {
        text = scrape();
    }
    for line in [
        "nietz_worker_runs_left_total{how=\"done\"} 4",
        "nietz_queue_length{workspace=\"team\",tag=\"\",state=\"all\"} 0",
        "nietz_runs{workspace=\"team\",status=\"done\"} 4",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    // By Prometheus' text format, each line is a comment or a name with a number.
    for line in text.split("\r\n\r\n").nth(1).expect("a body").lines().filter(|line| !line.starts_with("# ")) {
        assert!(
            line.starts_with("nietz_") && line.rsplit(' ').next().is_some_and(|last| last.parse::<f64>().is_ok()),
            "{line}"
        );
    }
    end(worker);
}

/// The blocks of the page in this language.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let starts = PAGE.split(&fence).skip(1);
    starts.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_the_page_shows_is_what_the_programs_take() {
    let manifests: Vec<serde_json::Value> = blocks("yaml")
        .iter()
        .map(|text| serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}")))
        .collect();
    let [compose, kubernetes] = manifests.as_slice() else { panic!("{} blocks", manifests.len()) };
    let worker = &compose["services"]["worker"];
    for secret in worker["secrets"].as_array().into_iter().flatten() {
        assert!(compose["secrets"].get(secret.as_str().unwrap_or_default()).is_some(), "{secret} is nowhere");
    }
    let container = &kubernetes["spec"]["template"]["spec"]["containers"][0];
    let named: Vec<&str> = kubernetes["spec"]["template"]["spec"]["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        assert!(named.contains(&mount["name"].as_str().unwrap_or_default()), "{mount} is nowhere");
    }
    let unit = blocks("text").into_iter().find(|text| text.contains("[Service]")).expect("there is a unit");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/nietz ")).expect("it starts");
    let of_container: Vec<String> = container["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    let of_service = worker["command"].as_str().expect("a command").to_owned();
    // Each command line is one that this program understands, as far as it can here.
    let env = crate::support::env::Env::new();
    for line in [start.to_owned(), of_container.join(" "), of_service] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], "worker", "{line}");
        let refused = env.nietz(words).go();
        assert!(refused.stderr.contains("needs a store"), "{line}: {refused:?}");
    }
    for name in unit.lines().filter_map(|line| line.strip_prefix("Environment=")?.split('=').next()) {
        assert!(["NIETZ_STORE", "NIETZ_STORE_PASSWORD_FILE"].contains(&name), "{name} is read by nobody");
    }
    assert!(
        unit.contains("LoadCredential=password:") && unit.contains("=%d/password"),
        "the password is where it is looked for"
    );
}
