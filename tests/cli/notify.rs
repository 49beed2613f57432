//! The promise: a flow that may notify reaches its user in the way that their own configuration names and in no other; what is
//! sent is signed, has no secrets, is sent once, or again with the same id; and nothing about it ends a run.

use std::collections::BTreeSet;
use std::time::Duration;

use nietz::schema::Schema;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::env::{Env, KEY, RUN};
use crate::support::model_server::{Gate, ModelServer, Request, Response};
use crate::support::process::Ended;

const FLOW: &str = r#"
local nietz = require("@nietz")
return nietz.flow {
  name = "teller",
  summary = "Tells",
  host_api = 2,
  permissions = { notify = true },
  params = { title = { type = "string", default = "Done" } },
  run = function(ctx)
    return { told = nietz.notify { title = ctx.params.title, text = "Three of three", urgency = "high" } }
  end,
}
"#;

/// A secret of 32 bytes, and as receivers give it out.
const SECRET: &[u8; 32] = b"0123456789abcdef0123456789ABCDEF";
const WHSEC: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY=";

fn env() -> Env {
    Env::new().flow("teller", FLOW).var("HOOK", WHSEC)
}

/// A user who is notified by this server.
fn hooked(server: &ModelServer) -> Env {
    env().config(&format!("notify: {{url: '{}/hook', secret_env: HOOK}}\n", server.url()))
}

fn ok(_: &Request) -> Response {
    Response::plain(204, "")
}

fn told(ended: &Ended) -> Value {
    ended.result()["told"].clone()
}

/// HMAC-SHA256 by RFC 2104, for keys of up to a block.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let padded = |with: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect() };
    let inner = Sha256::digest([padded(0x36), message.to_vec()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

/// Base64 by the program of the system.
fn base64(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("bytes"), bytes).expect("it can be written");
    let program = std::process::Command::new("base64").args(["-w0", "bytes"]).current_dir(folder.path()).output();
    String::from_utf8(program.expect("base64 is there").stdout).expect("it is text")
}

/// Checks a post as a receiver does that has read the specification.
fn verify(request: &Request) {
    let header = |name: &str| request.header(name).to_owned();
    let body = String::from_utf8(request.raw.clone()).expect("it is text");
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let signature = base64(&hmac(SECRET, format!("{id}.{timestamp}.{body}").as_bytes()));
    assert_eq!(header("webhook-signature"), format!("v1,{signature}"));
    // The test's clock stands at 2026-01-09T10:30:00Z.
    assert_eq!(timestamp, "1767954600");
    assert_eq!((request.method.as_str(), header("content-type").as_str()), ("POST", "application/json"));
    assert_eq!(request.body["id"], id);
    valid(&request.body);
}

fn valid(payload: &Value) {
    let text = include_str!("../../src/schema/builtin/notification.schema.json");
    let schema = Schema::compile(&serde_json::from_str(text).expect("it is JSON")).expect("it is a schema");
    let wrong = schema.violations(payload);
    assert!(wrong.is_empty(), "{payload}: {wrong:?}");
}

#[test]
fn a_program_gets_the_notification_on_its_standard_input_and_no_key_of_a_model() {
    let env = env().config(
        "notify: {command: [/bin/sh, -c, 'cat >> payload; echo >> payload; env > environment; pwd > place']}\n",
    );
    let ended = env.run(["teller"]).go().exits(0);
    assert_eq!(told(&ended), true);
    let home = env.home();
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap_or_default();
    let payload: Value = serde_json::from_str(&read("payload")).expect("one line of JSON");
    valid(&payload);
    let workspace = env.workspace().canonicalize().expect("it is there");
    let expected = json!({
        "v": 1, "id": payload["id"], "run": RUN, "flow": "teller", "title": "Done", "text": "Three of three",
        "urgency": "high", "time": "2026-01-09T10:30:00Z",
        "resume": format!("nietz -C {} resume {RUN}", workspace.display()),
    });
    assert_eq!(payload, expected);
    assert!(!read("environment").contains(KEY) && read("environment").contains("PATH="), "{}", read("environment"));
    assert_eq!(read("place").trim(), home.canonicalize().expect("it is there").display().to_string());

    // What is recorded is not sent again: by a resume, by a test, by a fork.
    env.nietz(["resume", RUN]).go();
    env.nietz(["test", "--from-run", RUN, "--name", "told"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(read("payload").lines().count(), 1);
    assert_eq!(env.journal().of_kind("notify").len(), 1);
}

#[test]
fn a_recording_notifies_nobody() {
    let env = env().config("notify: {command: [/bin/sh, -c, 'cat >> payload']}\n");
    env.nietz(["test", "--record", "teller", "--name", "new"]).go().exits(0);
    env.nietz(["test", "--record"]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    assert!(!env.home().join("payload").exists());
}

#[test]
fn a_program_that_fails_is_told_and_the_run_goes_on() {
    let cases = [
        (
            r#"[/bin/sh, -c, 'echo "no display: $HOOK" >&2; exit 3']"#,
            "exit status: 3: no display: [redacted:HOOK_SECRET]",
        ),
        ("[/no/such/program]", "/no/such/program cannot be run"),
        // It does not read what it gets, and leaves something behind that holds its standard error.
        ("[/bin/sh, -c, 'sleep 50 & exit 4']", "exit status: 4"),
    ];
    for (command, why) in cases {
        let env = env().var("HOOK_SECRET", WHSEC).config(&format!("notify: {{command: {command}}}\n"));
        let ended = env.run(["teller"]).go().exits(0);
        assert_eq!(told(&ended), false, "{command}");
        let said = ended.stdout.lines().chain(ended.stderr.lines()).find(|line| line.contains("was not sent"));
        assert!(said.is_some_and(|said| said.contains(why)), "{command}: {ended:?}");
    }
}

#[test]
fn who_named_no_way_is_not_notified_and_nothing_is_said() {
    let ended = env().run(["teller"]).go().exits(0);
    assert_eq!(told(&ended), false);
    assert!(!ended.stdout.contains("not sent") && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn a_post_is_signed_as_the_specification_says() {
    let server = ModelServer::start(ok);
    let env = hooked(&server);
    let ended = env.run(["teller", "--title", &format!("the key is {KEY}, and {WHSEC}")]).go().exits(0);
    assert_eq!(told(&ended), true);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    verify(&requests[0]);
    assert_eq!(requests[0].body["title"], "the key is [redacted:OPENAI_API_KEY], and [redacted:notify.secret_env]");
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is one");
    assert!(!journal.contains(WHSEC) && !journal.contains(KEY));

    // The vectors of RFC 4231: the test's own rule is the real one.
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(hmac(&[0x0b; 20], b"Hi There")), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

#[test]
fn a_command_gives_the_secret_and_what_is_none_is_not_shown() {
    let server = ModelServer::start(ok);
    let with = |place: &str| env().config(&format!("notify: {{url: '{}/hook', {place}}}\n", server.url()));
    let by_command = format!("secret_command: [echo, {WHSEC}]");
    assert_eq!(told(&with(&by_command).run(["teller"]).go().exits(0)), true);
    verify(&server.requests()[0]);
    for (place, why) in [
        ("secret_env: UNSET", "the variable UNSET of notify.secret_env is not set"),
        ("secret_env: OPENAI_API_KEY", "24 to 64 bytes"),
        ("secret_command: ['false']", "notify.secret_command gave no key"),
    ] {
        let ended = with(place).run(["teller"]).go().exits(0);
        assert_eq!(told(&ended), false, "{place}");
        assert!(ended.stdout.contains(why) && !ended.stdout.contains(KEY), "{place}: {ended:?}");
    }
    assert_eq!(server.calls(), 1);
}

#[test]
fn a_post_is_tried_again_where_that_helps_and_follows_no_redirect() {
    let elsewhere = ModelServer::start(ok);
    let to = elsewhere.url();
    // The first answer, and how often it is sent in all.
    for (status, calls, sent) in [(503, 2, true), (429, 2, true), (400, 1, false), (404, 1, false), (307, 1, false)] {
        let to = to.clone();
        let server = ModelServer::start(move |request| match (request.number, status) {
            (1, 307) => Response::redirect(&to),
            (1, status) => Response::plain(status, ""),
            _ => Response::plain(200, ""),
        });
        let ended = hooked(&server).run(["teller"]).go().exits(0);
        assert_eq!((told(&ended), server.calls()), (json!(sent), calls), "{status}");
        server.requests().iter().for_each(verify);
        let ids: BTreeSet<String> =
            server.requests().iter().map(|request| request.header("webhook-id").to_owned()).collect();
        assert_eq!(ids.len(), 1, "{status}");
        if !sent {
            assert!(ended.stdout.contains(&format!("answered {status}")), "{ended:?}");
            // A path may be a secret: messages name the host alone.
            assert!(!ended.stdout.contains("/v1/hook"), "{ended:?}");
        }
    }
    assert_eq!(elsewhere.calls(), 0);
    let ended = env().config("notify: {url: 'http://127.0.0.1:1/', secret_env: HOOK}\n").run(["teller"]).go().exits(0);
    assert!(told(&ended) == false && ended.stdout.contains("cannot be reached"), "{ended:?}");
}

#[test]
fn a_run_that_is_killed_while_it_sends_sends_again_with_the_same_id_and_no_other_run_has_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |request| match request.number {
        1 => ok(request).held_by(&held),
        _ => ok(request),
    });
    let env = hooked(&server);
    let running = env.run(["teller"]).spawn();
    assert!(server.wait_for_calls(1, Duration::from_secs(60)), "it is sent");
    running.kill();
    gate.open();
    let ended = env.resume().go().exits(0);
    assert_eq!(told(&ended), true);
    env.run(["teller"]).var("NIETZ_RUN", "r2").go().exits(0);
    let requests = server.requests();
    requests.iter().for_each(verify);
    let ids: Vec<&str> = requests.iter().map(|request| request.header("webhook-id")).collect();
    assert!(ids.len() == 3 && ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
    assert_eq!(requests[0].raw, requests[1].raw);
    // Once it is recorded, it stays so, wherever the next process is killed.
    env.resume().go().exits(0);
    assert_eq!(server.calls(), 3);
}

#[test]
fn a_way_that_cannot_be_used_is_refused_with_its_place() {
    for (text, place, why) in [
        ("{}", ":1:1: notify:", "it needs a command or a url"),
        ("{command: [a], url: 'https://a.example/'}", ":1:24: notify.url:", "name one"),
        ("{url: 'https://a.example/'}", ":1:10: notify.url:", "secret_env or secret_command"),
        ("{url: 'http://a.example/', secret_env: HOOK}", ":1:10: notify.url:", "use https"),
        ("{url: 'http://localhost:x@a.example/', secret_env: HOOK}", ":1:10: notify.url:", "sent unseen"),
        ("{command: []}", ":1:", "/notify/command"),
        ("{comand: [a]}", ":1:", "comand"),
    ] {
        let ended = env().config(&format!("notify: {text}\n")).nietz(["run", "teller"]).go().exits(1);
        let said = &ended.stderr;
        assert!(said.contains("config-invalid") && said.contains(place) && said.contains(why), "{text}: {said}");
    }
}

#[test]
fn a_project_says_nothing_about_it() {
    let env = env().file("nietz.yaml", "notify: {command: [/bin/sh, -c, 'touch $HOME/ran']}\n");
    let ended = env.nietz(["run", "teller"]).go().exits(1);
    assert!(ended.stderr.contains("config-invalid") && ended.stderr.contains("notify"), "{ended:?}");
    assert!(!env.home().join("ran").exists());
}

#[test]
fn it_is_asked_for_once_and_a_plan_says_where_it_goes() {
    let env = env().trusting("").config("notify: {url: 'https://hooks.example/T0/secret', secret_env: HOOK}\n");
    let refused = env.run(["teller"]).go().exits(5);
    assert!(
        refused.stderr.contains("it sends you notifications") && refused.stderr.contains("--allow notify"),
        "{refused:?}"
    );
    let plan = env.nietz(["run", "teller", "--plan", "--trust"]).go().exits(0).stdout;
    assert!(plan.contains("sends you notifications to https://hooks.example, signed"), "{plan}");
    assert!(!plan.contains("T0"), "{plan}");
}

/// Nobody reads a novel on a lock screen, and a long text is no reason for a run to end.
#[test]
fn what_is_long_is_cut_and_what_is_empty_is_refused() {
    let env = env().config("notify: {command: [/bin/sh, -c, 'cat > payload']}\n");
    let long = format!("first\nsecond {}", "x".repeat(500));
    assert_eq!(told(&env.run(["teller", "--title", &long]).go().exits(0)), true);
    let payload = std::fs::read(env.home().join("payload")).expect("it was sent");
    let payload: Value = serde_json::from_slice(&payload).expect("it is JSON");
    let title = payload["title"].as_str().expect("a text");
    assert!(title.starts_with("first second xx") && title.ends_with("x…") && title.chars().count() == 201, "{title}");
    let refused = env.run(["teller", "--title", " "]).var("NIETZ_RUN", "r2").go().exits(1);
    assert_eq!(refused.ending()["failure"]["code"], "request-invalid");
}

#[test]
fn one_process_sends_a_hundred_and_no_more() {
    let flow = FLOW.replace(
        "return { told",
        "for n = 1, 110 do nietz.notify { title = tostring(n), text = \"\" } end\n    return { told",
    );
    let env =
        env().flow("teller", &flow).config("notify: {command: [/bin/sh, -c, 'cat >> payload; echo >> payload']}\n");
    let ended = env.run(["teller"]).go().exits(0);
    assert_eq!(told(&ended), false);
    assert!(ended.stdout.contains("has sent 100"), "{ended:?}");
    let payload = std::fs::read_to_string(env.home().join("payload")).expect("some were sent");
    assert_eq!(payload.lines().count(), 100);
}
