//! The promise: who has signed a pack's tag is shown, and on wish nothing is installed without it.

use std::process::Command;

use crate::support::env::Env;
use crate::support::git::{git, init};

const FLOW: &str =
    r#"return require("@nietz").flow { name = "tea", summary = "s", run = function() return "done" end }"#;
const ABOUT: &str = "name: tea\nversion: 1.0.0\nsummary: s\nlicence: MIT\nhost_api: 2\npermissions:\n  tea: {}\n";

/// A key of ssh in a home, without a passphrase. Returns the line of its public part.
fn key(env: &Env, name: &str) -> String {
    let path = env.home().join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&path).status();
    assert!(made.expect("ssh-keygen is there: openssh-client has it").success());
    std::fs::read_to_string(path.with_extension("pub")).expect("it has a public part")
}

/// A pack with a tag of each kind: `v1.0.0` is signed by `ada`, `v1.1.0` by `eve`, `v1.2.0` by nobody, `v1.3.0` is light.
fn author() -> (Env, String) {
    let env = Env::new().flow("tea", FLOW).file("pack.yaml", ABOUT);
    let ada = key(&env, "ada");
    key(&env, "eve");
    init(&env.workspace());
    for (tag, who) in [("v1.0.0", "ada"), ("v1.1.0", "eve")] {
        let key = format!("user.signingKey={}", env.home().join(who).display());
        git(&env.workspace(), ["-c", "gpg.format=ssh", "-c", &key, "tag", "-s", "-m", tag, tag]);
    }
    git(&env.workspace(), ["tag", "-a", "-m", "v1.2.0", "v1.2.0"]);
    git(&env.workspace(), ["tag", "v1.3.0"]);
    (env, ada)
}

fn add(user: &Env, author: &Env, tag: &str, more: &[&str], code: i32) -> String {
    let source = format!("file://{}#{tag}", author.workspace().display());
    let words = ["pack", "add", source.as_str(), "--yes"];
    let ended = user.nietz(words.into_iter().chain(more.iter().copied())).go().exits(code);
    if code == 0 {
        user.nietz(["pack", "remove", "tea"]).go().exits(0);
    }
    ended.stdout + &ended.stderr
}

#[test]
fn who_has_signed_a_tag_is_told_and_required_on_wish() {
    let (author, ada) = author();
    let user = Env::new();
    assert!(
        add(&user, &author, "v1.0.0", &[], 0).contains("its tag is signed; `packs.signers` in config.yaml says whose")
    );
    assert!(add(&user, &author, "v1.2.0", &[], 0).contains("its tag is not signed"));
    assert!(add(&user, &author, "v1.3.0", &[], 0).contains("its tag is not signed"));
    let refused = add(&user, &author, "v1.0.0", &["--signed"], 5);
    assert!(refused.contains("a signature is required") && refused.contains("packs: { signers:"), "{refused}");

    std::fs::write(user.home().join("signers"), format!("ada@example.org {ada}")).expect("the home can be written");
    let user = user.config("packs: { signers: ~/signers }\n");
    let told = add(&user, &author, "v1.0.0", &["--signed"], 0);
    assert!(told.contains("its tag is signed by ada@example.org (SHA256:"), "{told}");
    let told = add(&user, &author, "v1.1.0", &[], 0);
    assert!(told.contains("its tag is signed by nobody of packs.signers"), "{told}");
    for tag in ["v1.1.0", "v1.2.0", "v1.3.0"] {
        assert!(add(&user, &author, tag, &["--signed"], 5).contains("error[pack-untrusted]"), "{tag}");
    }
    assert!(!user.path("nietz.lock").exists() || !user.read("nietz.lock").contains("tea"));

    // The configuration requires it of all, of updates, too.
    let user = user.config("packs: { signers: ~/signers, signed: true }\n");
    add(&user, &author, "v1.2.0", &[], 5);
    let source = format!("file://{}#v1.0.0", author.workspace().display());
    user.nietz(["pack", "add", &source, "--yes"]).go().exits(0);
    let refused = user.nietz(["pack", "update", "tea", "--to", "v1.1.0", "--yes"]).go().exits(5).stderr;
    assert!(refused.contains("a signature is required"), "{refused}");
    let gone = user.config("packs: { signers: ~/no-such-file }\n");
    let told = gone.nietz(["pack", "update", "tea", "--yes"]).go().exits(1).stderr;
    assert!(told.contains("packs.signers: there is no file"), "{told}");
}
