//! `@nietz/text`: helpers that know Unicode.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mlua::{Lua, MultiValue, Table, Value as LuaValue};
use unicode_width::UnicodeWidthStr;

use crate::cpu::{Overrun, run_within};
use crate::error::{Result, nearest};
use crate::lua::api::args::{Args, invalid};
use crate::lua::api::{ModuleBuilder, vm_error};
use crate::lua::convert;
use crate::lua::vm::Vm;
use crate::model::regexes;
use crate::model::text::{excerpt, fold as fold_text};

/// The most candidates that `text.nearest` compares.
const CANDIDATES: usize = 5000;
/// The longest slug, in letters.
const SLUG: usize = 60;
/// Texts up to this length, in bytes, are searched on the calling thread: no regular expression takes long for them.
const AT_ONCE: usize = 16 << 10;
/// How long a search in a longer text may compute.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn module(vm: &Rc<Vm>) -> mlua::Result<Table> {
    Ok(ModuleBuilder::new(vm)?
        .pure("slug", slug)?
        .pure("trim", trim)?
        .pure("lines", lines)?
        .pure("split", split)?
        .pure("fold", fold)?
        .pure("truncate", truncate)?
        .pure("width", width)?
        .pure("nearest", nearest_word)?
        .pure("sha256", sha256)?
        .pure("search", search)?
        .build())
}

fn string(lua: &Lua, text: impl AsRef<[u8]>) -> Result<LuaValue> {
    lua.create_string(text).map(LuaValue::String).map_err(vm_error)
}

fn list<'a>(lua: &Lua, items: impl Iterator<Item = &'a str>) -> Result<LuaValue> {
    let table = lua.create_sequence_from(items).map_err(vm_error)?;
    table.set_metatable(Some(convert::list_mark(lua).map_err(vm_error)?)).map_err(vm_error)?;
    Ok(LuaValue::Table(table))
}

fn slug(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let text = fold_text(&Args::new(lua, "text.slug", values).text(0)?);
    let mut slug = String::new();
    for c in text.chars() {
        if slug.len() >= SLUG {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    string(lua, slug.trim_end_matches('-'))
}

fn trim(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    string(lua, Args::new(lua, "text.trim", values).text(0)?.trim())
}

fn lines(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    list(lua, Args::new(lua, "text.lines", values).text(0)?.lines())
}

fn split(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "text.split", values);
    let separator = args.text(1)?;
    if separator.is_empty() {
        return Err(invalid("text.split: the separator is empty"));
    }
    list(lua, args.text(0)?.split(separator.as_str()))
}

fn fold(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    string(lua, fold_text(&Args::new(lua, "text.fold", values).text(0)?))
}

fn truncate(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "text.truncate", values);
    let text = args.text(0)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let limit = args.number(1)?.max(1.0) as usize;
    if text.chars().count() <= limit {
        return string(lua, text);
    }
    let short: String = text.chars().take(limit - 1).collect();
    string(lua, format!("{}…", short.trim_end()))
}

fn width(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    #[allow(clippy::cast_precision_loss)]
    Ok(LuaValue::Number(Args::new(lua, "text.width", values).text(0)?.width() as f64))
}

fn sha256(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    use sha2::Digest;
    // A digest takes no room, so that any text that the flow holds has one.
    let digest = match values.front() {
        Some(LuaValue::String(text)) => sha2::Sha256::digest(text.as_bytes()),
        _ => sha2::Sha256::digest(Args::new(lua, "text.sha256", values).text(0)?),
    };
    string(lua, digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn nearest_word(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "text.nearest", values);
    let candidates = args.texts(1, "candidates")?;
    if candidates.len() > CANDIDATES {
        return Err(invalid(format!("text.nearest: more than {CANDIDATES} candidates")));
    }
    match nearest(&args.text(0)?, candidates.iter().map(String::as_str)) {
        Some(found) => string(lua, found),
        None => Ok(LuaValue::Nil),
    }
}

thread_local! {
    /// Compiled regular expressions by their text: compiling one costs a hundred times as much as searching.
    static PATTERNS: RefCell<regexes::RegexCache> = RefCell::default();
}

fn compile_cached(pattern: &str) -> Result<regexes::CompiledRegex> {
    PATTERNS.with_borrow_mut(|known| known.get(pattern)).map_err(|why| {
        invalid(format!("text.search: `{}` is not a valid regular expression: {}", excerpt(pattern), excerpt(&why)))
    })
}

/// Returns the ranges of the first match and of its groups.
fn places(regex: &regex::Regex, text: &str, from: usize) -> Option<Vec<Option<Range<usize>>>> {
    let found = regex.captures_at(text, from)?;
    Some(found.iter().map(|group| group.map(|group| group.range())).collect())
}

fn search(lua: &Lua, values: MultiValue) -> Result<LuaValue> {
    let args = Args::new(lua, "text.search", values);
    let (value, pattern) = (args.text(0)?, args.text(1)?);
    let from = match args.maybe_number(2)? {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some(from) => (from.max(1.0) as usize) - 1,
        None => 0,
    };
    // A loop over all matches may well come to a start behind the end, or within a letter.
    let Some(from) = (from..=value.len()).find(|at| value.is_char_boundary(*at)) else { return Ok(LuaValue::Nil) };
    let compiled = compile_cached(&pattern)?;
    let too_slow = |why: &str| {
        invalid(format!(
            "text.search: `{}` takes too long in a text of {} bytes: {why}",
            excerpt(&pattern),
            value.len()
        ))
        .hint("search in parts of the text, such as its lines, or for less")
    };
    let found = if value.len() - from <= AT_ONCE {
        places(&compiled.regex, &value, from)
    } else if compiled.is_too_large_for(value.len() - from) {
        return Err(too_slow("it counts too far"));
    } else {
        let text: Arc<str> = value.as_str().into();
        let work = move || places(&compiled.regex, &text, from);
        run_within(PATIENCE, work).map_err(|Overrun| too_slow("it was given up"))?
    };
    let Some(groups) = found else { return Ok(LuaValue::Nil) };
    let Some(Some(matched)) = groups.first().cloned() else { return Ok(LuaValue::Nil) };
    let part = |group: &Option<Range<usize>>| group.clone().map_or("", |range| &value[range]);
    let table = lua.create_table().map_err(vm_error)?;
    let groups = list(lua, groups.iter().skip(1).map(part))?;
    #[allow(clippy::cast_precision_loss)]
    let (first, last) = ((matched.start + 1) as f64, matched.end as f64);
    table.raw_set("first", first).map_err(vm_error)?;
    table.raw_set("last", last).map_err(vm_error)?;
    table.raw_set("text", &value[matched]).map_err(vm_error)?;
    table.raw_set("groups", groups).map_err(vm_error)?;
    Ok(LuaValue::Table(table))
}
