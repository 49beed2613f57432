//! What a brainstorm costs where a service keeps what it was sent: a large mind's requests go on from each other. A small mind's say
//! little, and go on from nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::scribe;
use super::table::SMALL;
use super::worth::cases;
use crate::support::env::Env;
use crate::support::model_server::cache::{Cache, Counted};
use crate::support::model_server::{ModelServer, Request, Response};

/// The cases whose users answer here: what two people really say to 18 questions.
const SPOKEN: [&str; 2] = ["probe-in-the-vineyard", "invoices-in-five-formats"];
const ANSWERS: usize = 18;
/// How many questions an iteration has.
const AT_ONCE: usize = 3;

/// Questions as a large mind asks them, one about what was said before for each answer.
const ASKED: [&str; 24] = [
    "Which of the forty places would you give up first if the budget were halved tomorrow, and who would have to agree to that?",
    "Where does the number that you just named come from: did somebody count it, or has everybody simply always said it?",
    "Suppose the radio works and nobody reads the report; what would the growers then do differently from last summer?",
    "You want it in the ground before budbreak. Which single delivery, if late by three weeks, makes that impossible?",
    "How will somebody standing in the mud with gloves on see that the thing is alive before they walk to the next row?",
    "Who decides on a Monday morning when two neighbours ask for the same water, and on which line of the page do they look?",
    "What has been tried against these losses before, and why did people stop doing it after the second season?",
    "Which promise made in the meeting would hurt most if it had to be taken back, and to whom was it made in person?",
    "If the cell dies in year three, is that a complaint, a refund, or just a spare part from the shelf in the barn?",
    "Where may the measured values be kept, and does anybody outside the cooperative ever have a right to see one of them?",
    "Which of those constraints is a law of nature, which one a habit of purchasing, and which could be asked about again?",
    "What would make you stop the pilot in its second month, said as a figure that both of you accept beforehand?",
    "How does an invoice enter the house today, hand by hand, from the envelope or mailbox up to the day it is paid?",
    "Which supplier, by name, causes most of the late fees, and has anyone ever asked them why their letters differ?",
    "You said that closing takes too long. On which of those days is everybody waiting, and for exactly what document?",
    "If only one format could be read reliably by January, which one removes the most work from the clerk's table?",
    "What must never happen to an original, even when the disk is full, the vendor is gone and the auditor is at the door?",
    "Who answers when the posted total and the printed total disagree by a cent, and how long may that stay open?",
    "Which measurement on two hundred scans would convince the colleague who wanted the other engine, and who publishes it?",
    "What leaves the company together with the engineer in March, and in which file does it stand before that?",
    "When the expected table is empty for an order, whose morning is spoilt first, and what do they do about it?",
    "Is there anything in here that you would be embarrassed to show the chief of finance next week, and why that?",
    "What is deliberately not part of this, although somebody at the table will surely ask for it within a month?",
    "Which first step could be done on Thursday with nothing but what already lies around, and what would it teach you?",
];

fn questions(asked: &AtomicUsize) -> Value {
    let question = |_| {
        json!({"question": ASKED[asked.fetch_add(1, Ordering::SeqCst) % ASKED.len()],
               "replies": ["It waits until the next morning, and whoever is late hears of it",
                           "Somebody else of the team takes it over, from a list that is kept by hand",
                           "Nothing happens today, and that is the problem"],
               "urgency": "important"})
    };
    (0..AT_ONCE).map(question).collect()
}

fn reply(request: &Request, asked: &AtomicUsize) -> Response {
    let mut value = scribe::reply(request);
    if !value["questions"].is_null() {
        value["questions"] = questions(asked);
    }
    Response::text(value.to_string())
}

/// Six iterations of three answers each, and the brief.
fn played(env: impl Fn(&str) -> Env, model: &str) -> Counted {
    let cache = Cache::default();
    let asked = AtomicUsize::new(0);
    let server = ModelServer::start(cache.before(move |request| reply(request, &asked)));
    let mut answers: Vec<String> = SPOKEN
        .iter()
        .flat_map(|name| cases().into_iter().find(|case| case.name == *name).expect("a case").script)
        .map(|turn| turn.says.trim().to_owned())
        .take(ANSWERS)
        .collect();
    assert_eq!(answers.len(), ANSWERS);
    answers.push("finish".to_owned());
    let env = env(&server.url()).file("answers.yaml", json!({"answer": answers}).to_string());
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/brainstorm.lua");
    let call = env.run_on(
        model,
        [
            flow,
            "a probe in each row",
            "--no-clarify",
            "--no-hmw",
            "--no-suggest",
            "--no-technique",
            "--answers",
            "answers.yaml",
        ],
    );
    assert_eq!(call.go().result()["status"], "completed");
    cache.counted()
}

#[test]
fn six_iterations_pay_at_most_0_65_of_the_price_of_their_input() {
    let at = |variable: &'static str, suffix: &'static str| {
        move |url: &str| {
            let base = url.trim_end_matches("/v1");
            Env::new().var(variable, &format!("{base}{suffix}")).var("ANTHROPIC_API_KEY", "a-key")
        }
    };
    let marked = played(at("ANTHROPIC_BASE_URL", ""), "anthropic/claude-sonnet-4-5");
    let by_itself = played(at("OPENAI_BASE_URL", "/v1"), "openai/test");
    println!("marked {:.3} {marked:?}\nby itself {:.3} {by_itself:?}", marked.ratio(), by_itself.ratio());
    for (wire, counted) in [("marked", marked), ("by itself", by_itself)] {
        assert!(counted.calls >= 13, "{wire}: {counted:?}");
        assert!(counted.ratio() <= 0.65, "{wire}: {:.3} of the price without a cache: {counted:?}", counted.ratio());
    }
}

#[test]
fn a_small_mind_is_sent_no_more_than_before() {
    let small = played(|url| Env::new().var("OPENAI_BASE_URL", url).config(SMALL), "openai/test");
    println!("small {:.3} {small:?}", small.ratio());
    assert!(small.calls >= 13 && small.input <= MOST_SMALL, "{small:?}");
}

/// As it was before a large mind's prompts went on from each other.
const MOST_SMALL: u64 = 13_191;
