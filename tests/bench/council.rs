//! One cycle of a council of fourteen, each of whom takes 300 ms: from the first of them being asked until the next call
//! after them, at the service. Beside it stands the slowest call.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::measure::{Cost, Row};
use crate::model_server::{ModelServer, Request, Response};

const SLOW: Duration = Duration::from_millis(300);

const SEATS: &str = "Growth Strategist, Financial Officer, Devil's Advocate, Ops Architect, Customer Advocate, Culture Lead, \
    Product Owner, Scrum Master, Senior Developer, Senior Architect, DevOps Engineer, Security Expert, QA Engineer, Tech Lead";

/// When each of the fourteen was asked, and when somebody was asked after them.
#[derive(Default)]
struct Times {
    seats: Vec<Instant>,
    after: Option<Instant>,
}

pub(crate) fn row(count: usize) -> Row {
    let (cycles, floors): (Vec<Cost>, Vec<Cost>) = (0..count).map(|_| cycle()).unzip();
    Row::ratio("a cycle of 14 personas at 300 ms, beside its slowest call", &cycles, &floors, 1.2)
}

fn cycle() -> (Cost, Cost) {
    let times: Arc<Mutex<Times>> = Arc::default();
    let seen = Arc::clone(&times);
    let server = ModelServer::start(move |request| {
        let mut times = seen.lock().expect("nobody panics while it is held");
        let schema = &request.body["response_format"]["json_schema"]["schema"];
        let reply = Response::text(value(schema, &mut (request.number * 100)).to_string());
        if is_seat(request) {
            times.seats.push(Instant::now());
            return reply.delay(SLOW);
        }
        if !times.seats.is_empty() {
            times.after.get_or_insert_with(Instant::now);
        }
        reply
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let status = Command::new(env!("CARGO_BIN_EXE_nietz"))
        .args(["run", "council", "Should we split billing into its own service?", "--personas", SEATS])
        .args(["--cycles", "1", "--clarify", "never", "--no-pause", "--model", "openai/test"])
        .current_dir(folder.path())
        .env_clear()
        .env("NIETZ_HOME", folder.path().join("home"))
        .env("OPENAI_API_KEY", "a-key-that-opens-nothing")
        .env("OPENAI_BASE_URL", server.url())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program starts");
    assert!(status.success(), "the council comes to its end");
    let times = times.lock().expect("nobody panics while it is held");
    assert_eq!(times.seats.len(), 14);
    let wall = times.after.expect("the answer is asked for") - times.seats[0];
    (Cost { wall, memory: 0.0 }, Cost { wall: SLOW, memory: 0.0 })
}

fn is_seat(request: &Request) -> bool {
    request.prompt().contains("a member of this council") && request.prompt().contains("\nCycle ")
}

/// A value that is valid by a schema; no two of its texts are alike.
fn value(schema: &Value, number: &mut usize) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let members = schema["properties"].as_object().into_iter().flatten();
            members.map(|(name, member)| (name.clone(), value(member, number))).collect()
        }
        Some("array") => {
            // Each option that is not decided for is rejected.
            if let Some(others) = schema["items"]["properties"]["option"]["enum"].as_array() {
                let mut reject = |option: &Value| {
                    let mut item = value(&schema["items"], number);
                    item["option"] = option.clone();
                    item
                };
                return others.iter().map(&mut reject).collect();
            }
            let least = schema["minItems"].as_u64().unwrap_or(0).max(1);
            (0..least).map(|_| value(&schema["items"], number)).collect()
        }
        Some("integer") => json!(70),
        Some("boolean") => json!(false),
        _ => {
            *number += 1;
            json!(format!("w{number}x stands beside w{}y", *number * 7))
        }
    }
}
