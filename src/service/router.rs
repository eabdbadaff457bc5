//! The table of endpoints, a line each: method, path, handler with who may enter, and rate limit. `Allow`, 405, `HEAD`
//! and the names of endpoints in the metrics follow from it.

use std::borrow::Cow;

#[cfg(feature = "extras")]
use super::extras::EXTRAS;
use super::health;
use crate::config::Config;
use crate::docs::openapi;
use crate::docs::pages::Pages;
use crate::error::Error;
use crate::http::response::Response;
use crate::request::context::RequestContext;
#[cfg(feature = "extras")]
use crate::request::endpoint::Feature;
use crate::request::endpoint::Feature::{Docs, Metrics};
use crate::request::endpoint::Handler::Anyone;
use crate::request::endpoint::{Endpoint, at};
use crate::{accounts, exports, files, sign_in};

/// The methods that endpoints have, in the order in which `Allow` lists them.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Finds the endpoint for the method and the path of a request, whose client is on this host if `is_local`. `HEAD` has
/// the endpoint of `GET`, unless that changes something (RFC 9110, 9.3.2). Fails with [`Error::RouteNotFound`] if no
/// endpoint has the path, with that or [`Error::FeatureOff`] if the settings switch it off, and with
/// [`Error::MethodNotAllowed`] if endpoints for other methods have it.
///
/// The path is split before its segments are decoded, so that an encoded slash does not split a segment. One trailing
/// slash is ignored. Bytes that are not UTF-8 are replaced by a character that no literal segment and no id has.
pub fn find(config: &Config, is_local: bool, method: &str, path: &str) -> Result<Endpoint, Error> {
    let path = path.strip_prefix('/').ok_or(Error::RouteNotFound { has_docs: config.docs })?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let decode = |segment| percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
    let segments: Vec<Cow<str>> = path.split('/').map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    let is_head = method == "HEAD";
    match endpoint(if is_head { "GET" } else { method }, &segments) {
        Some(endpoint) if !endpoint.feature.is_on(config, is_local) => {
            Err(endpoint.feature.refusal(config))
        }
        Some(endpoint) if is_head && endpoint.name.is_for_browsers() => {
            Err(Error::MethodNotAllowed("GET".to_owned()))
        }
        Some(endpoint) => Ok(endpoint),
        None => Err(no_endpoint(config, is_local, &segments)),
    }
}

/// The error of a request whose path has no endpoint for its method.
fn no_endpoint(config: &Config, is_local: bool, segments: &[&str]) -> Error {
    let others: Vec<_> = METHODS.iter().filter_map(|method| endpoint(method, segments)).collect();
    match others.first() {
        None => Error::RouteNotFound { has_docs: config.docs },
        Some(endpoint) if !endpoint.feature.is_on(config, is_local) => {
            endpoint.feature.refusal(config)
        }
        Some(_) => {
            let methods = others.iter().map(|endpoint| match endpoint.name.method {
                "GET" if !endpoint.name.is_for_browsers() => "GET, HEAD",
                method => method,
            });
            Error::MethodNotAllowed(methods.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The OpenAPI document of a service with these settings, as JSON. It names the endpoints that they leave on, and
/// `/metrics`, which is on for some clients only.
pub fn document(config: &Config) -> String {
    openapi::document(config, |path| {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let found = METHODS.iter().find_map(|method| endpoint(method, &segments));
        found.is_some_and(|found| {
            matches!(found.feature, Metrics) || found.feature.is_on(config, true)
        })
    })
}

/// Whether a path is `/api/v1` or below it, also if no endpoint has it.
pub fn is_api(path: &str) -> bool {
    let mut segments = path.split('/').map(percent_encoding::percent_decode_str);
    ["", "api", "v1"].iter().all(|name| segments.next().is_some_and(|s| s.eq(name.bytes())))
}

/// The endpoint for a method, which is not `HEAD`, and the segments of a path. Where `PATCH` has none of its own, it
/// has that of `PUT`, which leaves what is not sent as it is.
fn endpoint(method: &str, segments: &[&str]) -> Option<Endpoint> {
    let method = METHODS.into_iter().find(|known| *known == method)?;
    let routed = if method == "PATCH" { "PUT" } else { method };
    let (endpoint, prefix, segments) = match segments {
        ["api", "v1", rest @ ..] => {
            let find = |route: &Route| route(method, rest).or_else(|| route(routed, rest));
            (ROUTES.iter().chain(EXTRAS).find_map(find), "/api/v1", rest)
        }
        _ => (root(method, segments).or_else(|| pages(method, segments)), "", segments),
    };
    Some(endpoint?.matched(method, prefix, segments))
}

/// Probes, metrics and the OpenAPI document.
fn root(method: &str, segments: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, segments) {
        ("GET", ["healthz"]) => at("/healthz", Anyone(health::alive)).unlimited().without_key(),
        ("GET", ["readyz"]) => at("/readyz", Anyone(health::ready)).unlimited().without_key(),
        ("GET", ["metrics"]) => at("/metrics", Anyone(health::metrics)).unlimited().without_key().part_of(Metrics),
        ("GET", ["openapi.json"]) => at("/openapi.json", Anyone(page)).unlimited().without_key().part_of(Docs),
        _ => return None,
    };
    Some(endpoint)
}

/// The endpoints of the modules, below `/api/v1`.
type Route = fn(&str, &[&str]) -> Option<Endpoint>;
const ROUTES: &[Route] = &[sign_in::route, accounts::route, files::route, exports::route];

#[cfg(not(feature = "extras"))]
const EXTRAS: &[Route] = &[];

/// The console, the pages that show the OpenAPI document, and the files that they load. The document does not describe
/// them.
fn pages(method: &str, segments: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, segments) {
        #[cfg(feature = "extras")]
        ("GET", [""]) => at("/", Anyone(page)).part_of(Feature::Start),
        #[cfg(feature = "extras")]
        ("GET", ["console", ..]) => at("/console", Anyone(page)).part_of(Feature::Console),
        ("GET", ["docs"] | ["docs", "start.js" | "style.css" | "swagger-ui.js" | "swagger-ui.css" | "licenses.txt"]) =>
            at("/docs", Anyone(page)).part_of(Docs),
        ("GET", ["redoc"] | ["redoc", "redoc.js"]) => at("/redoc", Anyone(page)).part_of(Docs),
        _ => return None,
    };
    Some(endpoint.unlimited().without_key())
}

/// Any of the pages, by its path.
fn page(context: &mut RequestContext) -> Result<Response, Error> {
    let config = &context.app.config;
    let pages = context.app.pages.get_or_init(|| Pages::new(config, document(config)));
    let page = pages.respond(&context.request);
    page.ok_or_else(|| context.app.route_not_found())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::config::{ApiKeyScope, EmailConfirmation, ErrorFormat, Registration, Smtp};

    /// The text of all tables of endpoints: this file's, and those of the modules that have one.
    fn tables() -> String {
        let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
        let mut tables = include_str!("router.rs")
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default()
            .to_owned();
        for folder in source.read_dir().into_iter().flatten().flatten() {
            for file in ["mod.rs", "extras.rs"] {
                tables += &fs::read_to_string(folder.path().join(file)).unwrap_or_default();
            }
        }
        tables
    }

    /// The paths in the tables, each once.
    #[cfg(feature = "extras")]
    fn templates(tables: &str) -> BTreeSet<&str> {
        tables.split("at(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    #[cfg(feature = "extras")]
    fn only_probes_and_pages_are_unlimited_and_only_they_and_links_need_no_api_key() {
        let tables = tables();
        let mut found = Vec::new();
        for template in templates(&tables) {
            for path in [template.to_owned(), format!("/api/v1{template}")] {
                let segments: Vec<&str> = path.split('/').skip(1).collect();
                // That of `PATCH` is the one of `PUT`, if there is one.
                let has_put = endpoint("PUT", &segments).is_some();
                let methods = METHODS.iter().filter(|method| !(has_put && **method == "PATCH"));
                let of_path = methods.filter_map(|method| endpoint(method, &segments));
                // A literal may stand in the place of an id.
                found.extend(of_path.filter(|line| line.name.to_string().ends_with(&path)));
            }
        }
        assert_eq!(found.len(), tables.matches("at(\"").count(), "every line is found once");
        let names = |is_wanted: fn(&Endpoint) -> bool| -> BTreeSet<String> {
            found.iter().filter(|line| is_wanted(line)).map(|line| line.name.to_string()).collect()
        };
        let unlimited = "/ /console /docs /healthz /metrics /openapi.json /readyz /redoc";
        let mut expected: BTreeSet<String> =
            unlimited.split(' ').map(|path| format!("GET {path}")).collect();
        assert_eq!(names(|line| line.limit.is_none()), expected);
        let of_links = ["/links/{token}", "/links/{token}/{file_id}"];
        let of_provider = ["/auth/oidc/start", "/auth/oidc/callback"];
        let of_provider = of_provider.into_iter().filter(|_| cfg!(feature = "oidc"));
        let by_browsers = of_links.into_iter().chain(of_provider);
        expected.extend(by_browsers.map(|path| format!("GET /api/v1{path}")));
        let one = "/links/{token}/partial/{upload_id}";
        let sent = ["POST /links/{token}/files", "POST /links/{token}/partial"].map(str::to_owned);
        let of_one = ["GET", "PATCH", "DELETE"].map(|method| format!("{method} {one}"));
        expected.extend(sent.iter().chain(&of_one).map(|name| name.replacen(' ', " /api/v1", 1)));
        assert_eq!(names(|line| !line.needs_api_key), expected);
    }

    #[test]
    #[cfg(feature = "extras")]
    fn one_module_answers_for_a_path() {
        let mut answered = 0;
        for template in templates(&tables()) {
            for method in METHODS {
                let segments: Vec<&str> = template.split('/').skip(1).collect();
                let routes = ROUTES.iter().chain(EXTRAS);
                let answers = routes.filter(|route| route(method, &segments).is_some()).count();
                assert!(answers <= 1, "{answers} modules answer for {method} {template}");
                answered += answers;
            }
        }
        assert!(answered > 50, "{answered}");
    }

    /// Fails if a reference or a link in the value leads nowhere, or if a word of our own is left in it.
    fn check(value: &Value, document: &Value) {
        if let Some(path) = value["$ref"].as_str() {
            assert!(document.pointer(&path[1..]).is_some(), "{path}");
        }
        // A response has a description, and the properties of a schema have none that is text.
        let links = value["links"].as_object().filter(|_| value["description"].is_string());
        for (name, link) in links.into_iter().flatten() {
            let operation = format!("{{\"operationId\":{},\"tags\"", link["operationId"]);
            assert!(document["paths"].to_string().contains(&operation), "{name}");
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

    /// A build without a feature does not tell clients of its paths, in prose either.
    #[test]
    #[cfg(not(feature = "extras"))]
    fn the_document_of_the_core_build_names_no_other_path() {
        let mut config = Config::of_test_database();
        config.test_endpoints_enabled = true;
        let document = document(&config);
        let tables = tables();
        let templates = tables.split("at(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let is_missing = |template: &&str| {
            let segments: Vec<&str> = template.split('/').skip(1).collect();
            ["/api/v1", ""].iter().all(|prefix| {
                let all: Vec<&str> =
                    prefix.split('/').skip(1).chain(segments.iter().copied()).collect();
                METHODS.iter().all(|method| endpoint(method, &all).is_none())
            })
        };
        let templates = templates.filter(|template| *template != "/");
        let missing: BTreeSet<&str> = templates.filter(is_missing).collect();
        assert!(missing.len() > 15, "{missing:?}");
        for template in missing {
            // What only this path has: what follows its first parameter, or else its beginning.
            let pieces: Vec<&str> = template.split(['{', '}']).step_by(2).collect();
            let part = match pieces[..] {
                [_, after, ..] if after.len() > 1 => format!("}}{}", after.trim_end_matches('/')),
                _ => pieces[0].trim_end_matches('/').to_owned(),
            };
            assert!(!document.contains(&part), "the document names {template}: {part}");
        }
    }

    #[cfg(feature = "extras")]
    fn outcome(method: &str, path: &str) -> Result<(), String> {
        match find(&Config::of_test_database(), true, method, path) {
            Ok(_) => Ok(()),
            Err(Error::MethodNotAllowed(methods)) => Err(methods),
            Err(Error::FeatureOff) => Err("off".into()),
            Err(_) => Err("404".into()),
        }
    }

    #[test]
    #[cfg(feature = "extras")]
    fn names_of_endpoints_contain_no_ids() {
        let config = Config::of_test_database();
        for (method, path, expected) in [
            ("HEAD", "/api/v1/users/me", "GET /api/v1/users/me"),
            ("GET", "/api/v1/users/7", "GET /api/v1/users/{user_id}"),
            ("PUT", "/api/v1/admin/users/users/", "PUT /api/v1/admin/users/{user_id}"),
            ("GET", "/api/v1/uploads/me/download", "GET /api/v1/uploads/{file_id}/download"),
            ("GET", "/api/v1/links/s3cret/", "GET /api/v1/links/{token}"),
            (
                "DELETE",
                "/api/v1/uploads/7/links/8",
                "DELETE /api/v1/uploads/{file_id}/links/{link_id}",
            ),
            ("GET", "/readyz/", "GET /readyz"),
            ("GET", "/console/files/7", "GET /console"),
        ] {
            let endpoint = find(&config, true, method, path).unwrap_or_else(|_| panic!("{path}"));
            assert_eq!(endpoint.name.to_string(), expected);
        }
    }

    #[test]
    fn an_id_has_the_name_that_the_template_gives_it() {
        let found = find(&Config::of_test_database(), true, "GET", "/api/v1/uploads/7/download");
        let endpoint = found.unwrap_or_else(|_| panic!("no endpoint"));
        let [id] = &endpoint.path_params[..] else { panic!("an id") };
        assert_eq!((id.name, &*id.text), ("file_id", "7"));
    }

    #[test]
    #[cfg(feature = "extras")]
    fn paths_are_split_before_they_are_decoded() {
        for (method, path, expected) in [
            ("GET", "/api/v1/users/me", Ok(())),
            ("GET", "/api/v1/users/me/", Ok(())),
            ("HEAD", "/api/v1/users/me", Ok(())),
            ("GET", "/api/v1/%75sers/me", Ok(())),
            ("GET", "/api/v1/users%2Fme", Err("404")),
            ("GET", "/api/v1/users/me//", Err("404")),
            ("GET", "//api/v1/users/me", Err("404")),
            ("GET", "/api/v1/users/m%ff", Ok(())),
            ("GET", "/api/v1/users/m%ff/x", Err("404")),
            ("GET", "/api/v1/%ff", Err("404")),
            ("GET", "/", Ok(())),
            ("GET", "", Err("404")),
            ("GET", "/docs/", Ok(())),
            ("GET", "/docs/unknown.js", Err("404")),
            ("GET", "/console/", Ok(())),
            ("GET", "/console/users/7", Ok(())),
            ("GET", "/consoles", Err("404")),
            ("PUT", "/console/users/7", Err("GET, HEAD")),
            ("POST", "/redoc", Err("GET, HEAD")),
            ("GET", "*", Err("404")),
            ("PATCH", "/api/v1/users/me", Ok(())),
            ("PATCH", "/api/v1/users", Err("GET, HEAD, POST")),
            ("GET", "/api/v1/auth/login", Err("POST")),
            ("get", "/api/v1/users/me", Err("GET, HEAD, PUT, PATCH")),
            ("DELETE", "/api/v1/users/me", Err("GET, HEAD, PUT, PATCH")),
            ("GET", "/api/v1/users/change-password", Err("POST")),
            ("DELETE", "/api/v1/users/export", Err("GET, HEAD")),
            ("GET", "/api/v1/uploads/restore", Err("POST")),
            ("PATCH", "/api/v1/uploads/update", Err("POST")),
            ("GET", "/api/v1/uploads/restore/download", Err("404")),
            ("GET", "/api/v1/users/exports", Err("404")),
            ("GET", "/api/v1/users/me/sessions", Err("404")),
            ("GET", "/api/v1/users/no-id/sessions", Ok(())),
            ("POST", "/api/v1/users/no-id/tokens", Err("GET, HEAD, DELETE")),
            ("DELETE", "/api/v1/users/test-only", Err("404")),
            ("DELETE", "/api/v1/users/test-only/delete-all", Err("off")),
            ("GET", "/api/v1/users/test-only/delete-all", Err("off")),
            ("GET", "/api/v1/users/no-id", Ok(())),
            ("POST", "/api/v1/users/no-id", Err("GET, HEAD, PUT, PATCH, DELETE")),
        ] {
            assert_eq!(outcome(method, path), expected.map_err(str::to_owned), "{method} {path}");
        }
    }
}
