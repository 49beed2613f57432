//! Functions of Luau's `string` whose stock versions are quadratic. `bridge.luau` checks the types of the arguments.

use mlua::{Lua, Table};

/// `string.split` in linear time: the stock one is quadratic.
pub(super) fn split(lua: &Lua, (text, separator): (mlua::LuaString, mlua::LuaString)) -> mlua::Result<Table> {
    let (bytes, separator) = (text.as_bytes(), separator.as_bytes());
    let out = lua.create_table()?;
    if separator.is_empty() {
        for byte in bytes.iter() {
            out.raw_push(lua.create_string([*byte])?)?;
        }
        return Ok(out);
    }
    let mut from = 0;
    for at in memchr::memmem::find_iter(&bytes, &separator) {
        out.raw_push(lua.create_string(&bytes[from..at])?)?;
        from = at + separator.len();
    }
    out.raw_push(lua.create_string(&bytes[from..])?)?;
    Ok(out)
}

/// `string.find` of a plain text in linear time: the stock one is quadratic.
pub(super) fn find_plain(
    _: &Lua,
    (text, wanted, start): (mlua::LuaString, mlua::LuaString, f64),
) -> mlua::Result<(Option<usize>, Option<usize>)> {
    let (bytes, wanted) = (text.as_bytes(), wanted.as_bytes());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let from =
        if start < 0.0 { (bytes.len() as f64 + start).max(0.0) as usize } else { (start.max(1.0) - 1.0) as usize };
    let Some(rest) = bytes.get(from..) else { return Ok((None, None)) };
    let found = memchr::memmem::find(rest, &wanted);
    Ok((found.map(|at| from + at + 1), found.map(|at| from + at + wanted.len())))
}

/// Returns the length of the longest set (`[…]`) of a pattern, in bytes. A set ends where the stock matcher ends it.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn longest_set(_: &Lua, pattern: mlua::LuaString) -> mlua::Result<usize> {
    let pattern = &*pattern.as_bytes();
    let (mut longest, mut at) = (0, 0);
    while let Some(found) = memchr::memchr2(b'[', b'%', pattern.get(at..).unwrap_or_default()) {
        let from = at + found;
        if pattern[from] == b'%' {
            at = from + 2;
            continue;
        }
        at = from + if pattern.get(from + 1) == Some(&b'^') { 2 } else { 1 };
        // A `]` right behind the beginning is a letter of the set.
        loop {
            let Some(letter) = pattern.get(at) else { return Ok(longest.max(pattern.len() - from - 1)) };
            at += if *letter == b'%' { 2 } else { 1 };
            if pattern.get(at) == Some(&b']') {
                break;
            }
        }
        longest = longest.max(at - from);
        at += 1;
    }
    Ok(longest)
}
