//! The promise: runs can be followed in a browser of this machine while they go on, and by nobody else; nothing that is asked of
//! that server starts or changes anything but an answer of the user's, which its run takes at once or when it is resumed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Running;

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "talk", summary = "Talks", host_api = 2, permissions = { llm = true },
  params = { about = { type = "string", positional = true, required = true } },
  run = function(ctx)
    ui.say("Let us talk about **" .. ctx.params.about .. "**.", { from = "Ada" })
    local colour = ui.choose { id = "colour", prompt = "Which colour?", options = { "red", "green" } }
    local reply = llm.chat { prompt = colour, label = "Grace", stream = true }
    local more = ui.ask { id = "more", prompt = "And then?" }
    ui.say("You said " .. more)
    return { colour = colour, more = more }
  end,
  report = function(run) return { { type = "cards", cards = { { name = "Asked", value = #run.params.about } } } } end,
}"#;

fn env() -> (ModelServer, Env) {
    let server = ModelServer::start(|_| Response::text("A <b>fine</b> *colour*."));
    let env = Env::with(&server).flow("talk", FLOW);
    (server, env)
}

/// A viewer that runs, and where it is.
struct Viewer {
    running: Running,
    host: String,
    /// The token.
    token: String,
}

impl Viewer {
    fn start(env: &Env, words: &[&str]) -> Viewer {
        let mut running = env.nietz(["view"].iter().chain(words).copied()).spawn();
        let line = running.line();
        let address = line.strip_prefix("http://").unwrap_or_else(|| panic!("no address: {line}"));
        let mut parts = address.split('/');
        let (host, token) = (parts.next().expect("a host").to_owned(), parts.next().expect("a token").to_owned());
        Viewer { running, host, token }
    }

    /// Asks for a path below the token's, with these lines in the head.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        self.raw(method, &format!("/{}/{path}", self.token), headers, body)
    }

    fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = self.open(method, path, headers, body);
        let mut whole = String::new();
        stream.read_to_string(&mut whole).expect("it answers and ends");
        let status = whole.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, whole)
    }

    fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {}\r\n", self.host);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        write!(stream, "{head}\r\n{body}").expect("it listens");
        stream
    }

    fn get(&self, path: &str) -> String {
        let (status, whole) = self.ask("GET", path, &[], "");
        assert_eq!(status, 200, "{path}: {whole}");
        whole
    }

    /// Answers the question that a page shows.
    fn answer(&self, run: &str, text: &str) -> (u16, String) {
        let page = self.get(&format!("run/{run}"));
        let key =
            page.split("name=\"key\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a question");
        let origin = format!("http://{}", self.host);
        self.ask("POST", &format!("run/{run}/answer"), &[("origin", &origin)], &format!("key={key}&text={text}"))
    }

    fn end(self) {
        self.running.kill();
    }
}

#[test]
fn a_list_and_a_page_are_shown_and_nothing_but_the_token_opens_them() {
    let (_server, env) = env();
    env.run(["talk", "tea & <i>milk</i>"]).go().exits(7);
    let viewer = Viewer::start(&env, &[]);
    let list = viewer.get("");
    assert!(list.contains("href=\"run/r1\"") && list.contains("tea &amp; &lt;i&gt;milk"), "{list}");
    assert!(viewer.get("?q=TEA&status=waiting").contains("run/r1"));
    assert!(viewer.get("?q=coffee").contains("There is no such run."));
    assert!(!viewer.get("").contains("name=\"tag\""), "where there are no tags, nothing asks for one");
    env.nietz(["runs", "tag", "r1", "to:read"]).go().exits(0);
    let tagged = viewer.get("?tag=to%3Aread");
    assert!(tagged.contains("run/r1") && tagged.contains("<option selected>to:read</option>"), "{tagged}");
    assert!(viewer.get("?tag=other").contains("There is no such run."));
    let page = viewer.get("run/r1").replace("&#x2f;", "/");
    for part in ["<strong>tea", "Asked", "data-events=\"r1/events?after=", "Which colour?", "connect-src 'self'"] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    for header in ["cache-control: no-store", "referrer-policy: same-origin", "x-content-type-options: nosniff"] {
        assert!(page.contains(header), "{header}: {page}");
    }
    // Another name that leads here, another page that asks, another token, and what is no run.
    let status = |headers: &[(&str, &str)]| viewer.ask("GET", "run/r1", headers, "").0;
    assert_eq!(status(&[("host", "evil.test")]), 421);
    assert_eq!(status(&[("host", &viewer.host.replace("127.0.0.1", "evil.test"))]), 421);
    assert_eq!(status(&[("origin", "http://evil.test")]), 403);
    assert_eq!(status(&[("origin", "null")]), 403);
    assert_eq!(viewer.raw("GET", "/", &[], "").0, 404);
    assert_eq!(viewer.raw("GET", &format!("/{}/run/r1", "0".repeat(32)), &[], "").0, 404);
    for run in ["r2", "..%2f..%2fhome", "%2e%2e", ".removed-x"] {
        assert_eq!(viewer.ask("GET", &format!("run/{run}"), &[], "").0, 404, "{run}");
    }
    viewer.end();
}

#[test]
fn an_answer_is_taken_at_once_by_a_run_that_waits() {
    let (_server, env) = env();
    let mut running = env.run(["talk", "tea"]).spawn();
    running.wait_for("asked");
    let viewer = Viewer::start(&env, &[]);
    let (status, refused) = viewer.answer(RUN, "blue");
    assert!(status == 422 && refused.contains("is none of the options"), "{refused}");
    assert_eq!(viewer.answer(RUN, "green").0, 303);
    running.wait_for("asked");
    assert_eq!(viewer.answer(RUN, "so+be+it").0, 303);
    // Nobody said anything at its input.
    let ended = running.end().exits(0);
    assert_eq!(ended.result(), serde_json::json!({ "colour": "green", "more": "so be it" }));
    assert!(
        std::fs::read_dir(env.home().join("answers"))
            .into_iter()
            .flatten()
            .flatten()
            .all(|run| { std::fs::read_dir(run.path()).expect("a folder").next().is_none() }),
        "what was taken is not kept"
    );
    viewer.end();
}

#[test]
fn an_answer_to_a_run_that_ended_is_taken_when_it_is_resumed() {
    let (_server, env) = env();
    env.run(["talk", "tea"]).go().exits(7);
    let viewer = Viewer::start(&env, &[RUN]);
    assert_eq!(viewer.answer(RUN, "red").0, 303);
    let page = viewer.get("run/r1");
    assert!(page.contains("<code>nietz resume r1</code>") && !page.contains("name=\"key\""), "{page}");
    // Nothing was started.
    assert_eq!(env.journal().answered(), [""; 0]);
    let ended = env.resume().go().exits(7);
    assert!(ended.stderr.contains("`more`") || ended.stdout.contains("\"more\""), "{ended:?}");
    assert_eq!(env.journal().answered(), ["colour"]);
    viewer.end();
}

#[test]
fn nobody_else_answers_and_read_only_pages_take_none() {
    let (_server, env) = env();
    env.run(["talk", "tea"]).go().exits(7);
    let journal = std::fs::read(env.journal_path()).expect("there is a journal");
    env.write(".nietz/runs/brought/journal.jsonl", &journal);
    let viewer = Viewer::start(&env, &[]);
    let page = viewer.get("run/r1");
    let key = page.split("name=\"key\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a question");
    let body = format!("key={key}&text=red");
    let own = format!("http://{}", viewer.host);
    // Without an origin, with another one, by a read, to a run of somebody else, and to no open question.
    assert_eq!(viewer.ask("POST", "run/r1/answer", &[], &body).0, 403);
    assert_eq!(viewer.ask("POST", "run/r1/answer", &[("origin", "http://evil.test")], &body).0, 403);
    assert_eq!(viewer.ask("GET", &format!("run/r1/answer?{body}"), &[], "").0, 405);
    assert_ne!(viewer.ask("POST", "run/brought/answer", &[("origin", &own)], &body).0, 303);
    assert_eq!(viewer.ask("POST", "run/r1/answer", &[("origin", &own)], "key=..%2fkey&text=red").0, 422);
    assert!(!viewer.get("run/brought").contains("name=\"key\""));
    viewer.end();
    let viewer = Viewer::start(&env, &["--read-only"]);
    assert!(!viewer.get("run/r1").contains("name=\"key\""));
    let own = format!("http://{}", viewer.host);
    assert_eq!(viewer.ask("POST", "run/r1/answer", &[("origin", &own)], &body).0, 403);
    assert!(!env.home().join("answers").exists());
    viewer.end();
}

/// What one event says.
fn next(stream: &mut BufReader<TcpStream>, wanted: &str) -> Value {
    let (mut name, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        assert_ne!(stream.read_line(&mut line).expect("it goes on"), 0, "it ended before {wanted}");
        if let Some(event) = line.trim_end().strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = line.trim_end().strip_prefix("data: ")
            && name == wanted
        {
            return serde_json::from_str(data).expect("JSON");
        }
    }
}

#[test]
fn a_page_is_told_what_its_run_does_while_it_does_it() {
    let (_server, env) = env();
    let mut running = env.run(["talk", "tea"]).spawn();
    running.wait_for("asked");
    let viewer = Viewer::start(&env, &[]);
    let page = viewer.get("run/r1");
    let events = page.split("data-events=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("its events");
    let path = format!("/{}/run/{}", viewer.token, events.replace("&#x2f;", "/"));
    let mut stream = BufReader::new(viewer.open("GET", &path, &[], ""));
    assert!(next(&mut stream, "questions").as_str().expect("text").contains("Which colour?"));
    assert_eq!(next(&mut stream, "status")["name"], "running");
    running.say("green\n");
    running.wait_for("asked");
    let begun = Instant::now();
    let mut html = String::new();
    while !html.contains("And then?") {
        let rows = next(&mut stream, "rows");
        html += &rows.as_array().expect("a list").iter().filter_map(|row| row["html"].as_str()).collect::<String>();
    }
    // Twenty times what an idle machine takes at most, unless one is measured.
    let most = if is_measured() { Duration::from_millis(300) } else { Duration::from_secs(6) };
    println!("a row was seen after {:?}", begun.elapsed());
    assert!(begun.elapsed() < most, "{:?}", begun.elapsed());
    // What a model wrote is no markup in it.
    assert!(html.contains("<em>colour</em>") && !html.contains("<b>fine"), "{html}");
    assert!(html.contains("id=\"e"), "{html}");
    assert!(next(&mut stream, "questions").as_str().expect("text").contains("And then?"));
    running.say("it\n");
    running.close();
    running.end().exits(0);
    while next(&mut stream, "status")["name"] != "done" {}
    viewer.end();
}

fn is_measured() -> bool {
    std::env::var_os("NIETZ_TEST_WHOLE").is_some()
}

#[test]
fn ten_viewers_at_once_see_all_and_keep_a_run_from_nothing() {
    let flow = "local ui = require('@nietz/ui')\n\
        return require('@nietz').flow { name = 'says', summary = 's', run = function()\n\
        ui.ask { id = 'go', prompt = 'Go?' } for index = 1, 500 do ui.say('line ' .. index) end end }";
    let env = Env::new().flow("says", flow);
    let run = |name: &str, viewer: Option<&Viewer>| {
        let mut running = env.run(["says"]).var("NIETZ_RUN", name).spawn();
        running.wait_for("asked");
        let watching = viewer.into_iter().flat_map(|viewer| {
            let path = format!("/{}/run/{name}/events?after=0", viewer.token);
            (0..10).map(move |_| viewer.open("GET", &path, &[], ""))
        });
        let watching: Vec<_> = watching
            .map(|stream| {
                std::thread::spawn(move || {
                    let (mut stream, mut seen) = (BufReader::new(stream), 0);
                    while seen < 500 {
                        let rows = next(&mut stream, "rows");
                        seen += rows.as_array().expect("a list").iter().filter(|row| row["into"] == "turns").count();
                    }
                })
            })
            .collect();
        let begun = Instant::now();
        running.say("yes\n");
        running.close();
        running.end().exits(0);
        let took = begun.elapsed();
        watching.into_iter().for_each(|watching| watching.join().expect("each saw all of it"));
        took
    };
    let alone = run("alone", None);
    let viewer = Viewer::start(&env, &[]);
    let watched = run("watched", Some(&viewer));
    println!("{alone:?} alone, {watched:?} with ten viewers");
    let most = if is_measured() { 1.5 } else { 30.0 };
    assert!(
        watched.as_secs_f64() <= most * alone.as_secs_f64().max(0.2),
        "{alone:?} alone, {watched:?} with ten viewers"
    );
    viewer.end();
}

#[test]
fn what_others_wrote_is_no_markup_in_a_live_page_either() {
    let all = super::report::PAYLOADS.join("\n\n");
    let reply: &'static str = Box::leak(all.clone().into_boxed_str());
    let server = ModelServer::start(move |_| Response::text(reply));
    let env = Env::with(&server).flow("talk", FLOW);
    env.run(["talk", &all]).stdin("green\n").go().exits(7);
    let viewer = Viewer::start(&env, &[]);
    let mut stream = BufReader::new(viewer.open("GET", &format!("/{}/run/r1/events?after=0", viewer.token), &[], ""));
    let rows = next(&mut stream, "rows");
    let rows: String = rows.as_array().expect("a list").iter().filter_map(|row| row["html"].as_str()).collect();
    let body = |page: &str| page.split_once("</style>").expect("a style").1.to_owned();
    for (part, html) in [("rows", rows), ("list", body(&viewer.get(""))), ("page", body(&viewer.get("run/r1")))] {
        let elements = super::report::elements(&html);
        for (name, attributes) in &elements {
            let foreign =
                ["img", "iframe", "object", "embed", "base", "link", "style", "video", "audio", "math", "meta"];
            assert!(!foreign.contains(&name.as_str()), "{part} has <{name} {attributes}>");
            let names = attributes.split('"').step_by(2).flat_map(str::split_whitespace);
            let mut names = names.filter(|word| word.ends_with('='));
            assert!(!names.any(|word| word.starts_with("on") || word == "style="), "{part} has <{name} {attributes}>");
            let target = attributes.split_once("href=\"").map_or("#", |(_, target)| target);
            let own = ["#", "https://", "http://", "mailto:", "../", "run/"];
            assert!(own.iter().any(|start| target.starts_with(start)), "{part}: {attributes}");
        }
        let scripts = elements.iter().filter(|(name, _)| name == "script").count();
        assert_eq!(scripts, usize::from(part == "page"), "{part}: its own script alone");
    }
    viewer.end();
}
