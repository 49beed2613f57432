//! The promise to users of today's models: a brainstorm comes to its end on providers that refuse what the flow would like
//! to have.

use super::model::Brain;
use super::table::{FULL, MORE, TOPIC};
use crate::support::model_server::Response;
use crate::support::strict::WIRES;

#[test]
fn a_brainstorm_ends_on_strict_providers() {
    for round in WIRES {
        let brain = Brain::default();
        let seat = round.serve(move |request| Response::text(brain.reply(request).to_string()));
        let lines: String = ["", FULL, "party", "", "", "party exit", MORE, "panel", "", "panel exit", "finish"]
            .map(|line| format!("{line}\n"))
            .concat();
        let ended = seat.env().run_on(round.model, ["brainstorm", TOPIC, "--no-clarify"]).stdin(lines).go();
        assert_eq!(ended.result()["status"], "completed", "{round:?}: {ended:?}");
        seat.learnt_once(&ended);
    }
}
