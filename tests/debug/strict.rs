//! The promise to users of today's models: a session comes to its end on providers that refuse what the flow would like to
//! have, and whose models think before they speak.

use super::desk::{PROBLEM, usual};
use crate::support::model_server::Response;
use crate::support::strict::WIRES;

#[test]
fn a_session_ends_on_strict_providers() {
    for round in WIRES {
        let seat = round.serve(|request| Response::text(usual(request)));
        let lines = "src/price.py:2 reads it\nthe log shows an old key\nfound it\n\nlook at the age of the key\n";
        let ended = seat.env().run_on(round.model, ["debug", PROBLEM]).stdin(lines).go();
        let result = ended.result();
        assert_eq!(
            (&result["outcome"], &result["scoredBy"]),
            (&"solved".into(), &"model".into()),
            "{round:?}: {ended:?}"
        );
        seat.learnt_once(&ended);
    }
}
