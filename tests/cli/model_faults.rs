//! The promise: whatever a model service does wrong, the run says so in a code of its own, ends with that
//! code's exit status, and goes on when the service is well again.

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

const FLOW: &str = include_str!("../support/flows/chatter.lua");

const QUICK: &str = "models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}, \
                     providers: {openai: {timeout_seconds: 0.2}}}\n";

/// A service that misbehaves for so many calls, and answers after that.
fn faulty(calls: usize, fault: fn(&Request) -> Response) -> ModelServer {
    ModelServer::start(move |request| match request.number <= calls {
        true => fault(request),
        false => Response::text("well again"),
    })
}

fn env(server: &ModelServer) -> Env {
    Env::with(server).flow("chatter", FLOW).config(QUICK)
}

/// Each fault, the code of a run that it ends, and that code's exit status.
type Case = (&'static str, fn(&Request) -> Response, &'static str, i32);

const PASSING: &[Case] = &[
    ("429 with Retry-After", |_| Response::error(429, "slow").header("retry-after", "0"), "model-overloaded", 3),
    ("429 without", |_| Response::error(429, "slow"), "model-overloaded", 3),
    ("500", |_| Response::error(500, "oops"), "model-broken", 3),
    ("reset in the stream", |_| Response::text("half a reply, and then").cut_after(120), "model-broken", 3),
    ("a stream without its end", |_| Response::text("half a reply").without_end(), "model-broken", 3),
    ("silence", |_| Response::silence(), "model-unreachable", 3),
    ("silence in the stream", |_| Response::text("half a reply, and then").silent_after(120), "model-unreachable", 3),
    ("a page instead of a reply", |_| Response::plain(200, "<html>hello</html>"), "model-broken", 3),
    ("garbage in the stream", |_| Response::stream("data: {\"cho\n\ndata: ]]\n\n"), "model-broken", 3),
];

#[test]
fn a_fault_that_passes_is_tried_again_and_not_seen() {
    for (what, fault, ..) in PASSING {
        let server = faulty(2, *fault);
        let ended = env(&server).run(["chatter"]).go();
        assert_eq!(ended.result(), "well again", "{what}");
        assert_eq!((server.calls(), ended.of_type("call_retried").len()), (3, 2), "{what}");
    }
}

#[test]
fn a_fault_that_stays_ends_the_run_and_resuming_goes_on() {
    for (what, fault, code, exit) in PASSING {
        let server = faulty(3, *fault);
        let env = env(&server);
        let failed = env.run(["chatter"]).go();
        assert_eq!((failed.failure().as_str(), failed.code), (*code, Some(*exit)), "{what}: {failed:?}");
        assert_eq!(server.calls(), 3, "{what}");
        assert_eq!(env.resume().go().result(), "well again", "{what}");
    }
}

#[test]
fn a_failure_that_the_flow_handled_is_given_back_as_it_was() {
    let server = faulty(3, |_| Response::error(500, "oops"));
    let env = env(&server);
    assert_eq!(env.run(["chatter", "--handle"]).go().result(), "model-broken");
    assert_eq!(env.resume().go().result(), "model-broken");
    assert_eq!(server.calls(), 3, "a run that is done is not done again");
}

#[test]
fn what_cannot_get_better_is_not_tried_again() {
    let cases: &[Case] = &[
        ("400", |_| Response::error(400, "no"), "model-refused", 1),
        ("401", |_| Response::error(401, "who?"), "key-refused", 1),
        ("404", |_| Response::error(404, "what?"), "model-unknown", 1),
        ("a quota", |_| Response::error(402, "pay"), "budget-used-up", 6),
        ("a long wait", |_| Response::error(429, "slow").header("retry-after", "7200"), "budget-used-up", 6),
    ];
    for (what, fault, code, exit) in cases {
        let server = faulty(1, *fault);
        let env = env(&server);
        let failed = env.run(["chatter"]).go();
        assert_eq!((failed.failure().as_str(), failed.code), (*code, Some(*exit)), "{what}: {failed:?}");
        assert_eq!(server.chats(), 1, "{what}");
        assert_eq!(env.resume().go().result(), "well again", "{what}");
    }
}

#[test]
fn a_service_that_is_not_there_is_said_to_be_unreachable() {
    let env = Env::new().flow("chatter", FLOW);
    let failed = env.run(["chatter"]).go().exits(3);
    assert_eq!(failed.failure(), "model-unreachable");
    // Nothing listens there, and no further attempt changes that.
    assert_eq!(failed.of_type("call_retried").len(), 0);
    let server = ModelServer::start(|_| Response::text("well again"));
    let mended = env.resume().var("OPENAI_BASE_URL", &server.url()).go();
    assert_eq!(mended.result(), "well again");
}
