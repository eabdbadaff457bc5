//! The OpenAPI document (version 3.1). `openapi.json` beside this file is the document of a service with all features,
//! as clients see it. It names the settings that change what an endpoint does; what differs more is adapted here, when
//! the document is first asked for.

use serde_json::{Value, json};

use crate::config::{
    ApiKeyScope, Config, Environment, ErrorFormat, LogoutStatus, Registration, Smtp,
};

const DOCUMENT: &str = include_str!("openapi.json");
/// Where schemas are, in references to them.
const SCHEMAS: &str = "#/components/schemas/";

/// The document of a service with these settings, as JSON.
pub fn document(config: &Config) -> String {
    let mut document = all_features();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    if let Some(url) = &config.public_url {
        document["servers"] = json!([{ "url": url }, { "url": "/" }]);
    }
    let types: Vec<_> = config.allowed_upload_types.iter().collect();
    let upload = &mut document["paths"]["/api/v1/uploads"]["post"]["requestBody"]["content"];
    let file = &mut upload["multipart/form-data"]["encoding"]["file"];
    file["contentType"] = types.join(", ").into();
    drop_paths(&mut document, config);
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

/// Drops the paths of features that the settings switch off, as the router does.
fn drop_paths(document: &mut Value, config: &Config) {
    let is_on = |path: &str| match path {
        "/api/v1/auth/register" => config.registration == Registration::Open,
        "/api/v1/auth/request-password-reset" | "/api/v1/auth/reset-password" => {
            !matches!(config.smtp, Smtp::Off)
        }
        "/api/v1/auth/confirm-email" => config.confirms_email(),
        "/openapi.json" => config.docs,
        _ => config.test_endpoints_enabled || !path.starts_with("/api/v1/users/test-only/"),
    };
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.retain(|path, _| is_on(path));
    }
    if let Some(tags) = document["tags"].as_array_mut() {
        tags.retain(|tag| config.test_endpoints_enabled || tag["name"] != "Test only");
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
    use crate::config::EmailConfirmation;
    use crate::model::audit::ACTIONS;

    /// Fails if a reference in the value leads nowhere, or if a word of our own is left in it.
    fn check(value: &Value, document: &Value) {
        if let Some(path) = value["$ref"].as_str() {
            assert!(document.pointer(&path[1..]).is_some(), "{path}");
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            assert!(!name.starts_with("x-") || name == "x-codeSamples", "{name}");
            check(value, document);
        }
        value.as_array().into_iter().flatten().for_each(|item| check(item, document));
    }

    #[test]
    fn every_reference_leads_to_a_component_with_any_settings() {
        let changes: [fn(&mut Config); 8] = [
            |_| {},
            |config| config.docs = false,
            |config| config.smtp = Smtp::Off,
            |config| config.registration = Registration::Off,
            |config| config.test_endpoints_enabled = true,
            |config| config.email_confirmation = EmailConfirmation::Required,
            |config| config.error_format = ErrorFormat::Envelope,
            |config| (config.api_key_enabled, config.api_key_scope) = (true, ApiKeyScope::All),
        ];
        for change in changes {
            let mut config = Config::of_test_database();
            change(&mut config);
            let document = serde_json::from_str(&document(&config)).unwrap_or_default();
            check(&document, &document);
        }
    }

    #[test]
    fn every_component_of_the_file_is_used_with_some_settings() {
        let mut config = Config::of_test_database();
        config.test_endpoints_enabled = true;
        config.email_confirmation = EmailConfirmation::Required;
        let detail = document(&config);
        config.error_format = ErrorFormat::Envelope;
        let documents = detail + &document(&config);
        for (kind, components) in members(&mut all_features()["components"]) {
            for (name, _) in members(components).filter(|_| kind != "securitySchemes") {
                let reference = format!("\"#/components/{kind}/{name}\"");
                assert!(documents.contains(&reference), "{reference}");
            }
        }
    }

    #[test]
    fn the_audit_log_has_all_actions_and_a_row_of_its_table_for_each() {
        let document = all_features();
        assert_eq!(document["components"]["schemas"]["AuditAction"]["enum"], json!(ACTIONS));
        let table = document["paths"]["/api/v1/admin/audit"]["get"]["description"].as_str();
        let rows = table.into_iter().flat_map(str::lines).filter_map(|row| row.strip_prefix("| `"));
        let actions: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
        assert_eq!(actions, ACTIONS);
    }
}
