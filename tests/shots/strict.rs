//! The promise to users of today's models: models that work with tools in turn come to their end on providers that refuse what
//! the flow would like to have, and each gets back what it thought, and nobody else does.

use super::basics::{CHECK, divided, good};
use crate::support::env::Env;
use crate::support::git::init;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;
use crate::support::strict::{Round, TOOLS, env, keys, thoughts_in_requests};

fn fill(env: Env) -> Env {
    let env = env
        .file("work.txt", "one\ntodo\nthree\n")
        .file("check.sh", "grep -q '^done$' work.txt && echo fine\n")
        .file("big/README", "read me\n");
    init(&env.workspace());
    env
}

fn shoot(env: &Env, round: Round) -> Ended {
    let goal =
        ["shots-on-goal", "--model-b", round.model, "--validate", CHECK, "--run", "grep", "say done in work.txt"];
    // The first model is another one of the same provider, of the same family.
    let first = format!("{}-a", round.model);
    env.run_on(round.model, goal).args(["--model-a", &first]).go()
}

/// A script that knows the models as `a` and `b`.
fn named(round: Round, script: fn(&Request) -> Response) -> impl Fn(&Request) -> Response {
    move |request| {
        let mut request = request.clone();
        request.body["model"] = if request.body["model"] == round.bare() { "b" } else { "a" }.into();
        script(&request)
    }
}

#[test]
fn a_shot_ends_on_strict_providers_and_each_model_gets_back_what_it_thought() {
    for round in TOOLS {
        let seat = round.serve(named(round, good));
        let env = fill(seat.env());
        let ended = shoot(&env, round);
        assert_eq!(ended.result()["status"], "success", "{round:?}: {ended:?}");
        assert!(!thoughts_in_requests(&env), "they stand with the replies, once");
        assert_eq!(seat.refusals() == 0, round.known, "{round:?}");
    }
}

#[test]
fn what_the_host_makes_of_calls_for_a_strict_provider_changes_none_of_their_keys() {
    // A known one with schemas beside tools, and one that has to say each thing.
    for round in [TOOLS[2], TOOLS[6]] {
        let seat = round.serve(named(round, divided));
        let strict = fill(seat.env());
        assert_eq!(shoot(&strict, round).result()["status"], "success", "{round:?}");
        let server = ModelServer::start(named(round, divided));
        let lenient = fill(env(&server));
        shoot(&lenient, round).result();
        assert_eq!(keys(&strict), keys(&lenient), "{round:?}");
    }
}
