//! Settings of flows, which people set once in their configuration instead of with each run.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::nearest;
use crate::model::param::Param;

/// One setting, as a manifest declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its type, default and bounds.
    pub param: Param,
    /// Whether the setting is an upper limit: the lowest value of several files counts, and a project alone cannot raise the
    /// limit above the default.
    pub limit: bool,
}

/// What one file of the configuration sets for a flow.
#[derive(Clone, Debug, Default)]
pub struct SettingLayer {
    pub values: Map<String, Value>,
    /// For each setting, the file, line and field where it is set.
    pub places: BTreeMap<String, String>,
    /// Whether the file comes with a checkout, so that it may only tighten limits.
    pub project: bool,
}

/// Returns the value of each setting: that of the first of `layers` that sets it, the lowest for a limit, or the default.
///
/// # Errors
///
/// Names the place of an unknown setting or invalid value.
pub(crate) fn settle(
    declared: &BTreeMap<String, Setting>,
    layers: &[SettingLayer],
) -> Result<Map<String, Value>, String> {
    for layer in layers {
        for (name, value) in &layer.values {
            let place = layer.places.get(name).unwrap_or(name);
            let Some(setting) = declared.get(name) else {
                let near = nearest(name, declared.keys().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(format!("{place}: this flow has no such setting{hint}"));
            };
            setting.param.accepts(value).map_err(|why| format!("{place}: {why}"))?;
        }
    }
    let mut settled = Map::new();
    for (name, setting) in declared {
        let default = setting.param.default.clone();
        let mut value = default.clone();
        let mut set = false;
        for layer in layers {
            let Some(given) = layer.values.get(name) else { continue };
            let tighter = given.as_f64() < value.as_ref().and_then(Value::as_f64);
            let counts = match setting.limit {
                true => tighter || !(set || layer.project),
                false => !set,
            };
            if counts {
                value = Some(given.clone());
            }
            set = true;
        }
        settled.insert(name.clone(), value.unwrap_or(Value::Null));
    }
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declared() -> BTreeMap<String, Setting> {
        let setting = |param: Value, limit| Setting { param: serde_json::from_value(param).unwrap(), limit };
        BTreeMap::from([
            ("most".to_owned(), setting(json!({"type": "integer", "default": 20, "min": 1}), true)),
            (
                "tone".to_owned(),
                setting(json!({"type": "string", "default": "dry", "choices": ["dry", "warm"]}), false),
            ),
            ("note".to_owned(), setting(json!({"type": "string"}), false)),
        ])
    }

    fn layer(values: Value, project: bool) -> SettingLayer {
        let Value::Object(values) = values else { panic!("an object") };
        let file = if project { "nietz.yaml" } else { "config.yaml" };
        let places = values.keys().map(|name| (name.clone(), format!("{file}: {name}"))).collect();
        SettingLayer { values, places, project }
    }

    fn settled(user: Value, project: Value) -> Result<Value, String> {
        settle(&declared(), &[layer(user, false), layer(project, true)]).map(Value::Object)
    }

    #[test]
    fn the_users_file_goes_first_and_a_project_may_only_tighten_a_limit() {
        for (user, project, expected) in [
            (json!({}), json!({}), json!({"most": 20, "tone": "dry", "note": null})),
            (json!({"most": 50}), json!({}), json!({"most": 50, "tone": "dry", "note": null})),
            (json!({"most": 50}), json!({"most": 30}), json!({"most": 30, "tone": "dry", "note": null})),
            (json!({"most": 5}), json!({"most": 30}), json!({"most": 5, "tone": "dry", "note": null})),
            (json!({}), json!({"most": 30}), json!({"most": 20, "tone": "dry", "note": null})),
            (json!({}), json!({"most": 3, "tone": "warm"}), json!({"most": 3, "tone": "warm", "note": null})),
            (json!({"tone": "dry"}), json!({"tone": "warm"}), json!({"most": 20, "tone": "dry", "note": null})),
        ] {
            assert_eq!(settled(user.clone(), project.clone()), Ok(expected), "{user} {project}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file() {
        for (user, project, expected) in [
            (json!({"mots": 5}), json!({}), "config.yaml: mots: this flow has no such setting; did you mean `most`?"),
            (json!({"most": "5"}), json!({}), "config.yaml: most: must be of type integer"),
            (json!({}), json!({"most": 0}), "nietz.yaml: most: must be at least 1"),
            (json!({"tone": "loud"}), json!({}), "config.yaml: tone: must be one of dry, warm"),
        ] {
            assert_eq!(settled(user, project), Err(expected.to_owned()));
        }
    }
}
