//! What a server says of its tools, and what a tool gives back, read with care: both may be anything.

use serde_json::{Map, Value, json};

use crate::model::canonical;
use crate::model::digest::Digest;
use crate::model::effect::mcp::{ServedTool, ToolResult};
use crate::model::text::{clean, excerpt};
use crate::schema::Schema;

/// The most tools of a server.
pub(super) const MOST: usize = 500;
/// The longest name of a tool, in bytes.
const NAME: usize = 128;
/// The longest description of a tool, in characters.
const DESCRIPTION: usize = 4_000;
/// The longest title, in characters.
const TITLE: usize = 200;
/// The largest schema of arguments, and the largest result, in bytes of JSON.
const PARAMETERS: usize = 64 << 10;
const RESULT: usize = 2 << 20;

/// Reads a tool, or returns its name and why it cannot be offered.
pub(super) fn read(tool: &Value) -> Result<ServedTool, (String, String)> {
    let text =
        |of: &Value, most: usize| -> String { clean(of.as_str().unwrap_or_default()).chars().take(most).collect() };
    let name = tool["name"].as_str().unwrap_or_default();
    let refused = |why: &str| (excerpt(name), why.to_owned());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    if name.is_empty() || name.len() > NAME || !name.bytes().all(is_plain) {
        return Err(refused("its name has other signs than letters, digits, `_`, `-`, `.` and `/`, or too many"));
    }
    if tool["execution"]["taskSupport"] == "required" {
        return Err(refused("it can be called as a task alone"));
    }
    let parameters = match &tool["inputSchema"] {
        Value::Object(schema) => with_type(schema),
        _ => return Err(refused("it has no schema of its arguments")),
    };
    if parameters["type"] != "object" || parameters.to_string().len() > PARAMETERS {
        return Err(refused("the schema of its arguments is none of an object, or too large"));
    }
    if let Err(why) = Schema::compile(&parameters) {
        return Err((excerpt(name), format!("the schema of its arguments cannot be used: {}", why.message)));
    }
    let hint = |name: &str| tool["annotations"][name].as_bool().unwrap_or_default();
    let mut served = ServedTool {
        name: name.to_owned(),
        title: text(&tool["title"], TITLE),
        description: text(&tool["description"], DESCRIPTION),
        parameters,
        read_only: hint("readOnlyHint"),
        idempotent: hint("idempotentHint"),
        definition: String::new(),
    };
    let mut bytes = Vec::new();
    canonical::write(&json!([served, tool["outputSchema"]]), &mut bytes);
    served.definition = Digest::of(&bytes).to_string();
    Ok(served)
}

/// Servers may leave out that arguments are an object.
fn with_type(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    schema.entry("type").or_insert_with(|| "object".into());
    Value::Object(schema)
}

/// Reads a tool's result, or returns why it cannot be used.
pub(super) fn result(result: &Value) -> Result<ToolResult, String> {
    let members = result.as_object().ok_or("what it gave back is no result of a tool")?;
    if members.get("resultType").is_some_and(|kind| kind == "input_required") {
        return Err("it asks for input, and no flow has a person at hand for that".to_owned());
    }
    let value = members.get("structuredContent").filter(|value| !value.is_null()).cloned();
    let parts = match members.get("content") {
        Some(Value::Array(parts)) => parts.as_slice(),
        None if value.is_some() => &[],
        _ => return Err("what it gave back has no list of contents".to_owned()),
    };
    let texts: Vec<String> = parts.iter().map(part).collect();
    let text = clean(&texts.join("\n\n"));
    let size = text.len() + value.as_ref().map_or(0, |value| value.to_string().len());
    if size > RESULT {
        return Err(format!("what it gave back is too large: {size} bytes, at most {RESULT}"));
    }
    if members.get("isError").is_some_and(|failed| failed == true) {
        let why = if text.is_empty() { value.map(|value| value.to_string()).unwrap_or_default() } else { text };
        return Err(if why.trim().is_empty() { "it does not say why".to_owned() } else { why });
    }
    Ok(ToolResult { text, value })
}

/// Returns a part of a result as text.
fn part(part: &Value) -> String {
    let of = |name: &str| part[name].as_str().unwrap_or_default();
    let bytes = |base64: &Value| base64.as_str().map_or(0, |text| text.len() / 4 * 3);
    match of("type") {
        "text" => of("text").to_owned(),
        kind @ ("image" | "audio") => format!("[{kind}: {}, {} bytes]", of("mimeType"), bytes(&part["data"])),
        "resource_link" => format!("[resource: {} {}]", of("uri"), of("description")).replace(" ]", "]"),
        "resource" => match part["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => {
                let uri = part["resource"]["uri"].as_str().unwrap_or_default();
                format!("[resource: {uri}, {} bytes]", bytes(&part["resource"]["blob"]))
            }
        },
        kind => format!("[{}]", excerpt(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(more: Value) -> Value {
        let mut tool = json!({ "name": "search", "description": "Finds", "inputSchema": { "type": "object" } });
        if let (Some(members), Value::Object(more)) = (tool.as_object_mut(), more) {
            members.extend(more);
        }
        tool
    }

    #[test]
    fn a_tool_that_cannot_be_offered_is_told_with_why() {
        for (more, why) in [
            (json!({ "name": "\u{1b}[31mred" }), "its name has other signs"),
            (json!({ "name": "" }), "its name has other signs"),
            (json!({ "name": 5 }), "its name has other signs"),
            (json!({ "name": "x".repeat(129) }), "its name has other signs"),
            (json!({ "inputSchema": null }), "no schema"),
            (json!({ "inputSchema": { "type": "string" } }), "none of an object"),
            (json!({ "inputSchema": { "type": "object", "description": "x".repeat(70_000) } }), "too large"),
            (json!({ "inputSchema": { "properties": { "a": { "type": "no-such" } } } }), "cannot be used"),
            (json!({ "inputSchema": { "$ref": "https://a.example/s.json" } }), "cannot be used"),
            (json!({ "execution": { "taskSupport": "required" } }), "as a task alone"),
        ] {
            let told = read(&tool(more.clone())).expect_err("it is refused").1;
            assert!(told.contains(why), "{more}: {told}");
        }
        let served = read(&tool(json!({ "description": "a\u{1b}[2Jb" }))).expect("it can be offered");
        assert_eq!(served.description, "a␛[2Jb");
    }

    #[test]
    fn a_tool_that_says_something_else_of_itself_has_another_digest() {
        let digest = |more: Value| read(&tool(more)).expect("it can be offered").definition;
        let first = digest(json!({}));
        assert_eq!(first, digest(json!({})));
        for more in [
            json!({ "description": "Sends" }),
            json!({ "annotations": { "readOnlyHint": true } }),
            json!({ "inputSchema": { "type": "object", "properties": { "a": {} } } }),
            json!({ "outputSchema": { "type": "object" } }),
        ] {
            assert_ne!(digest(more.clone()), first, "{more}");
        }
    }

    #[test]
    fn a_result_is_texts_and_data_and_an_error_of_the_tool_is_one() {
        let read = |value: Value| result(&value);
        let all = json!({ "content": [
            { "type": "text", "text": "one\u{7}" }, { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "resource", "resource": { "uri": "a://b", "text": "two" } },
            { "type": "resource_link", "uri": "a://c" }, { "type": "new" },
        ], "structuredContent": { "n": 1 } });
        let expected = ToolResult {
            text: "one␇\n\n[image: image/png, 3 bytes]\n\ntwo\n\n[resource: a://c]\n\n[new]".to_owned(),
            value: Some(json!({ "n": 1 })),
        };
        assert_eq!(read(all), Ok(expected));
        for (wrong, why) in [
            (json!(5), "no result of a tool"),
            (json!({}), "no list of contents"),
            (json!({ "content": "text" }), "no list of contents"),
            (json!({ "content": [{ "type": "text", "text": "x".repeat(RESULT + 1) }] }), "too large"),
            (json!({ "content": [{ "type": "text", "text": "no such page" }], "isError": true }), "no such page"),
            (json!({ "content": [], "isError": true }), "does not say why"),
            (json!({ "resultType": "input_required", "content": [] }), "asks for input"),
        ] {
            assert!(read(wrong.clone()).is_err_and(|told| told.contains(why)), "{why}");
        }
    }
}
