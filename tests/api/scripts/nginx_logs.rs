//! What the sample site `scripts/nginx.conf` writes into nginx's logs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::nginx::{NAME, Nginx, sample};
use crate::harness::*;

/// Everything that an nginx has logged so far: its access log and its log of errors.
fn logged(nginx: &Nginx) -> [String; 2] {
    ["access.log", "log"]
        .map(|name| std::fs::read_to_string(nginx.process.directory.join(name)).expect("a log"))
}

#[test]
fn no_part_of_a_link_is_in_the_logs_of_the_sample() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "text");
    let link = api.new_link(&ann, &file);
    let token = link.strip_prefix("/api/v1/links/").expect("a path of a link");
    let nginx = Nginx::start(&api.address);
    let begin = |answer: (String, String)| answer.0.lines().next().unwrap_or_default().to_owned();
    assert_eq!(begin(nginx.get(&link)), "http/1.1 200 ok");
    let targets = [
        format!("{link}/"),
        format!("{link}?a={token}"),
        format!("/api/v1/%6cinks/{token}"),
        format!("//api/v1/links//{token}"),
        format!("/api/v1/links/{}", &token[..20]),
        format!("/api/v1/links%2F{}", &token[..20]),
        format!("/API/V1/LINKS/{}", &token[..20]),
        format!("/{token}"),
        format!("https://cloakroom.example{link}"),
        format!("{link}#x"),
        format!("{link}/{}", "x".repeat(40_000)),
    ];
    for target in &targets {
        nginx.get(target);
    }
    // Refused by nginx itself: a malformed header, and a body that is too large.
    let here = Ipv4Addr::LOCALHOST;
    nginx.ask_from(here, "GET", &link, b"no header\r\n\r\n");
    nginx.ask_from(here, "POST", &link, b"Content-Length: 12000000\r\n\r\n");
    nginx.ask_from(
        here,
        "GET",
        "/healthz",
        format!("Referer: https://cloakroom.example{link}\r\n\r\n").as_bytes(),
    );
    // Without TLS.
    let mut plain = TcpStream::connect(nginx.plain).expect("nginx accepts");
    let request = format!("GET {link} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
    plain.write_all(request.as_bytes()).expect("nginx reads");
    plain.read_to_string(&mut String::new()).expect("a redirection");
    // Another path, and errors of a service that is stopped.
    nginx.get("/api/v1/auth/me");
    drop(api);
    let encoded: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let stopped = [
        link.clone(),
        format!("/api/v1/%6Cinks/{token}"),
        format!("/{token}"),
        format!("/api/v1/link/{token}/x"),
        format!("/{encoded}"),
        format!("/links%252f{}", &token[..20]),
        "/healthz".to_owned(),
    ];
    for path in &stopped {
        assert_eq!(begin(nginx.get(path)), "http/1.1 502 bad gateway", "{path}");
    }
    let requests = targets.len() + 6 + stopped.len();
    wait_until(|| logged(&nginx)[0].lines().count() >= requests);
    let [access, errors] = logged(&nginx);
    for log in [&access, &errors] {
        assert!(!log.contains(&token[..20]) && !log.contains(&token[23..]), "{log}");
        assert!(!log.contains(&encoded), "{log}");
    }
    assert!(access.contains("\"GET /api/v1/links/(not-logged) HTTP/1.1\" 200 "), "{access}");
    assert!(access.contains("\"GET /api/v1/auth/me HTTP/1.1\" 401 "), "{access}");
    // Every site of the sample has the log that leaves them out, and not nginx's own.
    let count = |text: &str| sample().matches(text).count();
    assert_eq!(count("\nserver {"), count("    access_log /var/log/nginx/access.log cloakroom;\n"));
    // Errors of other paths are still logged whole.
    assert!(errors.contains("\"GET /healthz HTTP/1.1\""), "{errors}");
}

#[test]
fn request_lines_are_logged_but_for_tokens_and_the_values_of_queries() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let nginx = Nginx::start(&api.address);
    let token = "q8Jf0dYw-2LkTz7_RbXc5vNmHs3GpEa9UiVo1x4KtBy";
    let encoded: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let letters = "x".repeat(40);
    let id = UNKNOWN_ID;
    let cases = [
        ("GET", format!("/api/v1/users?{letters}"), "/api/v1/users?(not-logged)".to_owned()),
        ("GET", "/api/v1/users?email=ann".to_owned(), "/api/v1/users?(not-logged)".to_owned()),
        ("GET", format!("/api/v1/uploads#{letters}"), "/api/v1/uploads#(not-logged)".to_owned()),
        ("GET", "/a?b=/api/v1/links/c".to_owned(), "/a?(not-logged)".to_owned()),
        (&letters.to_ascii_uppercase(), "/healthz".to_owned(), "/healthz".to_owned()),
        ("GET", format!("/api/v1/links/{token}?a=b"), "/api/v1/links/(not-logged)".to_owned()),
        (
            "GET",
            format!("/api/v1/%6CINKS/{}", &token[..7]),
            "/api/v1/%6CINKS/(not-logged)".to_owned(),
        ),
        ("GET", format!("/links%252f{}", &token[..7]), "/links%252f(not-logged)".to_owned()),
        ("GET", format!("/links/{id}/{}", &token[..7]), "/links/(not-logged)".to_owned()),
        (
            "DELETE",
            format!("/api/v1/uploads/{id}/links/{id}"),
            format!("/api/v1/uploads/{id}/links/{id}"),
        ),
        ("GET", "/api/v1/links/".to_owned(), "/api/v1/links/".to_owned()),
        ("GET", format!("/a/{token}/b"), "/a/(not-logged)".to_owned()),
        ("GET", format!("/a/{encoded}"), "/a/(not-logged)".to_owned()),
    ];
    for (method, target, _) in &cases {
        nginx.ask_from(Ipv4Addr::LOCALHOST, method, target, b"\r\n");
    }
    // Some programs send a token as if it were a name.
    let named = BASE64_STANDARD.encode(format!("{token}:"));
    let named = format!("Authorization: Basic {named}\r\n\r\n");
    nginx.ask_from(Ipv4Addr::LOCALHOST, "GET", "/healthz", named.as_bytes());
    // Lines that nginx cannot read.
    let unreadable = [
        (token.to_owned(), "(not-logged)"),
        (format!("/{token}"), "/(not-logged)"),
        (format!("{token} HTTP/1.1"), "(not-logged) HTTP/1.1"),
        (format!("/api/v1/links/{}", &token[..7]), "/api/v1/links/(not-logged)"),
        ("/healthz".to_owned(), "/healthz"),
    ];
    for (line, _) in &unreadable {
        let mut stream = nginx.begin_tls(nginx.connect_from(Ipv4Addr::LOCALHOST));
        stream.write_all(format!("{line}\r\n\r\n").as_bytes()).expect("nginx reads");
        stream.read_to_end(&mut Vec::new()).expect("an answer");
    }
    let requests = cases.len() + 1 + unreadable.len();
    wait_until(|| logged(&nginx)[0].lines().count() >= requests);
    let [access, _] = logged(&nginx);
    let lines: Vec<&str> = access.lines().filter_map(|line| line.split('"').nth(1)).collect();
    for ((method, target, expected), line) in cases.iter().zip(&lines) {
        assert_eq!(*line, format!("{method} {expected} HTTP/1.1"), "{target}");
    }
    for ((_, expected), line) in unreadable.iter().zip(&lines[cases.len() + 1..]) {
        assert_eq!(line, expected);
    }
    assert!(!access.contains(token), "{access}");
}
