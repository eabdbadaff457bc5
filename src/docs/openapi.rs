//! The OpenAPI document (version 3.1). `openapi.json` beside this file is the document of a service with all features,
//! as clients see it. It names the settings that change what an endpoint does; what differs more is adapted here, when
//! the document is first asked for.

use serde_json::{Value, json};

use crate::config::{ApiKeyScope, Config, Environment, ErrorFormat, LogoutStatus};

const DOCUMENT: &str = include_str!("openapi.json");
/// Where schemas are, in references to them.
const SCHEMAS: &str = "#/components/schemas/";

/// The document of a service with these settings, as JSON. It names the paths for which `has_path` is true.
pub fn document(config: &Config, has_path: impl Fn(&str) -> bool) -> String {
    let mut document = all_features();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    if let Some(url) = &config.public_url {
        document["servers"] = json!([{ "url": url }, { "url": "/" }]);
    }
    let types: Vec<_> = config.allowed_upload_types.iter().collect();
    for path in ["/api/v1/uploads", "/api/v1/links/{token}/files"] {
        let upload = &mut document["paths"][path]["post"]["requestBody"]["content"];
        let file = &mut upload["multipart/form-data"]["encoding"]["file"];
        file["contentType"] = types.join(", ").into();
    }
    drop_paths(&mut document, has_path);
    add_patch(&mut document);
    if config.provider.is_none() {
        drop_provider_codes(&mut document);
    }
    #[cfg(not(feature = "extras"))]
    drop_parameters(&mut document);
    let sign_out = &mut document["paths"]["/api/v1/auth/logout"]["post"]["responses"];
    if let Some(responses) = sign_out.as_object_mut() {
        let other = if config.logout_status == LogoutStatus::Ok { "204" } else { "200" };
        responses.shift_remove(other);
    }
    set_security(&mut document, config);
    if config.error_format == ErrorFormat::Envelope {
        use_envelope(&mut document);
    }
    without_unused_components(document)
}

#[expect(clippy::expect_used, reason = "a test parses the file, which is a part of the program")]
fn all_features() -> Value {
    serde_json::from_str(DOCUMENT).expect("valid JSON")
}

/// The members of an object of the document; none if it is not there.
fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

/// Drops the paths that the service does not have, the tags that only these have, and links to their operations. Other
/// tags are chapters of prose.
fn drop_paths(document: &mut Value, has_path: impl Fn(&str) -> bool) {
    let before = document["paths"].to_string();
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.retain(|path, _| has_path(path));
    }
    let after = document["paths"].to_string();
    drop_links(&mut document["paths"], &after);
    if let Some(tags) = document["tags"].as_array_mut() {
        tags.retain(|tag| {
            let used = format!("\"tags\":[{}]", tag["name"]);
            after.contains(&used) || !before.contains(&used)
        });
    }
}

/// Adds `PATCH` wherever there is `PUT`, because it is the same.
fn add_patch(document: &mut Value) {
    for (_, item) in members(&mut document["paths"]) {
        let Some(mut patch) = item.get("put").cloned() else { continue };
        let id =
            patch["operationId"].as_str().map(|id| format!("patch_{}", id.replace("update_", "")));
        patch["operationId"] = id.into();
        item["patch"] = patch;
    }
}

/// Drops links to operations that are not among the paths.
fn drop_links(value: &mut Value, paths: &str) {
    if let Some(Value::Object(links)) = value.get_mut("links") {
        // An operation has a method and tags, and a link has neither.
        let is_there = |link: &Value| {
            paths.contains(&format!("{{\"operationId\":{},\"tags\"", link["operationId"]))
        };
        links.retain(|_, link| is_there(link));
    }
    members(value).for_each(|(_, member)| drop_links(member, paths));
}

/// Drops the codes of an OpenID provider, which take the place of another field.
fn drop_provider_codes(document: &mut Value) {
    for (_, schema) in members(&mut document["components"]["schemas"]) {
        let Some(schema) = schema.as_object_mut() else { continue };
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        if properties.and_then(|properties| properties.shift_remove("oidc")).is_none() {
            continue;
        }
        let Some(mut otherwise) = schema.shift_remove("else") else { continue };
        if otherwise["required"] == json!(["oidc"]) {
            let field = schema.shift_remove("if").map(|mut it| it["required"][0].take());
            let required = schema.entry("required").or_insert(json!([])).as_array_mut();
            required.into_iter().for_each(|required| required.extend(field.clone()));
        } else {
            schema.insert("else".to_owned(), otherwise["else"].take());
        }
    }
}

/// Drops the parameters and fields that the core build ignores, and the key of sorting that only deleted files have.
#[cfg(not(feature = "extras"))]
fn drop_parameters(document: &mut Value) {
    let is_used = |parameter: &Value| {
        let name = parameter["name"].as_str().or(parameter["$ref"].as_str()).unwrap_or_default();
        let ignored = ["deleted", "permanently", "Idempotency-Key", "folder", "below", "received"];
        !ignored.iter().any(|ignored| name.ends_with(ignored))
    };
    for (_, item) in members(&mut document["paths"]) {
        for (_, operation) in members(item) {
            if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
                parameters.retain(is_used);
            }
        }
    }
    for request in ["UploadFileForm", "UpdateFileRequest"] {
        let fields = &mut document["components"]["schemas"][request]["properties"];
        fields.as_object_mut().and_then(|fields| fields.shift_remove("folder"));
    }
    if let Value::Array(keys) = &mut document["components"]["schemas"]["FileSortKey"]["enum"] {
        keys.retain(|key| key != "deleted_at");
    }
}

/// Asks for the API key where the settings do, and offers exports without a token only where anyone may export.
fn set_security(document: &mut Value, config: &Config) {
    let has_key = config.auth_enabled && config.api_key_enabled;
    let is_for_all = has_key && config.api_key_scope == ApiKeyScope::All;
    let is_open = config.allow_anonymous_export || config.environment == Environment::Development;
    let may_anyone_export = is_open && !config.export_require_admin && !has_key;
    for (path, item) in members(&mut document["paths"]) {
        let needs_no_key = !path.starts_with("/api/v1/") || path.starts_with("/api/v1/links/");
        for (_, operation) in members(item) {
            let is_export = operation["tags"][0] == "Exports";
            let Some(Value::Array(ways)) = operation.get_mut("security") else { continue };
            if is_export && !may_anyone_export {
                ways.retain(|way| *way != json!({}));
            }
            if (has_key && is_export) || (is_for_all && !needs_no_key) {
                add_key(ways);
            }
        }
    }
    if is_for_all && let Value::Array(ways) = &mut document["security"] {
        add_key(ways);
    }
    if let (false, Value::Object(schemes)) =
        (has_key, &mut document["components"]["securitySchemes"])
    {
        schemes.shift_remove("api_key");
    }
}

/// Adds the API key to each of the ways to be let in.
fn add_key(ways: &mut Vec<Value>) {
    if ways.is_empty() {
        ways.push(json!({}));
    }
    for way in ways {
        way["api_key"] = json!([]);
    }
}

/// Gives all errors the schema of the other format, which has an example of its own.
fn use_envelope(value: &mut Value) {
    let schema = value["schema"]["$ref"].as_str().and_then(|path| path.strip_prefix(SCHEMAS));
    if let Some("ApiError" | "ValidationError") = schema {
        *value = json!({ "schema": { "$ref": format!("{SCHEMAS}ErrorEnvelope") } });
    }
    members(value).for_each(|(_, member)| use_envelope(member));
}

/// The text of the document without the components that nothing in it refers to, directly or through others.
fn without_unused_components(mut document: Value) -> String {
    let mut text = String::new();
    while text.len() != document.to_string().len() {
        text = document.to_string();
        for kind in ["schemas", "responses", "headers", "parameters", "examples"] {
            if let Some(components) = document["components"][kind].as_object_mut() {
                let is_used =
                    |name: &str| text.contains(&format!("\"#/components/{kind}/{name}\""));
                components.retain(|name, _| is_used(name));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "oidc")]
    use crate::config::{EmailConfirmation, ProviderSettings};
    #[cfg(feature = "extras")]
    use crate::model::audit_event::ACTIONS;

    #[test]
    #[cfg(feature = "oidc")]
    fn every_component_of_the_file_is_used_with_some_settings() {
        let mut config = Config::of_test_database();
        config.test_endpoints_enabled = true;
        config.email_confirmation = EmailConfirmation::Required;
        config.provider = Some(ProviderSettings::of_issuer("https://login.example.com"));
        let detail = document(&config, |_| true);
        config.error_format = ErrorFormat::Envelope;
        let documents = detail + &document(&config, |_| true);
        for (kind, components) in members(&mut all_features()["components"]) {
            for (name, _) in members(components).filter(|_| kind != "securitySchemes") {
                let reference = format!("\"#/components/{kind}/{name}\"");
                assert!(documents.contains(&reference), "{reference}");
            }
        }
    }

    #[test]
    fn without_a_provider_no_schema_takes_its_code() {
        let mut document = all_features();
        drop_provider_codes(&mut document);
        let schemas = &document["components"]["schemas"];
        assert!(!schemas.to_string().contains("\"oidc\""), "{schemas}");
        let needs = |name: &str| &schemas[name]["required"];
        assert_eq!(*needs("CurrentPasswordRequest"), json!(["current_password"]));
        assert_eq!(*needs("PasswordAndCodeRequest"), json!(["code", "current_password"]));
        let change = &schemas["ChangePasswordRequest"];
        assert_eq!(change["if"], json!({"required": ["current_password"]}));
        assert_eq!(change["else"]["required"], json!(["old_password"]));
    }

    #[test]
    #[cfg(feature = "extras")]
    fn the_audit_log_has_all_actions_and_a_row_of_its_table_for_each() {
        let document = all_features();
        assert_eq!(document["components"]["schemas"]["AuditAction"]["enum"], json!(&ACTIONS[..]));
        let table = document["paths"]["/api/v1/admin/audit"]["get"]["description"].as_str();
        let rows = table.into_iter().flat_map(str::lines).filter_map(|row| row.strip_prefix("| `"));
        let actions: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
        assert_eq!(actions, ACTIONS);
    }
}
