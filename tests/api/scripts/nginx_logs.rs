//! What the sample site `scripts/nginx.conf` writes into nginx's logs.

use std::io::{Read, Write};
use std::net::Ipv4Addr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::nginx::{NAME, Nginx, sample};
use crate::harness::*;

/// The lines of nginx's access log so far.
fn access_log(nginx: &Nginx) -> Vec<String> {
    let text = std::fs::read_to_string(nginx.process.directory.join("access.log"));
    text.expect("a log").lines().map(str::to_owned).collect()
}

/// Sends requests whose headers have the token, as some programs send it as a name, some that nginx itself refuses, and
/// one without TLS. Returns their number.
fn name_the_link_elsewhere(nginx: &Nginx, link: &str, token: &str) -> usize {
    let named = BASE64_STANDARD.encode(format!("{token}:"));
    let requests = [
        ("/healthz", format!("Authorization: Basic {named}")),
        ("/healthz", format!("Referer: https://{NAME}{link}")),
        (link, "no header".to_owned()),
        (link, "Content-Length: 12000000".to_owned()),
        (&*format!("{link}/{}", "x".repeat(40_000)), "A: b".to_owned()),
    ];
    for (target, header) in &requests {
        let rest = format!("{header}\r\n\r\n");
        nginx.ask_from(Ipv4Addr::LOCALHOST, "POST", target, rest.as_bytes());
    }
    nginx.ask_without_tls(&format!("GET {link}"), NAME);
    requests.len() + 1
}

/// Sends requests that nginx logs as errors, because there is no service. Returns their number.
fn ask_a_service_that_is_stopped(nginx: &Nginx, link: &str, token: &str, encoded: &str) -> usize {
    let targets = [
        link,
        &format!("/api/v1/%6Cinks/{token}"),
        &format!("/{token}"),
        &format!("/api/v1/link/{token}/x"),
        &format!("/{encoded}"),
        &format!("/links%252f{}", &token[..20]),
        "/healthz",
    ];
    for target in targets {
        assert!(nginx.get(target).0.starts_with("http/1.1 502 bad gateway\r\n"), "{target}");
    }
    targets.len()
}

#[test]
fn requests_are_logged_but_for_the_tokens_of_links_and_the_values_of_queries() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")], ["ann"]);
    let link = api.new_link(&ann, &api.new_file(&ann, "a.txt", "text"));
    let token = link.strip_prefix("/api/v1/links/").expect("a path of a link");
    let encoded: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let [half, few] = [20, 7].map(|length| &token[..length]);
    let (letters, id) = ("X".repeat(40), UNKNOWN_ID);
    let of_upload = format!("/api/v1/uploads/{id}/links/{id}");
    let nginx = Nginx::start(&api.address);
    let here = Ipv4Addr::LOCALHOST;
    let hidden = "/api/v1/links/(not-logged)";
    // The method and the target of a request, and what is logged of the target.
    let cases = [
        ("GET", link.clone(), hidden),
        ("GET", format!("{link}/"), hidden),
        ("GET", format!("{link}?a={token}"), hidden),
        ("GET", format!("{link}#x"), hidden),
        ("GET", format!("/api/v1/links/{half}"), hidden),
        ("GET", format!("/api/v1/%6cinks/{token}"), "/api/v1/%6cinks/(not-logged)"),
        ("GET", format!("/api/v1/%6CINKS/{few}"), "/api/v1/%6CINKS/(not-logged)"),
        ("GET", format!("//api/v1/links//{token}"), "//api/v1/links/(not-logged)"),
        ("GET", format!("/api/v1/links%2F{half}"), "/api/v1/links%2F(not-logged)"),
        ("GET", format!("/links%252f{few}"), "/links%252f(not-logged)"),
        ("GET", format!("/API/V1/LINKS/{half}"), "/API/V1/LINKS/(not-logged)"),
        ("GET", format!("https://{NAME}{link}"), &*format!("https://{NAME}{hidden}")),
        ("GET", format!("/links/{id}/{few}"), "/links/(not-logged)"),
        ("GET", format!("/{token}"), "/(not-logged)"),
        ("GET", format!("/a/{token}/b"), "/a/(not-logged)"),
        ("GET", format!("/a/{encoded}"), "/a/(not-logged)"),
        ("GET", format!("/api/v1/users?{letters}"), "/api/v1/users?(not-logged)"),
        ("GET", "/api/v1/users?email=ann".to_owned(), "/api/v1/users?(not-logged)"),
        ("GET", format!("/api/v1/uploads#{letters}"), "/api/v1/uploads#(not-logged)"),
        ("GET", "/a?b=/api/v1/links/c".to_owned(), "/a?(not-logged)"),
        ("GET", "/api/v1/auth/me".to_owned(), "/api/v1/auth/me"),
        ("GET", "/api/v1/links/".to_owned(), "/api/v1/links/"),
        ("DELETE", of_upload.clone(), &of_upload),
        (&letters, "/healthz".to_owned(), "/healthz"),
    ];
    for (method, target, _) in &cases {
        nginx.ask_from(here, method, target, b"\r\n");
    }
    // Lines that nginx cannot read.
    let unreadable = [
        (token.to_owned(), "(not-logged)"),
        (format!("/{token}"), "/(not-logged)"),
        (format!("{token} HTTP/1.1"), "(not-logged) HTTP/1.1"),
        (format!("/api/v1/links/{few}"), hidden),
        ("/healthz".to_owned(), "/healthz"),
    ];
    for (line, _) in &unreadable {
        let mut stream = nginx.begin_tls(nginx.connect_from(here));
        stream.write_all(format!("{line}\r\n\r\n").as_bytes()).expect("nginx reads");
        stream.read_to_end(&mut Vec::new()).expect("an answer");
    }
    let others = name_the_link_elsewhere(&nginx, &link, token);
    drop(api);
    let stopped = ask_a_service_that_is_stopped(&nginx, &link, token, &encoded);
    let requests = cases.len() + unreadable.len() + others + stopped;
    let access = eventually(|| Some(access_log(&nginx)).filter(|lines| lines.len() >= requests));
    let mut logged = access.iter().filter_map(|line| line.split('"').nth(1));
    for (method, target, expected) in &cases {
        assert_eq!(logged.next(), Some(&*format!("{method} {expected} HTTP/1.1")), "{target}");
    }
    for (line, expected) in &unreadable {
        assert_eq!(logged.next(), Some(*expected), "{line}");
    }
    assert!(access[0].contains("\" 200 ") && access[20].contains("\" 401 "), "{access:#?}");
    let errors = std::fs::read_to_string(nginx.process.directory.join("log")).expect("a log");
    for log in [&access.concat(), &errors] {
        let shown = [half, &token[23..], &encoded].into_iter().find(|part| log.contains(*part));
        assert_eq!(shown, None, "{log}");
    }
    // Errors of other paths are still logged whole.
    assert!(errors.contains("\"GET /healthz HTTP/1.1\""), "{errors}");
    // Every site of the sample has the log that leaves them out, and not nginx's own.
    let count = |text: &str| sample().matches(text).count();
    assert_eq!(count("\nserver {"), count("    access_log /var/log/nginx/access.log cloakroom;\n"));
}
