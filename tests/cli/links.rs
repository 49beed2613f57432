//! The promise: a link that came with a folder leads nobody to what is git's, nietz's own or a secret: neither reading
//! nor writing, and neither in the name of a flow nor of the program.

use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::env::Env;

fn flow(name: &str, manifest: &str, line: &str) -> String {
    format!(
        "local nietz = require('@nietz')\n\
         return nietz.flow {{ name = '{name}', summary = 'x', {manifest},\n\
         run = function(ctx) {line} end }}\n"
    )
}

fn texts(result: &Value) -> String {
    result.as_array().expect("a list").iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_file_that_is_read_is_judged_by_where_its_links_lead() {
    let line = "local files = require('@nietz/files') local out = {}\n\
                for _, path in { 'plain.txt', 'notes.txt', 'docs/readme.md', 'g/config', 'c.txt', 'r/r0/journal.jsonl', 'certs/readme', 'home/own.yaml', '.env' } do\n\
                local fine, read = pcall(files.read, path)\n\
                table.insert(out, path .. ' ' .. (if fine then (if read then read.text else 'none') else read.code)) end return out";
    let source =
        flow("x", "permissions = { files = true }, params = { file = { type = 'string', default = '.env' } }", line);
    let env = Env::new().flow("x", &source);
    for path in ["a.txt", ".env", ".git/config", ".nietz/runs/r0/journal.jsonl", "certs/server.key", "home/own.yaml"] {
        env.write(path, "planted");
    }
    for (link, to) in [
        ("plain.txt", "a.txt"),
        ("notes.txt", ".env"),
        ("docs/readme.md", "../.env"),
        ("g", ".git"),
        ("c.txt", ".git/config"),
        ("r", ".nietz/runs"),
        ("certs/readme", "server.key"),
    ] {
        let link = env.path(link);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        symlink(to, link).expect("a link");
    }
    let own = env.path("home").display().to_string();
    let read = |args: &[&str]| {
        let id = format!("r{}", args.len());
        let run = env.run(["x"]).args(args.iter().copied()).var("NIETZ_HOME", &own).var("NIETZ_RUN", &id);
        texts(&run.go().result())
    };
    assert_snapshot!(read(&["--trust"]), @r"
    plain.txt planted
    notes.txt path-refused
    docs/readme.md path-refused
    g/config path-refused
    c.txt path-refused
    r/r0/journal.jsonl path-refused
    certs/readme path-refused
    home/own.yaml path-refused
    .env path-refused
    ");
    let named = read(&["--trust", "--file", "notes.txt"]);
    assert!(named.contains("notes.txt path-refused"), "a link that was named is not what it leads to: {named}");
    let told = read(&["--trust", "--allow-read", ".env", "--allow-read", "a.txt"]);
    assert!(told.contains("notes.txt planted") && told.contains("g/config path-refused"), "{told}");
}

#[test]
fn a_document_is_written_nowhere_that_a_link_leads_to_what_is_git_s_or_nietz_s() {
    let collections = "collections = {\n\
        a = { path = 'g/config', schema = {}, format = 'yaml' }, b = { path = 'g/hooks/{name}', schema = {}, format = 'yaml' },\n\
        c = { path = 'r/{name}.yaml', schema = {} }, d = { path = 'h/{name}.yaml', schema = {} }, e = { path = 'home/{name}.yaml', schema = {} },\n\
        f = { path = '{folder}/own.yaml', schema = {} }, g = { path = 'plain/{name}.yaml', schema = {} } }";
    let line = "local documents = require('@nietz/documents') local out = {}\n\
        for _, what in { { 'a', {} }, { 'b', { name = 'pre-commit' } }, { 'c', { name = 'x' } }, { 'd', { name = 'own' } }, { 'e', { name = 'own' } }, { 'f', { folder = 'home' } }, { 'g', { name = 'a' } } } do\n\
        local home = documents.collection(what[1])\n\
        for _, how in { 'load', 'save', 'list' } do\n\
        local fine, got = pcall(function()\n\
        if how == 'load' then return home:load(what[2]) elseif how == 'save' then return home:save({ mine = true }, { key = what[2], overwrite = true }) end\n\
        return #home:list() end)\n\
        table.insert(out, what[1] .. ' ' .. how .. ' ' .. (if fine then (if how == 'list' then got else 'done') else got.code)) end end return out";
    let env = Env::new().flow("x", &flow("x", collections, line));
    for path in [".git/config", ".git/hooks/pre-commit", ".nietz/runs/r0/x", "home/own.yaml", "real/a.yaml"] {
        env.write(path, "planted: true\n");
    }
    for (link, to) in [("g", ".git"), ("r", ".nietz/runs"), ("h", "home"), ("plain", "real")] {
        symlink(to, env.path(link)).expect("a link");
    }
    let own = env.path("home").display().to_string();
    let ended = env.run(["x"]).var("NIETZ_HOME", &own).go();
    assert_snapshot!(texts(&ended.result()), @r"
    a load path-refused
    a save path-refused
    a list path-refused
    b load path-refused
    b save path-refused
    b list path-refused
    c load path-refused
    c save path-refused
    c list path-refused
    d load path-refused
    d save path-refused
    d list path-refused
    e load path-refused
    e save path-refused
    e list path-refused
    f load path-refused
    f save path-refused
    f list 0
    g load done
    g save done
    g list 1
    ");
    for path in [".git/config", ".git/hooks/pre-commit", "home/own.yaml"] {
        assert_eq!(env.read(path), "planted: true\n", "{path}");
    }
}

/// A home behind a link, in which nietz has kept nothing yet: what a flow makes there first would be the user's word.
#[test]
fn a_folder_of_nietz_s_own_that_is_not_there_yet_has_no_documents_either() {
    let collections = "collections = { a = { path = 'home/{name}.yaml', schema = {} } }";
    let line = "local home = require('@nietz/documents').collection('a')\n\
        local fine, got = pcall(function() return home:save({ mine = true }, { key = { name = 'trust' } }) end)\n\
        return { if fine then 'done' else got.code }";
    let env = Env::new().flow("x", &flow("x", collections, line));
    let beside = tempfile::tempdir().expect("a folder");
    let linked = beside.path().join("linked");
    symlink(env.workspace(), &linked).expect("a link");
    let own = linked.join("home");
    let ended =
        env.run(["x"]).var("XDG_STATE_HOME", &own.display().to_string()).var("NIETZ_HOME", &own.display().to_string());
    assert_eq!(texts(&ended.go().result()), "path-refused");
    assert!(!env.path("home/trust.yaml").exists());
}

#[test]
fn what_nietz_writes_for_the_user_goes_through_no_link_out_of_the_folder() {
    for (link, verb) in [
        (".nietz", "types"),
        (".nietz/types", "types"),
        (".nietz/types/nietz", "types"),
        (".vscode", "types"),
        ("flows", "new flow mine"),
        ("flows/mine", "new flow mine"),
        ("tests", "new flow mine"),
        ("tests/cassettes/mine", "new flow mine"),
        ("personas", "new persona mine"),
        ("quotes", "new quotes mine"),
        ("mine", "new pack mine"),
        ("tests/cassettes", "test --from-run r1"),
    ] {
        let outside = tempfile::tempdir().expect("a folder");
        let env = Env::new().flow("x", &flow("x", "permissions = {}", "return 1"));
        env.run(["x"]).go().exits(0);
        let place = env.path(link);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        // What was there goes along, so that nothing but the way there is different.
        if place.exists() {
            let there = outside.path().join("there");
            fs::rename(&place, &there).expect("moved");
            symlink(&there, &place).expect("a link");
        } else {
            symlink(outside.path(), &place).expect("a link");
        }
        let before = names(outside.path());
        let ended = env.nietz(verb.split(' ')).go();
        assert_ne!(ended.code, Some(0), "{link}: {verb}: {}", ended.stdout);
        assert_eq!(names(outside.path()), before, "{link}: {verb}");
    }
}

#[test]
fn what_lists_flows_does_not_look_where_a_link_leads_out_of_the_folder() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("of-somebody.lua"), "return 1").expect("a file");
    let env = Env::new();
    symlink(outside.path(), env.path("flows")).expect("a link");
    symlink(outside.path(), env.path("personas")).expect("a link");
    for verb in ["flows", "check", "personas", "run of-somebody", "trust add ."] {
        let ended = env.nietz(verb.split(' ')).go();
        let said = format!("{}{}", ended.stdout, ended.stderr).replace("no flow of-somebody", "");
        assert!(!said.contains("of-somebody.lua"), "{verb}: {said}");
    }
}

#[test]
fn pages_of_the_manual_are_written_through_no_link() {
    let env = Env::new();
    env.write("precious", "mine");
    fs::create_dir(env.path("man")).expect("a folder");
    symlink("../precious", env.path("man/nietz.1")).expect("a link");
    env.nietz(["man", "man"]).go().exits(5);
    assert_eq!(env.read("precious"), "mine");
    fs::remove_file(env.path("man/nietz.1")).expect("removed");
    env.nietz(["man", "man"]).go().exits(0);
    assert!(env.read("man/nietz-run.1").contains("nietz"));
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter();
    walk.flatten().map(|entry| entry.path().display().to_string()).collect()
}
