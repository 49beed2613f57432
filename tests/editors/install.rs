//! Entries in the configurations of editors and agents: shown first, written when the user says so, taken out whole.

use serde_json::Value;

use crate::support::env::Env;

fn read(env: &Env, path: &str) -> Value {
    let text = std::fs::read_to_string(env.home().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn an_entry_is_shown_before_it_is_written_told_by_the_doctor_and_taken_out() {
    let env = Env::new();
    let shown = env.nietz(["install", "gemini"]).go().exits(2);
    assert!(shown.stdout.contains("\"mcpServers\"") && shown.stderr.contains("--yes"), "{shown:?}");
    assert!(!env.home().join(".gemini/settings.json").exists(), "nobody has said yes");
    for (client, path, members) in [
        ("gemini", ".gemini/settings.json", "/mcpServers/nietz/args/0"),
        ("claude-code", ".claude.json", "/mcpServers/nietz/args/0"),
        ("vscode", ".config/Code/User/mcp.json", "/servers/nietz/args/0"),
        ("cursor", ".cursor/mcp.json", "/mcpServers/nietz/args/0"),
        ("zed", ".config/zed/settings.json", "/context_servers/nietz/args/0"),
        ("jetbrains", ".jetbrains/acp.json", "/agent_servers/nietz/args/0"),
    ] {
        env.nietz(["install", client, "--yes"]).go().exits(0);
        let verb = read(&env, path).pointer(members).cloned().unwrap_or_default();
        assert_eq!(verb, if client == "jetbrains" { "acp" } else { "mcp" }, "{client}");
        let doctor = env.nietz(["doctor", "--json"]).go().stdout;
        assert!(doctor.contains(&format!("{client}, by your configuration")), "{client}: {doctor}");
        assert!(env.nietz(["install", client, "--yes"]).go().exits(0).stdout.contains("has nietz already"));
        env.nietz(["uninstall", client, "--yes"]).go().exits(0);
        assert!(!env.home().join(path).exists(), "{client}: nothing else stood there");
    }
    env.nietz(["install", "codex", "--yes"]).go().exits(0);
    let toml = std::fs::read_to_string(env.home().join(".codex/config.toml")).expect("it was written");
    assert!(toml.starts_with("[mcp_servers.nietz]\ncommand = \"/"), "{toml}");
    env.nietz(["install", "claude-code", "--project", "--yes"]).go().exits(0);
    assert!(env.read(".mcp.json").contains("\"command\": \"nietz\""));
    for name in ["nietz", "nietz-flows"] {
        let skill = env.read(&format!(".claude/skills/{name}/SKILL.md"));
        assert!(skill.starts_with(&format!("---\nname: {name}\ndescription: ")), "{skill}");
    }
    env.nietz(["uninstall", "claude-code", "--project", "--yes"]).go().exits(0);
    assert!(!env.path(".mcp.json").exists() && !env.path(".claude/skills/nietz-flows/SKILL.md").exists());
}

#[test]
fn a_configuration_that_is_not_plain_json_is_left_alone() {
    let env = Env::new();
    let path = env.home().join(".config/zed/settings.json");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    let before = "{\n  // mine\n  \"theme\": \"One\",\n}\n";
    std::fs::write(&path, before).expect("it can be written");
    let refused = env.nietz(["install", "zed", "--yes"]).go().exits(2);
    assert!(refused.stderr.contains("\"agent_servers\""), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), before);
    let gone = env.home().join("nowhere/nietz");
    std::fs::create_dir_all(env.home().join(".cursor")).expect("it can be made");
    let entry = format!("{{\"mcpServers\": {{\"nietz\": {{\"command\": \"{}\"}}}}}}", gone.display());
    std::fs::write(env.home().join(".cursor/mcp.json"), entry).expect("it can be written");
    let doctor = env.nietz(["doctor"]).go().stdout;
    assert!(doctor.contains("which is not there (nietz install cursor)"), "{doctor}");
}
