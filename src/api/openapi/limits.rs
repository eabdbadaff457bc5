//! The headers of rate limits in responses other than 429. Nearly all successful ones have them, so they do not stand
//! in the parts of the document.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Adds the headers that describe a token bucket to the successful responses of each operation that may be refused with
/// 429. Without rate limits there are none.
pub fn add_headers(document: &mut Value) {
    let names = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    let of_refusal = &document["components"]["responses"]["RateLimited"]["headers"];
    let headers: Map<_, _> = names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), of_refusal.get(name)?.clone())))
        .collect();
    if headers.is_empty() {
        return;
    }
    for place in successes(document) {
        if let Some(response) = document.pointer_mut(&place).and_then(Value::as_object_mut)
            && let Value::Object(own) =
                response.entry("headers").or_insert_with(|| Map::new().into())
        {
            own.extend(headers.clone());
        }
    }
}

/// Where the successful responses of limited operations stand, as JSON pointers.
fn successes(document: &Value) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let responses = operation["responses"].as_object().into_iter().flatten();
            let is_limited = operation["responses"].get("429").is_some();
            for (status, response) in responses.filter(|_| is_limited) {
                if status.starts_with(['2', '3']) {
                    let path = path.replace('/', "~1");
                    let shared = response["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
                    places.insert(shared.map_or_else(
                        || format!("/paths/{path}/{method}/responses/{status}"),
                        str::to_owned,
                    ));
                }
            }
        }
    }
    places
}
