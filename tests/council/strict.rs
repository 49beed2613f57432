//! The promise to users of today's models: a council comes to its end on providers that refuse what the flow would like to
//! have, and what the host makes of its calls there changes no key.

use super::model::Brain;
use super::table::REQUEST;
use crate::support::env::Env;
use crate::support::model_server::ModelServer;
use crate::support::process::Ended;
use crate::support::strict::{WIRES, env, keys};

fn hold(env: &Env, model: &str) -> Ended {
    env.run_on(model, ["council", REQUEST, "--no-pause", "--control"]).go()
}

#[test]
fn a_council_ends_on_strict_providers_and_its_calls_keep_their_keys() {
    for round in WIRES {
        let brain = Brain::default();
        let seat = round.serve(move |request| brain.answer(request).usage(100, 50));
        let strict = seat.env();
        let ended = hold(&strict, round.model);
        assert_eq!(ended.result()["status"], "completed", "{round:?}: {ended:?}");
        seat.learnt_once(&ended);
        let brain = Brain::default();
        let server = ModelServer::start(move |request| brain.answer(request).usage(100, 50));
        let lenient = env(&server);
        hold(&lenient, round.model).result();
        assert_eq!(keys(&strict), keys(&lenient), "{round:?}");
    }
}
