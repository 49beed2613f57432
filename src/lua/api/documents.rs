//! `@nietz/documents`: the files that a flow owns. Each file operation is one effect; `documents.luau` migrates
//! documents and remembers which file a save expects to find.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Code, Failure, Result, nearest};
use crate::lua::api::args::{Args, data, invalid};
use crate::lua::api::schema::violations_to_lua;
use crate::lua::api::{ModuleBuilder, context, vm_error};
use crate::lua::manifest::DeclaredCollection;
use crate::lua::request::{Request, outcome_to_nil};
use crate::lua::vm::Vm;
use crate::lua::{convert, error_values};
use crate::model::collection::{Collection, DocumentKey, Format};
use crate::model::document::Expect;
use crate::model::effect::Effect;
use crate::model::effect::documents::DocumentOp;
use crate::model::path_template::PathTemplate;
use crate::model::pointer::{Projection, respelled};
use crate::model::text::excerpt;

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    let native = ModuleBuilder::new(vm)?
        .pure("declared", declared)?
        .pure("older", older)?
        .pure("key", key)?
        .pure("path", path)?
        .pure("check", check)?
        .pure("problem", problem)?
        .pure("only_looks", only_looks)?
        .effect("load", load)?
        .effect("save", save)?
        .effect("list", list)?
        .effect("scan", scan)?
        .effect("folders", folders)?
        .pure("parts", parts)?
        .effect("append", append)?
        .effect("rows", rows)?
        .effect("delete", delete)?
        .effect("query", query)?
        .build();
    Ok(ModuleBuilder::new(vm)?.luau(include_str!("documents.luau"), native)?.build())
}

/// The functions that a manifest declared with its collections, for `documents.luau`.
pub(in crate::lua) struct DeclaredCollections(pub std::collections::BTreeMap<String, DeclaredCollection>);

fn collection(lua: &Lua, name: &str) -> Result<Collection> {
    let context = context(lua)?;
    let known = context.collections.borrow();
    known.get(name).cloned().ok_or_else(|| {
        let failure =
            Failure::new(Code::PermissionRefused, format!("this flow's manifest declares no collection `{name}`"));
        match nearest(name, known.keys().map(String::as_str)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("declare it in nietz.flow{…}: collections = { NAME = { path = …, schema = … } }"),
        }
    })
}

/// Returns the migrations (oldest first), the rules and the version of a collection.
fn declared(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let name = Args::new(lua, "documents.collection", values).text(0)?;
    collection(lua, &name)?;
    let functions = lua.app_data_ref::<DeclaredCollections>();
    let table = lua.create_table().map_err(vm_error)?;
    let migrations = lua.create_table().map_err(vm_error)?;
    if let Some(declared) = functions.as_ref().and_then(|functions| functions.0.get(&name)) {
        for (version, migrate) in &declared.migrations {
            migrations.raw_set(version.as_str(), migrate.clone()).map_err(vm_error)?;
        }
        if let Some(version) = &declared.collection.version {
            table.raw_set("order", version.migrates.clone()).map_err(vm_error)?;
        }
        table.raw_set("rules", declared.rules.clone()).map_err(vm_error)?;
        table.raw_set("rows", declared.collection.format == Format::Jsonl).map_err(vm_error)?;
    }
    table.raw_set("migrations", migrations).map_err(vm_error)?;
    Ok(LuaValue::Table(table))
}

/// Returns the version of a document, by the name of its migration, if it is an older one.
fn older(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "documents.collection", values);
    let name = args.text(0)?;
    let functions = lua.app_data_ref::<DeclaredCollections>();
    let version = functions.as_ref().and_then(|functions| functions.0.get(&name)?.collection.version.as_ref());
    let Some(version) = version.filter(|version| !version.migrates.is_empty()) else { return Ok(LuaValue::Nil) };
    match version.older(&args.json(1, "document")?) {
        Some(text) => convert::to_lua(lua, &Value::String(text)).map_err(vm_error),
        None => Ok(LuaValue::Nil),
    }
}

/// Reads a key: a table, or a text if the path has one placeholder.
fn read_key(collection: &Collection, value: &Value) -> Result<DocumentKey> {
    let template = PathTemplate::of(collection)?;
    let placeholders: Vec<&str> = template.placeholders().collect();
    match value {
        Value::Null if placeholders.is_empty() => Ok(DocumentKey::new()),
        Value::String(text) if placeholders.len() == 1 => {
            Ok(DocumentKey::from([(placeholders[0].to_owned(), text.clone())]))
        }
        Value::Object(_) => data(value.clone(), "key"),
        _ => Err(invalid(format!(
            "collection `{}` needs a key with {}",
            collection.name,
            if placeholders.is_empty() { "nothing in it".to_owned() } else { placeholders.join(", ") }
        ))),
    }
}

/// Returns the key of a document, read at the collection's pointers.
fn key(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "documents.save", values);
    let collection = collection(lua, &args.text(0)?)?;
    let document = args.json(1, "document")?;
    let mut key = serde_json::Map::new();
    for name in PathTemplate::of(&collection)?.placeholders() {
        let pointer = collection.keys.get(name).cloned().unwrap_or_else(|| format!("/{name}"));
        match document.pointer(&pointer) {
            Some(Value::String(text)) => key.insert(name.to_owned(), Value::from(text.as_str())),
            Some(Value::Number(number)) => key.insert(name.to_owned(), Value::from(number.to_string())),
            _ => {
                return Err(invalid(format!(
                    "collection `{}`: the document has no text at `{pointer}` for `{{{name}}}` in its path",
                    collection.name
                ))
                .hint("say where it stands with `keys`, or give it with save(doc, { key = … })"));
            }
        };
    }
    convert::to_lua(lua, &Value::Object(key)).map_err(vm_error)
}

fn path(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "documents.path", values);
    let collection = collection(lua, &args.text(0)?)?;
    let key = read_key(&collection, &args.json(1, "key")?)?;
    let path = PathTemplate::of(&collection)?.fill(&key)?;
    lua.create_string(path).map(LuaValue::String).map_err(vm_error)
}

fn check(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "documents.check", values);
    let collection = collection(lua, &args.text(0)?)?;
    let mut document = args.json(1, "document")?;
    crate::schema::shape::shape(&mut document, &collection.schema);
    let formats = match collection.schema.get(crate::schema::FORMATS).and_then(Value::as_str) {
        Some("never") => crate::schema::Formats::Annotations,
        _ => crate::schema::Formats::Asserted,
    };
    let violations = crate::schema::Schema::compile_with(&collection.schema, formats)?.violations(&document);
    violations_to_lua(lua, &violations)
}

/// Returns what a migration or a rule raised as an error value that names the document.
fn problem(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let mut failure = error_values::from_lua(lua, values.front().unwrap_or(&LuaValue::Nil), "");
    let path = Args::new(lua, "documents", values).text(1)?;
    failure.message = format!("{path}: {}", failure.message);
    error_values::to_lua(lua, &failure).map(LuaValue::Table).map_err(vm_error)
}

/// Whether the command that runs is one that only looks.
pub(in crate::lua) struct OnlyLooks(pub bool);

fn only_looks(lua: &Lua, _: MultiValue) -> Result<LuaValue> {
    Ok(LuaValue::Boolean(lua.app_data_ref::<OnlyLooks>().is_some_and(|command| command.0)))
}

/// Reads the first two arguments of an operation: the collection and the key.
fn target(lua: &Lua, args: &Args<'_>) -> Result<(String, DocumentKey)> {
    let name = args.text(0)?;
    let key = read_key(&collection(lua, &name)?, &args.json(1, "key")?)?;
    Ok((name, key))
}

fn load(lua: &Lua, values: MultiValue) -> Result<Request> {
    let (collection, key) = target(lua, &Args::new(lua, "documents.load", values))?;
    Ok(Request::Effect(Box::new(Effect::Documents(DocumentOp::Load { collection, key })), present))
}

/// Converts an outcome; null, for a document that does not exist, becomes nil.
fn present(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    if value.is_null() { Ok(LuaValue::Nil) } else { convert::to_lua(lua, value) }
}

/// What `documents.luau` expects to find at a path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaveOptions {
    digest: Option<String>,
    #[serde(default)]
    overwrite: bool,
    migrated: Option<String>,
}

impl SaveOptions {
    fn expect(&self) -> Expect {
        match &self.digest {
            _ if self.overwrite => Expect::Anything,
            Some(digest) => Expect::Digest(digest.clone()),
            None => Expect::Absent,
        }
    }
}

fn save(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "documents.save", values);
    let (collection, key) = target(lua, &args)?;
    let options: SaveOptions = args.data(3, "options")?;
    let value = args.json(2, "document")?;
    let effect = Effect::Documents(DocumentOp::Save {
        collection,
        key,
        value,
        expect: options.expect(),
        migrated: options.migrated,
    });
    Ok(Request::Effect(Box::new(effect), convert::to_lua))
}

fn list(lua: &Lua, values: MultiValue) -> Result<Request> {
    let name = Args::new(lua, "documents.list", values).text(0)?;
    collection(lua, &name)?;
    Ok(Request::Effect(Box::new(Effect::Documents(DocumentOp::List { collection: name })), convert::to_lua))
}

type Fields = std::collections::BTreeMap<String, String>;

fn fields(args: &Args<'_>, index: usize) -> Result<Option<Fields>> {
    match args.json(index, "fields")? {
        Value::Null => Ok(None),
        _ => {
            let fields: Fields = args.data(index, "fields")?;
            match fields.values().find_map(|place| Some((place, respelled(place).filter(|_| !place.is_empty())?))) {
                None => Ok(Some(fields)),
                Some((place, right)) => {
                    Err(invalid(format!("documents.each: fields: `{}` must be a JSON pointer", excerpt(place)))
                        .hint(format!("write `{}`", excerpt(&right))))
                }
            }
        }
    }
}

fn scan(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "documents.each", values);
    let name = args.text(0)?;
    collection(lua, &name)?;
    let effect = Effect::Documents(DocumentOp::Scan {
        collection: name,
        fields: fields(&args, 1)?,
        after: args.maybe_text(2)?,
        folder: args.maybe_text(3)?,
    });
    Ok(Request::Effect(Box::new(effect), convert::to_lua))
}

fn folders(lua: &Lua, values: MultiValue) -> Result<Request> {
    let name = Args::new(lua, "documents.each", values).text(0)?;
    collection(lua, &name)?;
    Ok(Request::Effect(Box::new(Effect::Documents(DocumentOp::Folders { collection: name })), convert::to_lua))
}

/// Returns the fields that `each` asks for, of a document that was migrated in memory.
fn parts(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "documents.each", values);
    let projected = Projection::new(&fields(&args, 1)?.unwrap_or_default()).of(&args.json(0, "document")?);
    convert::to_lua(lua, &projected).map_err(vm_error)
}

fn append(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "documents.append", values);
    let (collection, key) = target(lua, &args)?;
    let row = args.json(2, "row")?;
    Ok(Request::Effect(Box::new(Effect::Documents(DocumentOp::Append { collection, key, row })), convert::to_lua))
}

fn rows(lua: &Lua, values: MultiValue) -> Result<Request> {
    let (collection, key) = target(lua, &Args::new(lua, "documents.rows", values))?;
    Ok(Request::Effect(Box::new(Effect::Documents(DocumentOp::Rows { collection, key })), convert::to_lua))
}

fn delete(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "documents.delete", values);
    let (collection, key) = target(lua, &args)?;
    let options: SaveOptions = args.data(2, "options")?;
    Ok(Request::Effect(
        Box::new(Effect::Documents(DocumentOp::Delete { collection, key, expect: options.expect() })),
        outcome_to_nil,
    ))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct QueryOptions {
    key: DocumentKey,
    bind: Value,
    tables: Option<Vec<String>>,
}

fn query(lua: &Lua, values: MultiValue) -> Result<Request> {
    let args = Args::new(lua, "documents.query", values);
    let sql = args.text(0)?;
    let options: Option<QueryOptions> = match args.json(1, "options")? {
        Value::Null => None,
        _ => Some(args.data(1, "options")?),
    };
    let QueryOptions { key, bind, tables } = options.unwrap_or_default();
    let bind = match bind {
        Value::Array(values) => values,
        Value::Null => Vec::new(),
        Value::Object(members) if members.is_empty() => Vec::new(),
        _ => return Err(invalid("documents.query: bind must be a list of values")),
    };
    let collections = match tables {
        Some(names) => names,
        None => askable(lua, &key)?,
    };
    for name in &collections {
        let queried = collection(lua, name)?;
        if queried.format != Format::Jsonl && queried.index.is_empty() {
            return Err(invalid(format!("documents.query: the collection `{name}` holds documents, not rows"))
                .hint("declare what can be asked of them: `index = { … }`"));
        }
        if queried.format != Format::Jsonl {
            continue;
        }
        PathTemplate::of(&queried)?
            .fill(&key.clone().into_iter().filter(|(name, _)| has_placeholder(&queried, name)).collect())?;
    }
    let migrated = match args.json(2, "migrated")? {
        Value::Null => Vec::new(),
        migrated => data(migrated, "documents.query")?,
    };
    let effect = Effect::Documents(DocumentOp::Query { sql, bind, collections, key, migrated });
    Ok(Request::Effect(Box::new(effect), convert::to_lua))
}

/// Returns the collections of rows whose path the key fills.
fn askable(lua: &Lua, key: &DocumentKey) -> Result<Vec<String>> {
    let context = context(lua)?;
    let mut names = Vec::new();
    for (name, collection) in context.collections.borrow().iter() {
        let is_filled = PathTemplate::of(collection)?.placeholders().all(|name| key.contains_key(name));
        if collection.format == Format::Jsonl && is_filled {
            names.push(name.clone());
        }
    }
    Ok(names)
}

fn has_placeholder(collection: &Collection, name: &str) -> bool {
    PathTemplate::of(collection).is_ok_and(|template| template.placeholders().any(|placeholder| placeholder == name))
}
