//! The pages that show the description of the API, and what they load.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::*;

/// Everything outside `/api/v1` that belongs to the pages: path, and media type.
const FILES: [(&str, &str); 8] = [
    ("/docs", "text/html"),
    ("/docs/start.js", "text/javascript"),
    ("/docs/style.css", "text/css"),
    ("/docs/swagger-ui.js", "text/javascript"),
    ("/docs/swagger-ui.css", "text/css"),
    ("/docs/licenses.txt", "text/plain"),
    ("/redoc", "text/html"),
    ("/redoc/redoc.js", "text/javascript"),
];

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

/// The values of an attribute in a page.
fn values_of<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    page.split(&begin).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn pages_and_what_they_load_are_there_for_everyone() {
    // All that could refuse an ordinary request: a key for every endpoint, and a limit of one request a minute.
    let api = Server::start(&[
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY", "0123456789abcdef"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "1"),
    ]);
    for (path, media_type) in FILES {
        let answer = api.request_at_root("GET", path).by("no token").send().expect(200);
        assert_eq!(answer.header("Content-Type"), format!("{media_type}; charset=utf-8"));
        assert_eq!(answer.header("Cache-Control"), "no-cache");
        assert!(!answer.has_header("X-RateLimit-Limit"), "{answer:?}");
        let length = answer.bytes.len().to_string();

        let slash = api.request_at_root("GET", &format!("{path}/")).send().expect(200);
        assert!(slash.bytes == answer.bytes, "{path}");
        let head = api.request_at_root("HEAD", path).send().expect(200);
        assert_eq!((head.header("Content-Length"), head.bytes.len()), (length.as_str(), 0));
        let post = api.request_at_root("POST", path).send().refused(405, "Method Not Allowed");
        assert_eq!(post.header("Allow"), "GET, HEAD");
    }
    api.request_at_root("GET", "/docs/unknown.js").send().refused(404, "Not Found");
}

#[test]
fn pages_may_load_and_run_only_what_this_service_sends() {
    let api = Server::start(&[]);
    for path in ["/docs", "/redoc"] {
        let page = api.request_at_root("GET", path).send().expect(200);
        let policy: Vec<_> = page.header("Content-Security-Policy").split("; ").collect();
        for directive in [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(&directive), "{directive} is not in {policy:?}");
        }
        let others = policy
            .iter()
            .filter(|text| text.contains('*') || text.contains('.') || text.contains("//"));
        assert_eq!(others.count(), 0, "{policy:?}");

        let text = page.text();
        let named: Vec<_> =
            ["src", "href", "spec-url"].iter().flat_map(|name| values_of(&text, name)).collect();
        assert!(named.len() > 2, "{text}");
        for url in named.into_iter().filter(|url| !url.starts_with("data:")) {
            assert!(url.starts_with('/') && !url.starts_with("//"), "{url}");
            api.request_at_root("GET", url).send().expect(200);
        }
        // The policy allows no script inside a page.
        assert_eq!(text.matches("<script").count(), values_of(&text, "src").len(), "{text}");
    }
}

#[test]
fn bundles_are_complete_and_name_nothing_that_a_browser_would_load() {
    let api = Server::start(&[]);
    let text = |path: &str| content(&api.request_at_root("GET", path).send().expect(200));
    for (path, known, length) in [
        ("/docs/swagger-ui.js", "SwaggerUIBundle", 1_700_000),
        ("/docs/swagger-ui.css", ".swagger-ui .opblock", 180_000),
        ("/redoc/redoc.js", "spec-url", 1_100_000),
        ("/docs/licenses.txt", "Permission is hereby granted", 20_000),
    ] {
        let text = text(path);
        assert!(text.len() > length && text.contains(known), "{path}: {}", text.len());
        // ReDoc would load its logo from there, and developer tools would load a source map that has a name.
        assert!(!text.contains("cdn.redoc.ly"), "{path}");
        for map in text.split("sourceMappingURL=").skip(1) {
            assert!(map.starts_with("data:"), "{path}: {map:.60}");
        }
    }
    for path in ["/docs/swagger-ui.css", "/docs/style.css"] {
        let text = text(path);
        assert!(!text.contains("@import"), "{path}");
        for url in text.split("url(").skip(1) {
            assert!(url.trim_start_matches(['"', '\'']).starts_with("data:"), "{path}: {url:.60}");
        }
    }
}

#[test]
fn bundles_are_sent_compressed_and_again_only_after_they_changed() {
    let api = Server::start(&[]);
    let paths = ["/docs/swagger-ui.js", "/docs/swagger-ui.css", "/redoc/redoc.js"];
    let tags = paths.map(|path| {
        let get = |name: &str, value: &str| {
            api.request_at_root("GET", path).header(name, value).send().case(value)
        };
        let whole = get("Accept-Encoding", "gzip, br").expect(200);
        assert_eq!(whole.header("Content-Encoding"), "gzip");
        // A client that takes no gzip gets it nevertheless.
        assert_eq!(get("Accept-Encoding", "identity").header("Content-Encoding"), "gzip");
        let tag = whole.header("ETag").to_owned();
        assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
        for known in [&tag, "*", &format!("\"x\", W/{tag}")] {
            let answer = get("If-None-Match", known).expect(304);
            assert_eq!((answer.header("ETag"), answer.bytes.len()), (tag.as_str(), 0));
            assert_eq!(answer.header("Cache-Control"), "no-cache");
        }
        for other in ["\"x\"", tag.trim_matches('"'), ""] {
            assert!(get("If-None-Match", other).expect(200).bytes == whole.bytes);
        }
        tag
    });
    assert!(tags[0] != tags[1] && tags[1] != tags[2], "{tags:?}");
}

#[test]
fn the_document_is_compressed_for_clients_that_take_it() {
    let api = Server::start(&[]);
    let get = |lists: &[&str]| {
        let request = api.request_at_root("GET", "/openapi.json");
        let add = |request: Request, list: &&str| request.header("Accept-Encoding", list);
        let answer = lists.iter().fold(request, add).send().case(lists.join(" and ")).expect(200);
        assert_eq!(answer.header("Vary"), "Accept-Encoding");
        answer
    };
    let plain = get(&[]);
    for lists in [
        &["gzip"][..],
        &["GZIP ; Q=0.001"],
        &["br, gzip;q=0.8, *;q=0.1"],
        &["*"],
        &["br", "deflate,gzip"],
        &["gzip, identity;q=0.5"],
        &["identity;q=0, *;q=0.2"],
    ] {
        let answer = get(lists);
        assert_eq!(answer.header("Content-Encoding"), "gzip", "{lists:?}");
        assert_eq!(content(&answer), plain.text());
        let (short, long) = (answer.bytes.len(), plain.bytes.len());
        assert!(short < long / 5, "{short} of {long} bytes");
    }
    for lists in [
        &[""][..],
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
    ] {
        let answer = get(lists);
        assert!(!answer.has_header("Content-Encoding"), "{lists:?}");
        assert!(answer.bytes == plain.bytes, "{lists:?}");
    }
}

#[test]
fn each_form_of_the_document_has_a_tag_of_its_own() {
    let api = Server::start(&[]);
    let ask = |method: &str, encoding: &str, tag: &str| {
        let request = api.request_at_root(method, "/openapi.json");
        request.header("Accept-Encoding", encoding).header("If-None-Match", tag).send()
    };
    let tags = ["identity", "gzip"].map(|encoding| {
        let whole = ask("GET", encoding, "\"x\"").expect(200);
        assert_eq!(whole.header("Cache-Control"), "no-cache");
        let head = ask("HEAD", encoding, "\"x\"").expect(200);
        for name in ["Content-Length", "Content-Type", "ETag", "Vary"] {
            assert_eq!(head.header(name), whole.header(name), "{encoding} {name}");
        }
        assert_eq!(head.header("Content-Length"), whole.bytes.len().to_string());
        whole.header("ETag").to_owned()
    });
    for (encoding, known, other) in [("identity", &tags[0], &tags[1]), ("gzip", &tags[1], &tags[0])]
    {
        for method in ["GET", "HEAD"] {
            let answer = ask(method, encoding, known).expect(304);
            assert_eq!((answer.header("ETag"), answer.bytes.len()), (known.as_str(), 0));
            assert_eq!(answer.header("Vary"), "Accept-Encoding");
            assert!(!answer.has_header("Content-Encoding"), "{answer:?}");
            ask(method, encoding, other).expect(200);
        }
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

#[test]
fn documents_that_nobody_reads_share_their_memory() {
    let api = Server::start(&[]);
    let length = api.request_at_root("GET", "/openapi.json").send().expect(200).bytes.len() as u64;
    let before = api.peak_memory();
    let mut slow: Vec<_> = (0..100).map(|_| RawConnection::open(&api.address)).collect();
    for connection in &mut slow {
        connection.send("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    slow.iter_mut().for_each(|connection| assert!(connection.head().is_ok()));
    let grown = api.peak_growth(before);
    assert!(grown < 50 * length, "grew by {grown} bytes for 100 times {length}");
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
