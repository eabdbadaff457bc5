//! The pages for people, which are the console and those about the API, and what they load. `scripts/test-console` and
//! `scripts/test-docs` use them in a browser.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::*;

/// What is outside `/api/v1` for browsers, but for the files of the console, whose paths have a hash: path, and media
/// type.
pub const FILES: [(&str, &str); 12] = [
    ("/console", "text/html; charset=utf-8"),
    ("/console/files", "text/html; charset=utf-8"),
    ("/console/link", "text/html; charset=utf-8"),
    ("/docs", "text/html; charset=utf-8"),
    ("/docs/start.js", "text/javascript; charset=utf-8"),
    ("/docs/style.css", "text/css; charset=utf-8"),
    ("/docs/swagger-ui.js", "text/javascript; charset=utf-8"),
    ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
    ("/docs/licenses.txt", "text/plain; charset=utf-8"),
    ("/redoc", "text/html; charset=utf-8"),
    ("/redoc/redoc.js", "text/javascript; charset=utf-8"),
    ("/openapi.json", "application/json"),
];
/// The files of which there is only a compressed form.
const BUNDLES: [&str; 3] = ["/docs/swagger-ui.js", "/docs/swagger-ui.css", "/redoc/redoc.js"];

fn get(api: &Server, path: &str) -> Answer {
    api.request_at_root("GET", path).send().expect(200)
}

/// The values of an attribute in a page.
fn values_of<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    page.split(&begin).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// The paths of all files, also of those that the console loads first, and their media types.
fn all_files(api: &Server) -> Vec<(String, &'static str)> {
    let page = get(api, "/console").text();
    let loaded = ["src", "href"].into_iter().flat_map(|name| values_of(&page, name));
    // The brand is a link to the page itself.
    let of_console =
        loaded.filter(|path| *path != "/console").map(|path| match path.rsplit('.').next() {
            Some("js") => (path.to_owned(), "text/javascript; charset=utf-8"),
            Some("css") => (path.to_owned(), "text/css; charset=utf-8"),
            Some("svg") => (path.to_owned(), "image/svg+xml"),
            other => panic!("{other:?}"),
        });
    let others = FILES.map(|(path, media_type)| (path.to_owned(), media_type));
    of_console.chain(others).collect()
}

/// The text of an answer, uncompressed by the program `gzip`.
fn content(answer: &Answer) -> String {
    if !answer.has_header("Content-Encoding") {
        return answer.text();
    }
    assert_eq!(answer.header("Content-Encoding"), "gzip");
    let mut gzip = Command::new("gzip");
    let mut process = gzip.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(&answer.bytes).unwrap());
        process.wait_with_output().unwrap()
    });
    output.exits(0).out()
}

#[test]
fn files_are_there_by_each_spelling_of_their_paths_and_only_to_be_read() {
    let api = Server::start(&[]);
    let of_console = [
        "/console/files?search=a",
        "/console/users/11d8d66a-4d13-4a2e-8da9-fdfeee782a50/",
        "/console/../console",
        "/console/%2e%2e/%00/a/b/c",
        "/%63onsole/account",
    ];
    for (path, _) in all_files(&api) {
        let whole = get(&api, &path);
        let slash = format!("{path}/");
        let others = of_console.into_iter().filter(|_| path == "/console/files");
        for spelling in others.chain([&*slash]) {
            let answer = get(&api, spelling);
            assert!(answer.bytes == whole.bytes, "{spelling}");
            let head = api.request_at_root("HEAD", spelling).send().expect(200);
            for name in ["Cache-Control", "Content-Length", "Content-Type", "ETag"] {
                assert_eq!(answer.header(name), whole.header(name), "{spelling}");
                assert_eq!(head.header(name), whole.header(name), "{spelling}");
            }
            let post =
                api.request_at_root("POST", spelling).send().refused(405, "Method Not Allowed");
            assert_eq!(post.header("Allow"), "GET, HEAD");
        }
    }
    // Files of another version, and others that are not there.
    let other = "/console/0123456789abcdef/main.js";
    for unknown in [other, "/docs/unknown.js", "/consoles"] {
        api.request_at_root("GET", unknown).send().refused(404, "Not Found");
    }
}

#[test]
fn each_form_of_a_file_has_a_tag_by_which_it_is_sent_again_only_after_it_changed() {
    let api = Server::start(&[]);
    let mut tags = BTreeSet::new();
    for (path, media_type) in all_files(&api) {
        let ask = |method: &str, encoding: &str, tag: &str| {
            let request = api.request_at_root(method, &path).header("Accept-Encoding", encoding);
            request.header("If-None-Match", tag).send().case(format_args!("{encoding} {tag}"))
        };
        // Other versions of the console have other paths for its files.
        let cache = match path.starts_with("/console/") && !media_type.starts_with("text/html") {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        let forms = ["identity", "gzip, br"].map(|encoding| {
            let [whole, head] =
                ["GET", "HEAD"].map(|method| ask(method, encoding, "\"x\"").expect(200));
            for (name, value) in [
                ("Content-Type", media_type),
                ("Content-Length", &whole.bytes.len().to_string()),
                ("Cache-Control", cache),
                ("Vary", "Accept-Encoding"),
                ("X-Content-Type-Options", "nosniff"),
                ("ETag", whole.header("ETag")),
            ] {
                assert_eq!((whole.header(name), head.header(name)), (value, value), "{path}");
            }
            assert_eq!(head.bytes.len(), 0);
            whole
        });
        let [plain, gzip] = &forms;
        // A client that takes no gzip gets a bundle so nevertheless.
        let is_bundle = BUNDLES.contains(&&*path);
        assert_eq!(plain.has_header("Content-Encoding"), is_bundle, "{path}");
        assert_eq!(gzip.header("Content-Encoding"), "gzip");
        assert!(is_bundle || gzip.bytes.len() < plain.bytes.len(), "{path}");
        for (encoding, whole, other) in [("identity", plain, gzip), ("gzip", gzip, plain)] {
            let tag = whole.header("ETag");
            assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
            for (method, known) in
                [("GET", tag), ("HEAD", tag), ("GET", "*"), ("GET", &format!("\"x\", W/{tag}"))]
            {
                let answer = ask(method, encoding, known).expect(304);
                assert_eq!((answer.header("ETag"), answer.bytes.len()), (tag, 0));
                assert_eq!(
                    (answer.header("Cache-Control"), answer.header("Vary")),
                    (cache, "Accept-Encoding")
                );
                assert!(!answer.has_header("Content-Encoding"), "{answer:?}");
            }
            let of_other = Some(other.header("ETag")).filter(|_| !is_bundle);
            for unknown in [tag.trim_matches('"'), ""].into_iter().chain(of_other) {
                assert!(ask("GET", encoding, unknown).expect(200).bytes == whole.bytes);
                ask("HEAD", encoding, unknown).expect(200);
            }
            assert!(tags.insert(tag.to_owned()) || is_bundle, "{path}");
        }
    }
}

#[test]
fn pages_may_load_and_run_only_what_this_service_sends() {
    let api = Server::start(&[]);
    for path in ["/docs", "/redoc", "/console"] {
        let page = get(&api, path);
        let policy: Vec<_> = page.header("Content-Security-Policy").split("; ").collect();
        let of_all = [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ];
        let of_console = [
            "style-src 'self'",
            "img-src 'self' data:",
            "media-src 'self'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ];
        let text = page.text();
        let mut expected = of_all.to_vec();
        // The policy allows no script inside a page, nor a style inside the console.
        let mut scripts = values_of(&text, "src").len();
        if path == "/console" {
            expected.extend(of_console);
            assert_eq!(policy.len(), expected.len(), "{policy:?}");
            assert_eq!(page.header("Cross-Origin-Opener-Policy"), "same-origin");
            assert!(!["style=", "<style", "://"].iter().any(|word| text.contains(word)), "{text}");
            scripts += text.matches("<script type=\"application/json\"").count();
        }
        assert!(expected.iter().all(|directive| policy.contains(directive)), "{policy:?}");
        assert!(!["*", ".", "//"].iter().any(|word| policy.join(" ").contains(word)), "{policy:?}");
        assert_eq!(text.matches("<script").count(), scripts, "{text}");
        let named = ["src", "href", "spec-url"].map(|name| values_of(&text, name)).concat();
        assert!(named.len() > 2, "{text}");
        for url in named.into_iter().filter(|url| !url.starts_with("data:")) {
            assert!(url.starts_with('/') && !url.starts_with("//"), "{url}");
            assert!(path != "/console" || url.starts_with("/console"), "{url}");
            get(&api, url);
        }
    }
}

#[test]
fn bundles_are_complete_and_name_nothing_that_a_browser_would_load() {
    let api = Server::start(&[]);
    for (path, known, length) in [
        ("/docs/swagger-ui.js", "SwaggerUIBundle", 1_700_000),
        ("/docs/swagger-ui.css", ".swagger-ui .opblock", 180_000),
        ("/docs/style.css", "", 0),
        ("/redoc/redoc.js", "spec-url", 1_100_000),
        ("/docs/licenses.txt", "Permission is hereby granted", 20_000),
    ] {
        let text = content(&get(&api, path));
        assert!(text.len() > length && text.contains(known), "{path}: {}", text.len());
        // ReDoc would load its logo from there, and developer tools would load a source map that has a name.
        assert!(!text.contains("cdn.redoc.ly"), "{path}");
        for map in text.split("sourceMappingURL=").skip(1) {
            assert!(map.starts_with("data:"), "{path}: {map:.60}");
        }
        let is_style = path.ends_with(".css");
        assert!(!is_style || !text.contains("@import"), "{path}");
        for url in text.split("url(").skip(1).filter(|_| is_style) {
            assert!(url.trim_start_matches(['"', '\'']).starts_with("data:"), "{path}: {url:.60}");
        }
    }
}

#[test]
fn the_document_is_compressed_for_clients_that_take_it() {
    let api = Server::start(&[]);
    let plain = get(&api, "/openapi.json");
    let gzip = [
        &["gzip"][..],
        &["GZIP ; Q=0.001"],
        &["br, gzip;q=0.8, *;q=0.1"],
        &["*"],
        &["br", "deflate,gzip"],
        &["gzip, identity;q=0.5"],
        &["identity;q=0, *;q=0.2"],
    ];
    let identity = [
        &[][..],
        &[""],
        &["identity"],
        &["br, deflate"],
        &["gzip;q=0"],
        &["gzip;q=0.000, *"],
        &["*;q=0"],
        &["identity, gzip;q=0.5"],
        &["gzip;q=0.5, *"],
        &["gzip;q=much"],
        &["gzip;q=NaN"],
        &["gzip;q=-1"],
        &["gzipped"],
    ];
    let all =
        gzip.iter().map(|lists| (lists, true)).chain(identity.iter().map(|lists| (lists, false)));
    for (lists, is_compressed) in all {
        let request = api.request_at_root("GET", "/openapi.json");
        let request = lists.iter().fold(request, |all, list| all.header("Accept-Encoding", list));
        let answer = request.send().expect(200);
        assert_eq!(answer.header("Vary"), "Accept-Encoding");
        assert_eq!(answer.has_header("Content-Encoding"), is_compressed, "{lists:?}");
        assert!(content(&answer).as_bytes() == plain.bytes, "{lists:?}");
        let (sent, whole) = (answer.bytes.len(), plain.bytes.len());
        assert!(!is_compressed || sent < whole / 5, "{sent} of {whole} bytes");
    }
}

#[test]
fn the_document_costs_little_more_than_a_probe_once_it_is_made() {
    let api = Server::start(&[]);
    let cost = |path: &str| {
        let mut connection = RawConnection::open(&api.address);
        let mut ask = || {
            connection.send(format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
            assert!(connection.head().expect("a head").starts_with("HTTP/1.1 200 OK\r\n"));
        };
        ask();
        let begin = api.cpu_ticks();
        (0..1000).for_each(|_| ask());
        api.cpu_ticks() - begin
    };
    let (probe, document) = (cost("/healthz"), cost("/openapi.json"));
    assert!(document <= 2 * probe + 5, "{document} ticks, a probe {probe}");
}

/// Compared with answers that have almost no content, because threads and connections take memory too.
#[test]
fn documents_that_nobody_reads_share_their_memory() {
    let growth = |path: &str| {
        let api = Server::start(&[]);
        let length = get(&api, "/openapi.json").bytes.len() as u64;
        let before = api.peak_memory();
        let mut slow: Vec<_> = (0..100).map(|_| RawConnection::open(&api.address)).collect();
        for connection in &mut slow {
            connection.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        }
        slow.iter_mut().for_each(|connection| assert!(connection.head().is_ok()));
        (api.peak_growth(before), length)
    };
    let ((probes, _), (documents, length)) = (growth("/healthz"), growth("/openapi.json"));
    assert!(
        documents < probes + 75 * length,
        "{documents} and {probes} bytes for 100 times {length}"
    );
}

#[test]
fn the_root_leads_browsers_to_a_page_and_is_unknown_to_others() {
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (setting, page) in [("CLOAKROOM_CONSOLE", "/docs"), ("CLOAKROOM_DOCS", "/console")] {
        let api = Server::start(&[(setting, "off")]);
        let get = |method: &str, accept: &[&str]| {
            let request = api.request_at_root(method, "/");
            let request = accept.iter().fold(request, |all, list| all.header("Accept", list));
            request.send().case(format_args!("{method} {accept:?}"))
        };
        for accept in [&[browser][..], &["TEXT/HTML;level=1"], &["image/png", "*/*, text/html"]] {
            for method in ["GET", "HEAD"] {
                let answer = get(method, accept).expect(303);
                assert_eq!((answer.header("Location"), answer.header("Vary")), (page, "Accept"));
            }
        }
        let head = "GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n";
        let (_, answer) = ask(&api.address, head);
        assert!(answer.head.starts_with("HTTP/1.1 303 See Other\r\n"), "{answer:?}");
        for accept in [&[][..], &["*/*"], &["application/json"], &["text/htmlx"], &["text/*"]] {
            get("GET", accept).refused(404, "Not Found");
        }
    }
}

#[test]
fn the_console_says_what_the_service_offers_and_takes() {
    let api = Server::start(&[
        ("CLOAKROOM_REGISTRATION", "off"),
        ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "text/csv,image/png"),
        ("CLOAKROOM_MAX_UPLOAD_SIZE", "1000"),
    ]);
    let page = get(&api, "/console").text();
    let (_, rest) =
        page.split_once("<script type=\"application/json\" id=\"service\">").expect("data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    let expected = json!({
        "registration": false,
        "passwordResets": true,
        "emailConfirmation": false,
        "publicList": false,
        "types": ["text/csv", "image/png"],
        "spellings": ["text/csv", "application/csv", "text/comma-separated-values", "text/x-comma-separated-values",
                      "text/x-csv", "image/png", "image/x-png"],
        "fileBytes": 1000,
        "userBytes": 1 << 30,
        "userFiles": 100_000,
        "trashDays": 7,
        "provider": null,
    });
    assert_eq!(serde_json::from_str::<Value>(data).expect("JSON"), expected);
}

/// In production the console is off unless it is switched on. Links in mails lead to it where its URL is known.
#[test]
fn settings_of_the_console_follow_from_others() {
    const CONSOLE: &str = "CLOAKROOM_CONSOLE";
    const RESET: &str = "CLOAKROOM_PASSWORD_RESET_URL";
    let public = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com/");
    let own = "https://example.com/?token={token}";
    for (settings, name, value) in [
        (&[][..], CONSOLE, "on"),
        (&PRODUCTION, CONSOLE, "off"),
        (&[&PRODUCTION[..], &[(CONSOLE, "on")]].concat(), CONSOLE, "on"),
        (&[public], RESET, "https://files.example.com/console/reset#token={token}"),
        (&[], RESET, ""),
        (&[public, (CONSOLE, "off")], RESET, ""),
        (&[public, (RESET, own)], RESET, own),
    ] {
        let text = run("postgres://localhost/unused", &["config"], settings).exits(0).out();
        let line = format!("{name}={value}");
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
}
