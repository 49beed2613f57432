//! The promise: a resumed run goes on with the answers of a file where it left off, not from the first.

use crate::support::env::Env;

const FLOW: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "asks",
	summary = "Asks the same thing again and again",
	run = function()
		local said = {}
		for _ = 1, 4 do
			table.insert(said, ui.ask { id = "next", prompt = "And then?" })
		end
		return table.concat(said, ",")
	end,
}
"#;

#[test]
fn a_list_of_answers_does_not_start_over_when_the_run_is_resumed() {
    let env = Env::new().flow("asks", FLOW).file("answers.yaml", "next: [one, two, three, four]\n");
    for line in 1..=10 {
        let env = Env::new().flow("asks", FLOW).file("answers.yaml", "next: [one, two, three, four]\n");
        let with_answers = ["--answers", "answers.yaml"];
        let killed = env.run(["asks"]).args(with_answers).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}");
        let ended = env.resume().args(with_answers).go();
        assert_eq!(ended.result(), "one,two,three,four", "killed after line {line}");
        assert_eq!(ended.of_type("notice").len(), usize::from(line == 10), "no answer is left over: {ended:?}");
    }
    // The first two by a pipe, the others by the file: what the pipe said counts as said.
    let waiting = env.run(["asks"]).stdin("1\n2\n").go().exits(7);
    assert_eq!(waiting.asked().len(), 3);
    let ended = env.resume().args(["--answers", "answers.yaml"]).go();
    assert_eq!(ended.result(), "1,2,three,four");
}
