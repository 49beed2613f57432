//! The promise: a user adds a file to a folder that a flow reads whole, such as a technique or a language. It is told, trusted and
//! recorded as what overrides a file is, and what is wrong with it is told by file, line and field.

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local yaml = require("@nietz/yaml")
local cards = yaml.load_all("./deck/cards", { schema = "./deck/card.schema.json" })
local texts = yaml.load_all("./deck/lang", { like = "en" })

return nietz.flow {
	name = "deck",
	summary = "Names its cards",
	personas = { dealer = "./deck/dealer.schema.json" },
	run = function(ctx)
		local names = {}
		for _, card in cards do
			table.insert(names, card.name .. " " .. card.value.worth)
		end
		for _, text in texts do
			table.insert(names, text.name .. " " .. table.concat(text.lacks, "+"))
		end
		for _, persona in personas.list { tag = "dealer" } do
			table.insert(names, persona.slug)
		end
		return table.concat(names, ", ")
	end,
}
"#;

const CARD: &str = r#"{ "type": "object", "required": ["worth"], "additionalProperties": false,
  "properties": { "worth": { "type": "integer", "minimum": 1 } } }"#;
const DEALER: &str =
    r#"{ "type": "object", "required": ["speed"], "properties": { "speed": { "enum": ["slow", "fast"] } } }"#;

/// A project with a pack of somebody else that has the flow, and a folder that is trusted with this.
fn user(items: &str) -> Env {
    let server = ModelServer::start(|_| Response::text("ok"));
    let author = Env::with(&server)
        .flow("deck", FLOW)
        .file("flows/deck/card.schema.json", CARD)
        .file("flows/deck/dealer.schema.json", DEALER)
        .file("flows/deck/cards/queen.yaml", "worth: 3\n")
        .file("flows/deck/cards/ace.yaml", "worth: 11\n")
        .file("flows/deck/lang/en.yaml", "hello: Hello\nask: { name: Your name, age: Your age }\n")
        .file(
            "pack.yaml",
            "name: cards\nversion: 1.0.0\nsummary: Cards\nlicence: MIT\nhost_api: 1\npermissions: { deck: {} }\n",
        );
    init(&author.workspace());
    git(&author.workspace(), ["tag", "v1.0.0"]);
    let env = Env::with(&server).trusting(items);
    env.nietz(["pack", "add", &format!("file://{}#v1.0.0", author.workspace().display()), "--yes"]).go().exits(0);
    env
}

#[test]
fn a_file_is_added_to_a_folder_that_a_flow_reads_whole() {
    let env = user("");
    assert_eq!(env.run(["deck"]).go().result(), "ace 11, queen 3, en ");
    let told = env.nietz(["eject", "deck", "cards/queen", "--as", "jack"]).go().exits(0).stdout;
    assert!(told.contains("wrote flows/deck/cards/jack.yaml"), "{told}");
    assert_eq!(env.read("flows/deck/cards/jack.yaml"), "worth: 3\n");
    assert!(!env.path("flows/.ejected.yaml").exists(), "it has no original of its own");
    // It is trusted by its own path, told when a run begins, and pinned with it.
    let ended = env.run(["deck"]).var("NIETZ_RUN", "r2").go().exits(5);
    assert!(ended.stderr.contains("(data=flows/deck/cards/jack.yaml)"), "{}", ended.stderr);
    env.nietz(["trust", "add", ".", "--allow", "data=flows/deck/cards/jack.yaml"]).go().exits(0);
    let ended = env.run(["deck"]).var("NIETZ_RUN", "r3").go().exits(0);
    assert_eq!(ended.result(), "ace 11, jack 3, queen 3, en ");
    assert!(ended.stdout.contains("deck reads this folder's own flows/deck/cards/jack.yaml"), "{}", ended.stdout);
    assert!(env.read(".nietz/runs/r3/journal.jsonl").contains("\"flows/deck/cards/jack.yaml\":\""));
    let told = env.nietz(["run", "deck", "--plan"]).go().exits(0).stdout;
    assert!(told.contains("flows/deck/cards/jack.yaml"), "{told}");
    let told = env.nietz(["flows"]).go().exits(0).stdout;
    assert!(told.contains("flows/deck/cards/jack.yaml (one more of those in its folder)"), "{told}");
    let told = env.nietz(["check", "flows/deck/cards/jack.yaml"]).go().exits(0).stdout;
    assert!(told.contains("is this folder's own") && !told.contains("in place of"), "{told}");
}

#[test]
fn what_is_wrong_with_an_added_file_is_told_by_file_line_and_field() {
    let env = user("'*'").file("flows/deck/cards/jack.yaml", "# mine\nworth: none\n");
    for call in [env.nietz(["check", "flows/deck/cards/jack.yaml"]), env.nietz(["check"])] {
        let ended = call.go().exits(4);
        assert!(ended.stdout.contains("flows/deck/cards/jack.yaml:2:8"), "{ended:?}");
    }
    let ended = env.run(["deck"]).go().exits(4);
    assert!(ended.stderr.contains("jack.yaml:2:8: /worth"), "{}", ended.stderr);
    assert!(!env.journal_path().exists(), "nothing has begun");
    // One file that is wrong is not the fault of another.
    env.write("flows/deck/cards/ten.yaml", "worth: 10\n");
    env.write("flows/deck/cards/jack.yaml", "worth: 10\n");
    env.nietz(["check"]).go().exits(0);
    assert_eq!(env.run(["deck"]).go().result(), "ace 11, jack 10, queen 3, ten 10, en ");
}

#[test]
fn a_language_that_lacks_texts_is_told_and_the_flow_learns_of_it() {
    let env = user("'*'").file("flows/deck/lang/de.yaml", "hello: Hallo\nask:\n  name: Dein Name\n");
    let ended = env.nietz(["check", "flows/deck/lang/de.yaml"]).go().exits(4);
    assert!(ended.stdout.contains("lacks /ask/age, which en.yaml has"), "{ended:?}");
    assert_eq!(env.run(["deck"]).go().result(), "ace 11, queen 3, de /ask/age, en ");
    env.write("flows/deck/lang/de.yaml", "hello: Hallo\nask: { name: Dein Name, age: Dein Alter }\n");
    env.nietz(["check", "flows/deck/lang/de.yaml"]).go().exits(0);
}

#[test]
fn a_persona_has_what_the_flows_need_of_its_tags() {
    let persona = |speed: &str| format!("---\nname: Bo\ntags: [dealer]\n{speed}---\nYou deal.\n");
    let env = user("'*'").file("personas/bo.md", persona(""));
    let ended = env.nietz(["check", "personas/bo.md"]).go().exits(4);
    assert!(ended.stdout.contains("speed"), "{ended:?}");
    env.write("personas/bo.md", persona("speed: quick\n"));
    let ended = env.nietz(["check", "personas/bo.md"]).go().exits(4);
    assert!(ended.stdout.contains("personas/bo.md:4:8"), "{ended:?}");
    let ended = env.run(["deck"]).go().exits(4);
    let told = ended.ending()["failure"]["details"].to_string();
    assert!(told.contains("bo.md:4:8: /speed"), "{told}");
    env.write("personas/bo.md", persona("speed: fast\n"));
    env.nietz(["check", "personas/bo.md"]).go().exits(0);
    assert_eq!(env.run(["deck"]).var("NIETZ_RUN", "r2").go().result(), "ace 11, queen 3, en , bo");
}

#[test]
fn only_folders_that_are_read_whole_take_files() {
    let env = user("");
    let ended = env.nietz(["eject", "deck", "card.schema.json", "--as", "mine"]).go().exits(2);
    assert!(ended.stderr.contains("flows/deck/cards, flows/deck/lang"), "{}", ended.stderr);
    env.nietz(["eject", "deck", "cards/queen", "--as", "ace"]).go().exits(2);
    env.nietz(["eject", "deck", "cards/queen", "--as", "../x"]).go().exits(2);
    env.nietz(["eject", "deck", "--as", "x"]).go().exits(2);
    assert!(!env.path("flows").exists());
}

#[test]
fn the_flows_of_a_project_are_checked_for_their_own_data_too() {
    let env = Env::new()
        .flow("deck", FLOW)
        .file("flows/deck/card.schema.json", CARD)
        .file("flows/deck/dealer.schema.json", DEALER)
        .file("flows/deck/cards/queen.yaml", "worth: 3\n")
        .file("flows/deck/lang/en.yaml", "hello: Hello\n")
        .file("flows/deck/lang/fr.yaml", "adieu: Adieu\n");
    let ended = env.nietz(["check", "flows/deck.lua"]).go().exits(4);
    assert!(ended.stdout.contains("fr.yaml") && ended.stdout.contains("lacks /hello"), "{ended:?}");
    env.write("flows/deck/cards/queen.yaml", "worth: 0\n");
    let ended = env.nietz(["check", "flows/deck.lua"]).go().exits(4);
    assert!(ended.stdout.contains("queen.yaml:1:8"), "{ended:?}");
}
