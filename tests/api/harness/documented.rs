//! The OpenAPI document, against which every answer that any test gets is compared.

use std::sync::LazyLock;

use serde_json::Value;

use super::{Directory, OutputText, command};

/// The document of a service with everything switched on.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    document(&[
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
    ])
});

/// What `cloakroom openapi` prints with these settings.
pub fn document(settings: &[(&str, &str)]) -> Value {
    let data = Directory::create();
    let mut command = command("postgres://localhost/unused", &data, settings);
    let printed = command.arg("openapi").output().expect("the binary runs").exits(0).out();
    serde_json::from_str(&printed).expect("JSON")
}

/// The operation of a request in a document; `None` for a path or a method that it does not have.
pub fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let path = path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
    let segments: Vec<&str> = path.split('/').collect();
    let ids = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        let fits = |(part, segment): (&&str, &&str)| part.starts_with('{') || part == segment;
        let is_match = parts.len() == segments.len() && parts.iter().zip(&segments).all(fits);
        is_match.then(|| template.matches('{').count())
    };
    let paths = document["paths"].as_object().expect("paths");
    // Of several templates that match, the one with fewer ids is meant.
    let matching = paths.iter().filter_map(|(template, item)| Some((ids(template)?, item)));
    let (_, item) = matching.min_by_key(|(ids, _)| *ids)?;
    let method = if method == "HEAD" { "get" } else { &method.to_ascii_lowercase() };
    item.get(method)
}

/// Fails if the document has the endpoint, but not this status among its responses.
#[track_caller]
pub fn assert_documented(method: &str, url: &str, status: u16, body: &[u8]) {
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    let path = format!("/{}", path.split('?').next().unwrap_or_default());
    let Some(operation) = operation(&DOCUMENT, method, &path) else { return };
    // The 404 of a switched-off endpoint is not documented, because the document of a service leaves out the endpoints
    // that it has switched off. The response to `HEAD` has no body by which to recognise this 404.
    let text = String::from_utf8_lossy(body);
    let is_off = || method == "HEAD" || text.contains("This feature is not available");
    let is_documented = !operation["responses"][status.to_string()].is_null();
    assert!(
        is_documented || status == 404 && is_off(),
        "{method} {path} answered {status}, which the OpenAPI document does not name"
    );
}
