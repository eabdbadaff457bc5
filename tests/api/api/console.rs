//! The console: its page at every path, and the files that this loads. `scripts/test-console` uses it in a browser.

use serde_json::{Value, json};

use crate::harness::*;

/// The paths that the page loads, in its order.
fn paths_in(page: &str) -> Vec<String> {
    let values = page.split(['"', ' ', '>']).filter(|text| text.starts_with("/console/"));
    values.map(str::to_owned).collect()
}

#[test]
fn every_path_below_the_console_is_its_page() {
    // All that could refuse an ordinary request: a key for every endpoint, and a limit of one request a minute.
    let api = Server::start(&[
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY", "0123456789abcdef"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "1"),
    ]);
    let page = api.request_at_root("GET", "/console").by("no token").send().expect(200);
    assert_eq!(page.header("Content-Type"), "text/html; charset=utf-8");
    for path in [
        "/console/",
        "/console/files?search=a",
        "/console/users/11d8d66a-4d13-4a2e-8da9-fdfeee782a50/",
        "/console/../console",
        "/console/%2e%2e/%00/a/b/c",
        "/console//",
        "/%63onsole/reset",
    ] {
        let answer = api.request_at_root("GET", path).send().case(path).expect(200);
        assert!(answer.bytes == page.bytes, "{path}");
        assert_eq!(
            (answer.header("ETag"), answer.header("Cache-Control")),
            (page.header("ETag"), "no-cache")
        );
        assert!(!answer.has_header("X-RateLimit-Limit"), "{answer:?}");
        let head = api.request_at_root("HEAD", path).send().expect(200);
        assert_eq!(
            (head.header("Content-Length"), head.bytes.len()),
            (&*page.bytes.len().to_string(), 0)
        );
        let post = api.request_at_root("POST", path).send().refused(405, "Method Not Allowed");
        assert_eq!(post.header("Allow"), "GET, HEAD");
        let known = api.request_at_root("GET", path).header("If-None-Match", page.header("ETag"));
        known.send().expect(304);
    }
    api.request_at_root("GET", "/consoles").send().refused(404, "Not Found");
}

#[test]
fn the_page_may_load_and_run_only_what_this_service_sends() {
    let api = Server::start(&[]);
    let page = api.request_at_root("GET", "/console").send().expect(200);
    let policy: Vec<_> = page.header("Content-Security-Policy").split("; ").collect();
    for directive in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ] {
        assert!(policy.contains(&directive), "{directive} is not in {policy:?}");
    }
    assert_eq!(policy.len(), 10, "{policy:?}");
    assert_eq!(page.header("Cross-Origin-Opener-Policy"), "same-origin");
    let text = page.text();
    assert!(
        !text.contains("style=") && !text.contains("<style") && !text.contains("://"),
        "{text}"
    );
    let loaded = text.matches("src=").count() + text.matches("href=").count();
    assert_eq!(paths_in(&text).len(), loaded, "{text}");
}

#[test]
fn the_page_says_what_the_service_offers_and_takes() {
    let api = Server::start(&[
        ("CLOAKROOM_REGISTRATION", "off"),
        ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "text/csv,image/png"),
        ("CLOAKROOM_MAX_UPLOAD_SIZE", "1000"),
        ("CLOAKROOM_USER_STORAGE_QUOTA", "2000"),
    ]);
    let page = api.request_at_root("GET", "/console").send().expect(200).text();
    let (_, rest) =
        page.split_once("<script type=\"application/json\" id=\"service\">").expect("data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    let expected = json!({
        "registration": false,
        "passwordResets": true,
        "types": ["text/csv", "image/png"],
        "fileBytes": 1000,
        "userBytes": 2000,
    });
    assert_eq!(serde_json::from_str::<Value>(data).expect("JSON"), expected);
}

#[test]
fn files_are_kept_for_good_and_those_of_another_version_are_unknown() {
    let api = Server::start(&[]);
    let paths = paths_in(&api.request_at_root("GET", "/console").send().expect(200).text());
    assert!(paths.len() > 2, "{paths:?}");
    for path in paths {
        let get = |coding: &str, tag: &str| {
            let request = api.request_at_root("GET", &path).header("Accept-Encoding", coding);
            request.header("If-None-Match", tag).send().case(format_args!("{path} {coding}"))
        };
        let plain = get("identity", "\"x\"").expect(200);
        let gzip = get("gzip, br", "\"x\"").expect(200);
        assert!(!plain.has_header("Content-Encoding"), "{plain:?}");
        assert_eq!(gzip.header("Content-Encoding"), "gzip");
        assert!(gzip.bytes.len() < plain.bytes.len(), "{path}");
        for answer in [&plain, &gzip] {
            assert_eq!(answer.header("Cache-Control"), "public, max-age=31536000, immutable");
            assert_eq!(answer.header("Vary"), "Accept-Encoding");
            assert_eq!(answer.header("X-Content-Type-Options"), "nosniff");
        }
        assert_eq!(get("gzip", gzip.header("ETag")).expect(304).bytes.len(), 0);
        let media_type = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            other => panic!("{other:?}"),
        };
        assert_eq!(plain.header("Content-Type"), media_type);

        let (_, rest) =
            path.strip_prefix("/console/").and_then(|rest| rest.split_once('/')).expect("a hash");
        let other = format!("/console/0123456789abcdef/{rest}");
        api.request_at_root("GET", &other).send().refused(404, "Not Found");
        api.request_at_root("GET", &format!("{path}.map")).send().refused(404, "Not Found");
    }
}

/// What `cloakroom config` shows as the link in mails.
fn reset_url(settings: &[(&str, &str)]) -> String {
    let unset = [("CLOAKROOM_PASSWORD_RESET_URL", "")];
    let text = run("postgres://localhost/unused", &["config"], &[&unset, settings].concat());
    let text = text.exits(0).out();
    let line = text.lines().find_map(|line| line.strip_prefix("CLOAKROOM_PASSWORD_RESET_URL="));
    line.expect("the setting").to_owned()
}

#[test]
fn links_in_mails_lead_to_the_console_where_its_url_is_known() {
    let public = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com/");
    let console = "https://files.example.com/console/reset#token={token}";
    let own = "https://example.com/?token={token}";
    assert_eq!(reset_url(&[public]), console);
    assert_eq!(reset_url(&[]), "");
    assert_eq!(reset_url(&[public, ("CLOAKROOM_CONSOLE", "off")]), "");
    assert_eq!(reset_url(&[public, ("CLOAKROOM_PASSWORD_RESET_URL", own)]), own);
}

#[test]
fn the_console_is_off_in_production_unless_it_is_switched_on() {
    let database = Database::create();
    let shown = |settings: &[(&str, &str)]| {
        let text = run(&database.url, &["config"], settings).exits(0).out();
        let line = text.lines().find_map(|line| line.strip_prefix("CLOAKROOM_CONSOLE="));
        line.expect("the setting").to_owned()
    };
    assert_eq!(shown(&[]), "on");
    assert_eq!(shown(&PRODUCTION), "off");
    assert_eq!(shown(&[&PRODUCTION[..], &[("CLOAKROOM_CONSOLE", "on")]].concat()), "on");
}
