//! The promise: a team finds its packs in an index of its own, and gets just the content that was entered there.

use crate::support::env::Env;
use crate::support::git::{git, init};

const FLOW: &str =
    r#"return require("@nietz").flow { name = "NAME", summary = "Looks at tea", run = function() return "done" end }"#;

/// The repository of a pack, tagged v1.0.0.
fn author(name: &str, summary: &str) -> Env {
    let env = Env::new().flow(name, &FLOW.replace("NAME", name)).file(
        "pack.yaml",
        format!(
            "name: {name}\nversion: 1.0.0\nsummary: {summary}\nlicence: MIT\nhost_api: 2\ntested: 0.0.9\n\
             permissions:\n  {name}: {{}}\n"
        ),
    );
    env.run([name]).go().exits(0);
    env.nietz(["test", "--from-run", "r1"]).go().exits(0);
    env.write(".gitignore", ".nietz\n");
    init(&env.workspace());
    git(&env.workspace(), ["tag", "v1.0.0"]);
    env
}

fn source(author: &Env) -> String {
    format!("file://{}#v1.0.0", author.workspace().display())
}

#[test]
fn a_pack_is_published_into_an_index_found_there_and_added_by_its_name() {
    let (tea, cups) = (author("tea", "Looks at tea leaves"), author("cups", "Counts cups"));
    let index = Env::new().file("README.md", "Our packs.\n");
    for (pack, tags) in [(&tea, "drinks,leaves"), (&cups, "drinks")] {
        let folder = index.workspace().display().to_string();
        let told =
            pack.nietz(["pack", "publish", &source(pack), "--tags", tags, "--into", &folder]).go().exits(0).stdout;
        assert!(told.contains("wrote ") && told.contains("send it to the index"), "{told}");
    }
    let entry = index.read("tea.yaml");
    for part in ["name: tea\n", "version: \"1.0.0\"\n", "tests: 1\n", "- leaves\n", "sha256: ", "commit: "] {
        assert!(entry.contains(part), "{part}: {entry}");
    }
    assert!(entry.contains(&format!("tested: \"{}\"\n", env!("CARGO_PKG_VERSION"))), "{entry}");
    index.write("broken.yaml", "name: broken\n");
    init(&index.workspace());

    let url = format!("file://{}", index.workspace().display());
    let user = Env::new().config(&format!("packs: {{ index: \"{url}\" }}\n"));
    let found = user.nietz(["pack", "search"]).go().exits(0).stdout;
    assert!(found.contains("cups") && found.contains("tea") && found.contains("broken.yaml is left out: "), "{found}");
    let found = user.nietz(["pack", "search", "LEAVES", "tea"]).go().exits(0).stdout;
    assert!(found.contains("Looks at tea leaves") && !found.contains("cups"), "{found}");
    assert!(found.contains("1 test with nietz") && found.contains("nietz pack add tea\n"), "{found}");
    let found = user.nietz(["pack", "search", "cups", "--json"]).go().exits(0).stdout;
    let found: serde_json::Value = serde_json::from_str(found.lines().last().unwrap()).unwrap();
    assert_eq!((&found["name"], &found["asks"]["cups"]), (&"cups".into(), &serde_json::json!([])));
    assert!(
        user.nietz(["pack", "search", "coffee"]).go().exits(0).stdout.ends_with("no pack of the index is like that\n")
    );

    let told = user.nietz(["pack", "add", "tea", "--yes"]).go().exits(0).stdout;
    let version = env!("CARGO_PKG_VERSION");
    let tested =
        format!("its tests pass with nietz {version}, with no permission at all; its author played them with 0.0.9");
    assert!(told.contains(&tested) && told.contains("its tag is not signed"), "{told}");
    user.run(["tea"]).go().exits(0);
    // A checkout without the pack says which flows are missing from its list.
    let clone = Env::new().file("nietz.lock", user.read("nietz.lock"));
    let told = clone.nietz(["flows"]).go().exits(0).stdout;
    assert!(told.contains("the pack tea 1.0.0 is not installed here: nietz pack add --locked tea"), "{told}");
    let wrong = user.nietz(["pack", "add", "cupz", "--yes"]).go().exits(2).stderr;
    assert!(wrong.contains("did you mean `cups`?"), "{wrong}");

    // A tag that has moved since is other content than what was entered.
    cups.write("personas/new.md", "---\nname: New\n---\nYou are new.\n");
    git(&cups.workspace(), ["add", "-A"]);
    git(&cups.workspace(), ["commit", "-q", "-m", "more"]);
    git(&cups.workspace(), ["tag", "-f", "v1.0.0"]);
    let refused = user.nietz(["pack", "add", "cups", "--yes"]).go().exits(5).stderr;
    assert!(refused.contains("error[pack-changed]") && refused.contains("nothing was installed"), "{refused}");
    assert!(!user.read("nietz.lock").contains("cups"));
}

#[test]
fn what_cannot_be_an_index_or_an_entry_is_said() {
    let user = Env::new();
    let told = user.nietz(["pack", "search"]).go().exits(2).stderr;
    assert!(told.contains("packs: { index: URL }"), "{told}");
    let told = user.nietz(["pack", "publish", "."]).go().exits(2).stderr;
    assert!(told.contains("an index names repositories"), "{told}");
    // Only the user's own file says whom they believe.
    user.write("nietz.yaml", "packs: { index: \"file:///tmp/no-such\" }\n");
    let told = user.nietz(["pack", "search"]).go().exits(1).stderr;
    assert!(told.contains("config-invalid") && told.contains("/packs"), "{told}");
}
