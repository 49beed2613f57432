//! The collections of a manifest: where documents are, what is valid, and what can be asked of them.

use std::collections::BTreeMap;

use mlua::{Function, Table, Value as LuaValue};
use serde::Deserialize;
use serde_json::Value;

use super::{DeclaredCollection, ManifestReader, ManifestRemark, check_fields, invalid, maybe_table, text};
use crate::error::Result;
use crate::model::collection::{Collection, Expectation, Format, IndexPath, IndexTable, OwnVersion, Version};
use crate::model::pointer::respelled;
use crate::model::text::excerpt;

/// The fields of a collection's `version`, without the migrations.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionData {
    field: String,
    current: Value,
    #[serde(default)]
    read_newer: bool,
    #[serde(default)]
    formerly: Vec<String>,
    own: Option<OwnVersionData>,
}

/// The version of the part that a flow adds to documents of somebody else's format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnVersionData {
    field: String,
    current: Value,
    #[serde(default)]
    formerly: Vec<String>,
}

pub(super) fn read_collection(reader: &ManifestReader<'_>, name: &str, table: &Table) -> Result<DeclaredCollection> {
    let what = format!("collection `{name}`");
    reader.keep(check_fields(
        table,
        &what,
        &[
            "path",
            "format",
            "schema",
            "formats",
            "keys",
            "version",
            "rules",
            "index",
            "expects",
            "everywhere",
            "shared",
        ],
    ));
    let path = reader.keep(text(table, &what, "path")).unwrap_or_default();
    let format = match table.raw_get::<Option<String>>("format").ok().flatten().as_deref() {
        Some(format) => Format::parse(format)
            .ok_or_else(|| invalid(format!("{what}: format must be yaml, json, jsonl or text, found `{format}`")))?,
        // A path that is missing was told.
        None if path.is_empty() => Format::Yaml,
        None => Format::of_path(&path).ok_or_else(|| {
            invalid(format!("{what}: the path's ending says no format")).hint("add `format = \"yaml\"` or the like")
        })?,
    };
    let (schema, schema_path) = match table.raw_get::<LuaValue>("schema") {
        Ok(LuaValue::String(_)) => (Value::Null, Some(text(table, &what, "schema")?)),
        Ok(LuaValue::Table(schema)) => (reader.json(&LuaValue::Table(schema), "schema")?, None),
        _ => return Err(invalid(format!("{what}: schema must be a table or the path of one"))),
    };
    let keys: BTreeMap<String, String> = reader.part(table, &what, "keys")?.unwrap_or_default();
    for place in keys.values() {
        reader.keep(check_pointer(&format!("{what}: keys"), place));
    }
    let mut migrations = BTreeMap::new();
    let mut remarks = Vec::new();
    let version = match maybe_table(table, &what, "version")? {
        Some(declared) => {
            let known = ["field", "current", "migrations", "read_newer", "formerly", "own"];
            check_fields(&declared, &format!("{what}: version"), &known)?;
            let mut data = convert_without(reader, &declared, "migrations", &mut migrations)?;
            remarks.extend(odd_keys(&declared));
            let data: VersionData =
                serde_json::from_value(data.take()).map_err(|error| invalid(format!("{what}: version: {error}")))?;
            reader.keep(check_pointer(&format!("{what}: version.field"), &data.field));
            let own = data.own.iter().flat_map(|own| [&own.field].into_iter().chain(&own.formerly));
            for place in data.formerly.iter().chain(own) {
                reader.keep(check_pointer(&format!("{what}: version"), place));
            }
            let mut migrates: Vec<String> = migrations.keys().cloned().collect();
            migrates.sort_by_key(|version| version_parts(version));
            let own = data.own.map(|own| OwnVersion { field: own.field, current: own.current, formerly: own.formerly });
            Some(Version {
                field: data.field,
                current: data.current,
                migrates,
                read_newer: data.read_newer,
                formerly: data.formerly,
                own,
            })
        }
        None => None,
    };
    let rules = match table.raw_get::<LuaValue>("rules") {
        Ok(LuaValue::Function(rules)) => Some(rules),
        Ok(LuaValue::Nil) => None,
        _ => return Err(invalid(format!("{what}: rules must be a function"))),
    };
    let expects = read_expects(&what, reader.part(table, &what, "expects")?.unwrap_or_default())?;
    let (index, respelled) = read_index(&what, format, reader.part(table, &what, "index")?.unwrap_or_default())?;
    remarks.extend(respelled);
    let formats = match table.raw_get::<LuaValue>("formats") {
        Ok(LuaValue::Nil) => None,
        Ok(LuaValue::String(word)) if ["on-save", "never"].contains(&&*word.to_string_lossy()) => {
            Some(word.to_string_lossy())
        }
        _ => return Err(invalid(format!("{what}: formats must be on-save or never"))),
    };
    let everywhere = read_everywhere(&what, table, format, &path)?;
    let shared = match table.raw_get::<LuaValue>("shared") {
        Ok(LuaValue::Nil) => false,
        Ok(LuaValue::Boolean(shared)) => shared,
        _ => return Err(invalid(format!("{what}: shared must be true or false"))),
    };
    let collection =
        Collection { name: name.to_owned(), path, format, schema, version, keys, index, expects, everywhere, shared };
    Ok(DeclaredCollection { collection, schema_path, formats, migrations, rules, remarks })
}

/// Tells whether a collection is read in the user's other folders, too. What is read there is of a known kind, in a place of its own:
/// data that a schema describes, below a folder with a fixed name.
fn read_everywhere(what: &str, table: &Table, format: Format, path: &str) -> Result<bool> {
    match table.raw_get::<LuaValue>("everywhere") {
        Ok(LuaValue::Nil | LuaValue::Boolean(false)) => return Ok(false),
        Ok(LuaValue::Boolean(true)) => {}
        _ => return Err(invalid(format!("{what}: everywhere must be true or false"))),
    }
    let is_fixed = path.split_once('/').is_some_and(|(top, _)| !top.contains('{'));
    match format {
        Format::Yaml | Format::Json if is_fixed => Ok(true),
        _ => Err(invalid(format!(
            "{what}: only documents in YAML or JSON, below a folder with a fixed name, are read everywhere"
        ))),
    }
}

/// Refuses a place in a document that is no JSON pointer.
fn check_pointer(what: &str, place: &str) -> Result<()> {
    let Some(right) = respelled(place) else { return Ok(()) };
    let message = format!("{what}: `{}` must be a JSON pointer", excerpt(place));
    Err(invalid(message).hint(format!("write `{}`", excerpt(&right))))
}

/// An item of a collection's `expects`: one of the first four fields, and `within` for `numbered` and `rising`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectData {
    numbered: Option<String>,
    rising: Option<String>,
    ordered: Option<(String, String)>,
    follows: Option<String>,
    #[serde(default)]
    within: Vec<String>,
}

fn read_expects(what: &str, data: Vec<ExpectData>) -> Result<Vec<Expectation>> {
    let mut expects = Vec::new();
    for ExpectData { numbered, rising, ordered, follows, within } in data {
        let places = [&numbered, &rising, &follows].into_iter().flatten();
        let pair = ordered.iter().flat_map(|(first, second)| [first, second]);
        places.chain(pair).chain(&within).try_for_each(|place| check_pointer(&format!("{what}: expects"), place))?;
        expects.push(match (numbered, rising, ordered, follows) {
            (Some(at), None, None, None) => Expectation::Numbered { at, within },
            (None, Some(at), None, None) => Expectation::Rising { at, within },
            (None, None, Some((first, second)), None) if within.is_empty() => Expectation::Ordered { first, second },
            (None, None, None, Some(at)) if within.is_empty() => Expectation::Follows { at },
            _ => {
                let message = format!("{what}: expects: each is one of numbered, rising, ordered and follows");
                return Err(invalid(message).hint("`within` goes with numbered and rising"));
            }
        });
    }
    Ok(expects)
}

/// A table of a collection's `index`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexData {
    #[serde(default)]
    each: String,
    columns: BTreeMap<String, String>,
}

fn read_index(
    what: &str,
    format: Format,
    data: BTreeMap<String, IndexData>,
) -> Result<(Vec<IndexTable>, Vec<ManifestRemark>)> {
    if !data.is_empty() && !matches!(format, Format::Yaml | Format::Json) {
        return Err(invalid(format!(
            "{what}: only documents in YAML or JSON have an index; rows can be asked as they are"
        )));
    }
    let is_word = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (mut tables, mut remarks) = (Vec::new(), Vec::new());
    for (name, table) in data {
        let each = Some(&table.each).filter(|each| !each.is_empty());
        for old in each.into_iter().chain(table.columns.values()) {
            let Some(right) = respelled(old) else { continue };
            let message = format!(
                "`{}` is the old spelling of a place: write a JSON pointer, `{}`, with `*` for every item of a list on its way",
                excerpt(old),
                excerpt(&right)
            );
            remarks.push(ManifestRemark { found: old.clone(), message });
        }
        for word in table.columns.keys().chain([&name]) {
            if !is_word(word) || word == "document" {
                let word = excerpt(word);
                return Err(invalid(format!(
                    "{what}: index: `{word}` must be a name of letters, digits and _, and not `document`"
                )));
            }
        }
        let columns = table.columns.iter().map(|(column, path)| (column.clone(), IndexPath::parse(path))).collect();
        tables.push(IndexTable { each: IndexPath::parse(&table.each), name, columns });
    }
    Ok((tables, remarks))
}

/// Returns a remark for each migration whose key is a number: `[1.0]` is the version `1`, and not `1.0`.
fn odd_keys(version: &Table) -> Vec<ManifestRemark> {
    let Ok(Some(migrations)) = version.raw_get::<Option<Table>>("migrations") else { return Vec::new() };
    let keys = migrations.pairs::<LuaValue, LuaValue>().filter_map(std::result::Result::ok).map(|(key, _)| key);
    let numbers = keys.filter_map(|key| match key {
        LuaValue::Integer(number) => Some(number.to_string()),
        LuaValue::Number(number) => Some(number.to_string()),
        _ => None,
    });
    numbers
        .map(|number| ManifestRemark {
            found: format!("[{number}]"),
            message: format!("a migration's key is a text: write `[\"{number}\"]`"),
        })
        .collect()
}

/// Returns a version's numbers, for sorting: `1.10` comes after `1.9`, and `1+` after `1.0`.
fn version_parts(version: &str) -> Vec<u64> {
    version.split(['.', '+']).map(|part| part.parse().unwrap_or(0)).collect()
}

/// Returns a table as JSON without one member, whose functions go to `functions`.
fn convert_without(
    reader: &ManifestReader<'_>,
    table: &Table,
    without: &str,
    functions: &mut BTreeMap<String, Function>,
) -> Result<Value> {
    let mut members = serde_json::Map::new();
    for pair in table.pairs::<String, LuaValue>() {
        let (name, value) = pair.map_err(|_| invalid("version must be a table of named fields".to_owned()))?;
        if name != without {
            let value = reader.json(&value, &name)?;
            members.insert(name, value);
        } else if let LuaValue::Table(declared) = value {
            for pair in declared.pairs::<String, Function>() {
                let (version, function) =
                    pair.map_err(|_| invalid("migrations must be `[\"1.0\"] = function(doc) … end`".to_owned()))?;
                functions.insert(version, function);
            }
        }
    }
    Ok(Value::Object(members))
}
