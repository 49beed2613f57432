//! Scripts in Luau that test a flow's pure rooms: each file here is run in a real machine of its own, as if it stood at
//! the top of the repository. Rooms that are pure stay pure: an effect in a script is an error.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use nietz::lua::api::Context;
use nietz::lua::limits::Limits;
use nietz::lua::{modules, vm::Vm};
use nietz::pack::persona::Personas;
use nietz::pack::tree::{Root, Tree};

/// Runs a script and returns what it raised.
fn raised_by(source: &str) -> Option<String> {
    let tree = Tree::new(Root::Disk(Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()));
    // A debug build on a busy machine is slow; these scripts are ours.
    let vm = Rc::new(Vm::new(Limits { seconds: 30.0, megabytes: 64 }).expect("a machine"));
    let layers = vec![tree.clone()];
    vm.lua.set_app_data(Rc::new(Context {
        tree: tree.clone(),
        personas: Personas::new(layers.clone()),
        layers,
        resolve: Box::new(|name| Ok(name.unwrap_or("test/model").to_owned())),
        collections: RefCell::default(),
    }));
    modules::install(&vm, &tree).expect("the modules");
    vm.close().expect("the sandbox");
    let chunk = match vm.compile("script.luau", source) {
        Ok(chunk) => chunk,
        Err(failure) => return Some(format!("{failure}: {:?}", failure.details)),
    };
    vm.bridge.load.call::<()>(chunk).err().map(|error| error.to_string())
}

#[test]
fn every_script_beside_this_file_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api");
    let mut scripts: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "luau"))
        .collect();
    scripts.sort();
    let failed: Vec<String> = scripts
        .iter()
        .filter_map(|path| {
            let source = std::fs::read_to_string(path).expect("a script is text");
            raised_by(&source).map(|why| format!("{}: {why}", path.display()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(scripts.len() >= 6, "scripts were forgotten: {scripts:?}");
}

#[test]
fn a_script_that_is_wrong_fails() {
    assert!(raised_by("assert(1 == 2)").is_some());
    assert!(raised_by("require('@nietz/ui').say('an effect')").is_some());
}
