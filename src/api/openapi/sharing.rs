//! Makes components of the parameters and the examples that the document has more than once, so that they are sent and
//! read once.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// Replaces each parameter and each named example that occurs more than once with a reference.
pub fn share(document: &mut Value) {
    for kind in ["parameters", "examples"] {
        let mut counts: HashMap<_, usize> = HashMap::new();
        for_each(document, kind, &mut |name, item| {
            *counts.entry((name.to_owned(), item.to_string())).or_default() += 1;
        });
        let mut components = match document["components"][kind].take() {
            Value::Object(components) => components,
            _ => Map::new(),
        };
        for_each(document, kind, &mut |name, item| {
            let is_repeated = counts[&(name.to_owned(), item.to_string())] > 1;
            // Of different items with one name only one can be the component of that name.
            if is_repeated && components.get(name).is_none_or(|component| component == item) {
                components.insert(name.to_owned(), item.take());
                *item = json!({ "$ref": format!("#/components/{kind}/{name}") });
            }
        });
        document["components"][kind] = components.into();
    }
}

/// Calls `act` with the name and the value of each parameter or example in operations and in shared responses, unless
/// it is a reference already or its name cannot be that of a component.
fn for_each(document: &mut Value, kind: &str, act: &mut dyn FnMut(&str, &mut Value)) {
    visit(&mut document["paths"], kind, act);
    visit(&mut document["components"]["responses"], kind, act);
}

fn visit(value: &mut Value, kind: &str, act: &mut dyn FnMut(&str, &mut Value)) {
    let is_legal =
        |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, kind, act)),
        Value::Object(members) => {
            for (member, value) in members {
                match value {
                    Value::Array(parameters) if member == kind && kind == "parameters" => {
                        for item in parameters.iter_mut().filter(|item| item["name"].is_string()) {
                            let name = item["name"].as_str().unwrap_or_default().to_owned();
                            act(&name, item);
                        }
                    }
                    Value::Object(examples) if member == kind && kind == "examples" => {
                        let items = examples
                            .iter_mut()
                            .filter(|(name, item)| is_legal(name) && item.get("$ref").is_none());
                        items.for_each(|(name, item)| act(name, item));
                    }
                    value => visit(value, kind, act),
                }
            }
        }
        _ => {}
    }
}
