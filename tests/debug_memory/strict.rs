//! The promise to users of today's models: a session that works with tools comes to its end on providers that refuse what the
//! flow would like to have, and that want back what their models thought.

use serde_json::json;

use super::{edits, memory_of};
use crate::support::git::init;
use crate::support::strict::{TOOLS, thoughts_in_requests};

#[test]
fn a_session_with_tools_ends_on_strict_providers() {
    for round in TOOLS {
        let seat = round.serve(edits("work.txt", &[("todo", "done")]));
        let env = seat.env().file("work.txt", "one\ntodo\n").file(
            "check.sh",
            "echo 1..1\nif grep -q done work.txt; then echo 'ok 1 - work'; else echo 'not ok 1 - work'; exit 1; fi\n",
        );
        init(&env.workspace());
        let ended = env.run_on(round.model, ["debug-memory", "--test", "sh check.sh"]).go();
        assert_eq!(ended.result()["status"], "passed", "{round:?}: {ended:?}");
        assert_eq!(memory_of(&env, &ended)["executions"][0]["fix_applied"]["verification"], json!("passed"));
        assert!(!thoughts_in_requests(&env), "they stand with the replies, once");
        seat.learnt_once(&ended);
    }
}
