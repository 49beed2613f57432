//! The promise: a key can be given to nietz once. It goes to the keyring or to a file that only its user can read, is used where
//! no variable and no command has one, and is never shown, written or handed on.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Ended;

const STORED: &str = "planted-stored-key-77f0aa";

/// A keyring in a folder, with the arguments of libsecret's program: `secret-tool store|lookup|clear … account NAME`. It
/// notes its arguments and variables, to show that no key is among them.
const SECRET_TOOL: &str = r#"#!/bin/sh
folder=$(dirname "$0")
echo "$*" >> "$folder/said"
env >> "$folder/said"
verb=$1
while [ $# -gt 1 ]; do shift; done
case $verb in
store) cat > "$folder/key-$1" ;;
lookup) cat "$folder/key-$1" ;;
clear) rm "$folder/key-$1" ;;
esac
"#;

/// An environment without a key of OpenAI's in a variable.
fn env(server: &ModelServer) -> Env {
    Env::with(server).without("OPENAI_API_KEY")
}

fn with_keyring(env: Env) -> (Env, PathBuf) {
    let folder = env.home().join("programs");
    std::fs::create_dir_all(&folder).expect("the home can be written");
    let program = folder.join("secret-tool");
    std::fs::write(&program, SECRET_TOOL).expect("it can be written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    (env.var("PATH", &path), folder)
}

fn hello() -> ModelServer {
    ModelServer::start(|request| Response::text(format!("hello, {}", request.header("authorization"))))
}

/// Asks one question, and returns the key that the server was sent.
fn sent(env: &Env, server: &ModelServer, run: &str) -> String {
    env.nietz(["run", "ask", "Who?", "--model", "openai/test"]).var("NIETZ_RUN", run).go().exits(0);
    server.requests().last().expect("it was asked").header("authorization").trim_start_matches("Bearer ").to_owned()
}

#[track_caller]
fn holds_no_key(ended: &Ended) {
    assert!(!format!("{ended:?}").contains(STORED), "{ended:?}");
}

#[test]
fn a_key_goes_into_a_file_of_the_user_s_alone_where_there_is_no_keyring() {
    let server = hello();
    let env = env(&server);
    let stored = env.nietz(["models", "key", "openai"]).stdin(format!("{STORED}\n")).go().exits(0);
    let file = env.home().join("keys.yaml");
    assert_eq!(
        env.normal(&stored.stdout),
        "the key of openai is in /tmp/test/home/keys.yaml, which only you can read\n"
    );
    assert!(stored.stderr.contains("there is no keyring that takes it: secret-tool cannot be run"), "{stored:?}");
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);

    assert_eq!(sent(&env, &server, "r1"), STORED);
    // The server said it back: it stands nowhere.
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    assert!(!journal.contains(STORED) && journal.contains("[redacted:key of openai]"), "{journal}");
    let shown = env.nietz(["models"]).go().exits(0);
    assert!(shown.stdout.contains("stored in keys.yaml"), "{}", shown.stdout);
    assert!(shown.stdout.contains("openai/gpt-6.1-terra: its key is in keys.yaml"), "{}", shown.stdout);
    holds_no_key(&shown);

    let removed = env.nietz(["models", "key", "openai", "--remove"]).go().exits(0);
    assert_eq!(removed.stdout, "the key of openai is not kept any more\n");
    assert!(!std::fs::read_to_string(&file).expect("it is there").contains(STORED));
    let again = env.nietz(["models", "key", "openai", "--remove"]).go().exits(0);
    assert_eq!(again.stdout, "the key of openai was not kept\n");
}

#[test]
fn a_keyring_is_used_where_there_is_one_and_sees_no_key_in_arguments_or_variables() {
    let server = hello();
    let (env, folder) = with_keyring(env(&server));
    let env = env.var("GROQ_API_KEY", "planted-groq-key-1");
    let stored = env.nietz(["models", "key", "openai"]).stdin(STORED).go().exits(0);
    assert_eq!((stored.stdout.as_str(), stored.stderr.as_str()), ("the key of openai is in the keyring\n", ""));
    let file = std::fs::read_to_string(env.home().join("keys.yaml")).expect("it is there");
    assert!(file.contains("keyring: secret-tool") && !file.contains(STORED), "{file}");

    assert_eq!(sent(&env, &server, "r1"), STORED);
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    assert!(!journal.contains(STORED) && journal.contains("[redacted:key of openai]"), "{journal}");
    let shown = env.nietz(["models"]).go().exits(0).stdout;
    assert!(shown.contains("stored in the keyring"), "{shown}");

    // Into the file instead: the keyring has it no more.
    env.nietz(["models", "key", "openai", "--file"]).stdin(STORED).go().exits(0);
    assert!(!folder.join("key-openai").exists());
    assert_eq!(sent(&env, &server, "r2"), STORED);
    env.nietz(["models", "key", "openai"]).stdin(STORED).go().exits(0);
    assert!(folder.join("key-openai").exists());
    env.nietz(["models", "key", "openai", "--remove"]).go().exits(0);
    assert!(!folder.join("key-openai").exists());
    let said = std::fs::read_to_string(folder.join("said")).expect("it was asked");
    assert!(said.contains("store --label nietz: openai service nietz account openai"), "{said}");
    assert!(!said.contains(STORED) && !said.contains("planted-groq-key-1"), "{said}");

    // A keyring that is locked, or has it no more, is named.
    env.nietz(["models", "key", "openai"]).stdin(STORED).go().exits(0);
    std::fs::remove_file(folder.join("key-openai")).expect("it is there");
    let failed = env.nietz(["run", "ask", "Who?", "--model", "openai/test"]).var("NIETZ_RUN", "r3").go().exits(1);
    assert!(failed.stderr.contains("error[key-missing]: the keyring did not give the key of openai"), "{failed:?}");
}

#[test]
fn a_variable_comes_first_then_the_command_of_the_configuration_then_the_stored_key() {
    let server = hello();
    let env = env(&server);
    env.nietz(["models", "key", "openai"]).stdin(STORED).go().exits(0);
    assert_eq!(sent(&env, &server, "r1"), STORED);
    let command = "models: {providers: {openai: {key_command: [echo, planted-command-key]}}}\n";
    let env = env.config(command);
    assert_eq!(sent(&env, &server, "r2"), "planted-command-key");
    let told = env.nietz(["models", "key", "openai"]).stdin(STORED).go().exits(0);
    assert!(told.stderr.contains("models.providers.openai.key_command comes before it"), "{told:?}");
    let env = env.var("OPENAI_API_KEY", "planted-variable-key");
    assert_eq!(sent(&env, &server, "r3"), "planted-variable-key");
    let told = env.nietz(["models", "key", "openai"]).stdin(STORED).go().exits(0);
    assert!(told.stderr.contains("OPENAI_API_KEY comes before it"), "{told:?}");
}

#[test]
fn a_stored_key_comes_before_the_usual_command_and_a_refused_one_says_how_to_store_another() {
    let server = ModelServer::start(|_| Response::error(401, "who are you?"));
    let env = Env::new()
        .var("VERTEX_BASE_URL", "http://models.company.invalid/v1")
        .var("HTTP_PROXY", &server.url())
        .var("NO_PROXY", "");
    env.nietz(["models", "key", "vertex"]).stdin(STORED).go().exits(0);
    let refused = env.nietz(["run", "ask", "Who?", "--model", "vertex/google/m"]).go().exits(1);
    assert!(refused.stderr.contains("vertex refused the key in keys.yaml (401)"), "{refused:?}");
    assert!(refused.stderr.contains("store a valid key (`nietz models key vertex`)"), "{refused:?}");
    holds_no_key(&refused);
}

#[test]
fn what_is_no_key_or_names_no_provider_is_refused_and_nothing_is_stored() {
    let env = Env::new();
    for (typed, why) in [
        ("", "it is empty"),
        ("two words\n", "it has a space in it"),
        ("planted-1\nplanted-2\n", "it has several lines"),
        ("planted\u{1b}[31m\n", "a character that keys do not have"),
        ("short\n", "shorter than 8 characters"),
    ] {
        let refused = env.nietz(["models", "key", "openai"]).stdin(typed).go().exits(2);
        assert!(refused.stderr.contains(why) && !refused.stderr.contains("planted"), "{typed:?}: {refused:?}");
    }
    let argument = env.nietz(["models", "key", "openai", STORED]).go().exits(2);
    assert!(argument.stderr.contains("unexpected argument"), "{argument:?}");
    let unknown = env.nietz(["models", "key", "opnai"]).stdin(STORED).go().exits(1);
    assert!(unknown.stderr.contains("did you mean openai?"), "{unknown:?}");
    assert!(!env.home().join("keys.yaml").exists());
}

#[test]
fn a_key_is_typed_at_a_terminal_without_being_shown_and_ctrl_c_stores_nothing() {
    let env = Env::new().var("TERM", "xterm");
    let mut seat = env.nietz(["models", "key", "openai"]).at_a_terminal();
    seat.sees("key of openai (it is not shown): ");
    seat.types(&format!("wrong\u{15}{STORED}\r"));
    seat.sees("the key of openai is in ");
    assert!(!seat.shown().contains("planted"), "{}", seat.shown());
    assert_eq!(seat.end(), Some(0));
    let file = env.home().join("keys.yaml");
    assert!(std::fs::read_to_string(&file).expect("it is there").contains(STORED));
    std::fs::remove_file(&file).expect("it is ours");

    let mut seat = env.nietz(["models", "key", "openai"]).at_a_terminal();
    seat.sees("(it is not shown): ");
    seat.types("planted\u{3}");
    seat.sees("nothing was stored");
    assert_eq!(seat.end(), Some(130));
    assert!(!file.exists());
}

#[test]
fn a_file_of_keys_that_others_can_read_or_that_is_broken_is_refused_and_nothing_of_it_is_shown() {
    let env = Env::new();
    let file = env.home().join("keys.yaml");
    let put = |text: &str, mode: u32| {
        std::fs::write(&file, text).expect("the home can be written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let good = format!("version: 1\nproviders:\n  openai: {{key: {STORED}}}\n");
    for mode in [0o644, 0o640, 0o622] {
        put(&good, mode);
        let refused = env.nietz(["models"]).go().exits(1);
        assert!(refused.stderr.contains("error[config-invalid]"), "{refused:?}");
        holds_no_key(&refused);
    }
    for (text, line) in [
        (format!("version: 1\nproviders:\n  openai: {{key: {STORED} {STORED}}}\n"), "line 3"),
        (format!("version: 1\nproviders:\n  openai: {STORED}\n"), "line 3"),
        (format!("version: 1\n{STORED}: 1\n"), "line"),
        (format!("version: 1\nproviders: [{STORED}\n"), "line"),
        (STORED.to_owned(), "line 1"),
    ] {
        put(&text, 0o600);
        for arguments in [&["models"][..], &["check", "../home/keys.yaml"]] {
            let refused = env.nietz(arguments.iter().copied()).go().exits(1);
            assert!(
                refused.stderr.contains("is no file of keys: ") && refused.stderr.contains(line),
                "{text}: {refused:?}"
            );
            holds_no_key(&refused);
        }
    }
    put(&good, 0o600);
    env.nietz(["models"]).go().exits(0);
    env.nietz(["check", "../home/keys.yaml"]).go().exits(0);
}

#[test]
fn what_a_key_command_prints_is_redacted_everywhere() {
    let server = hello();
    let env = env(&server).config("models: {providers: {openai: {key_command: [echo, planted-command-key]}}}\n");
    let ended = env.nietz(["run", "ask", "Who?", "--model", "openai/test"]).go().exits(0);
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    for text in [&ended.stdout, &ended.stderr, &journal] {
        assert!(!text.contains("planted-command-key"), "{text}");
    }
    assert!(ended.stdout.contains("[redacted:models.providers.openai.key_command]"), "{ended:?}");
    assert_eq!(server.requests()[0].header("authorization"), "Bearer planted-command-key");
}
