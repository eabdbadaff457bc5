//! The document has the paths and the methods that the router has, and no others.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::*;
use crate::openapi::document::{everything, operations};

/// The methods and paths of one function of the router, as its source has them: each endpoint is a pattern with a
/// method, `=>`, and a call of `at` with the path.
fn routes_of(source: &str, function: &str, prefix: &str) -> BTreeSet<(String, String)> {
    let (_, rest) = source.split_once(&format!("\nfn {function}(")).expect("the function");
    let (body, _) = rest.split_once("\n}\n").expect("its end");
    let parts: Vec<&str> = body.split("=>").collect();
    let route = |pair: &[&str]| {
        let path = pair[1].trim_start().strip_prefix("at(\"")?.split('"').next()?;
        let (_, pattern) = pair[0].rsplit_once("(\"")?;
        Some((pattern.split('"').next()?.to_owned(), format!("{prefix}{path}")))
    };
    parts.windows(2).filter_map(route).collect()
}

#[test]
fn every_endpoint_is_documented() {
    let source = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/router.rs"));
    let source = source.expect("the router");
    let mut in_router = routes_of(&source, "root", "");
    in_router.extend(routes_of(&source, "api_v1", "/api/v1"));
    let document = everything();
    let documented = operations(&document).into_iter().map(|(method, path, _)| (method, path));
    assert_eq!(documented.collect::<BTreeSet<_>>(), in_router);
}

#[test]
fn every_documented_method_is_allowed() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let document = everything();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let mut documented: BTreeSet<_> = item
            .as_object()
            .expect("methods")
            .keys()
            .map(|name| name.to_ascii_uppercase())
            .collect();
        if documented.contains("GET") {
            documented.insert("HEAD".to_owned());
        }
        let ids = path.split('/').map(|part| if part.starts_with('{') { UNKNOWN_ID } else { part });
        let path: Vec<_> = ids.collect();
        let answer = api.request_at_root("PATCH", &path.join("/")).send().expect(405);
        let allowed = answer.header("Allow").split(", ").map(str::to_owned);
        assert_eq!(allowed.collect::<BTreeSet<_>>(), documented, "{answer:?}");
    }
}
