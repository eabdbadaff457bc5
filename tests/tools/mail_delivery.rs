//! Sending mail: the dialogue with the mail server, and the message, as `send-test-mail` shows and sends them.

use std::process::Output;
use std::time::{Duration, Instant};

use crate::harness::*;

const USER: (&str, &str) = ("ann@example.com", "s3cret: 100% @/\u{e9}");

/// Sends a test message to Bo through the server at `url`.
fn send(url: &str, more: &[(&str, &str)]) -> Output {
    send_to("bo@example.com", url, more)
}

fn send_to(address: &str, url: &str, more: &[(&str, &str)]) -> Output {
    let settings = [&mail_settings(url)[..], more].concat();
    run(NOWHERE, &["send-test-mail", "--to", address], &settings)
}

/// Expects that nothing was sent, and this text in the error.
#[track_caller]
fn expect_failure(output: Output, text: &str) -> Output {
    let output = output.exits(1).reports(text);
    assert!(output.err().starts_with("cloakroom: not sent: "), "{}", output.err());
    output
}

#[test]
fn a_message_is_delivered_and_the_dialogue_is_shown() {
    let server = SmtpServer::start(SmtpOptions::default());
    let output = send(&server.url(), &[]).exits(0);
    let mail = &server.wait_for(1)[0];
    assert_eq!((&*mail.sender, &*mail.recipient), ("noreply@example.org", "bo@example.com"));
    assert_eq!(mail.parameters, "");
    let name = &mail.client;
    assert!(name == "[127.0.0.1]" || name == "[IPv6:::1]" || name.contains('.'), "{name}");
    let shown = output.out();
    let expected = [
        &format!("Sending a test message through {}", server.url()),
        &format!("* connecting to {}", server.port.address),
        "< 220 test ESMTP",
        &format!("> EHLO {name}"),
        "< 250-test greets you",
        "< 250-SIZE 1000000",
        "< 250-8BITMIME",
        "< 250 SMTPUTF8",
        "> MAIL FROM:<noreply@example.org>",
        "< 250 2.1.0 ok",
        "> RCPT TO:<bo@example.com>",
        "< 250 2.1.5 ok",
        "> DATA",
        "< 354 go ahead",
        &format!("* the message, {} bytes", mail.raw.len()),
        "< 250 2.0.0 taken",
        "> QUIT",
        "< 221 2.0.0 bye",
    ];
    // `localhost` may have an IPv6 address as well, which is tried first and refuses.
    let lines: Vec<_> = shown.lines().filter(|line| !line.contains("[::1]")).collect();
    let lines: Vec<_> = lines.iter().filter(|line| !line.contains("refused")).collect();
    let (last, lines) = lines.split_last().unwrap();
    assert_eq!(lines, &expected.iter().collect::<Vec<_>>(), "{shown}");
    assert!(last.starts_with("The mail server has taken the message."), "{last}");
    assert_eq!(output.err(), "");
}

#[test]
fn the_message_has_the_right_headers_and_a_readable_text() {
    let server = SmtpServer::start(SmtpOptions::default());
    send(&server.url(), &[]).exits(0);
    let mail = &server.wait_for(1)[0];
    assert_eq!(mail.subject(), "Test message from Cloakroom");
    assert_eq!(mail.from(), ("Cloakroom".to_owned(), "noreply@example.org".to_owned()));
    assert_eq!(mail.to(), (String::new(), "bo@example.com".to_owned()));
    assert_eq!(mail.header("Auto-Submitted"), "auto-generated");
    assert_eq!(mail.header("MIME-Version"), "1.0");
    let id = mail.header("Message-ID");
    assert!(id.starts_with('<') && id.ends_with("@example.org>") && id.len() > 40, "{id}");
    let date = mail.parsed().date().unwrap().to_timestamp();
    assert!((date - now() as i64).abs() < 600, "{date}");
    assert!(mail.text().contains("this is the test message"), "{}", mail.text());
    assert!(mail.header("Content-Type").starts_with("text/plain"), "{mail:?}");
    let parsed = mail.parsed();
    let mut names: Vec<_> = parsed.headers_raw().map(|(name, _)| name).collect();
    names.sort();
    let expected = "Auto-Submitted Content-Transfer-Encoding Content-Type Date From MIME-Version Message-ID Subject To";
    assert_eq!(names.join(" "), expected);
    assert!(mail.raw.is_ascii() && mail.raw.split(|b| *b == b'\n').all(|line| line.len() < 998));
    // Each message has an id of its own.
    send(&server.url(), &[]).exits(0);
    assert_ne!(server.wait_for(2)[1].header("Message-ID"), id);
}

#[test]
fn the_user_and_the_password_of_the_url_are_decoded_and_never_shown() {
    for (mechanisms, shown) in [
        ("LOGIN PLAIN", &["> AUTH PLAIN (not shown)"][..]),
        ("LOGIN", &["> AUTH LOGIN", "> (user, not shown)", "> (password, not shown)"]),
    ] {
        let options = SmtpOptions { user: Some(USER), mechanisms, ..SmtpOptions::default() };
        let server = SmtpServer::start(options);
        let output = send(&server.url(), &[]).exits(0);
        assert_eq!(server.wait_for(1)[0].user.as_deref(), Some(USER.0));
        let text = output.out() + &output.err();
        for line in shown {
            assert!(text.lines().any(|found| found == *line), "{line} is not in {text}");
        }
        for secret in ["s3cret", "czNjcmV0", "YW5u"] {
            assert!(!text.contains(secret), "{text}");
        }
        let wrong = server.url_with(Some((USER.0, "wr0ng")));
        let output =
            expect_failure(send(&wrong, &[]), "AUTH: 535 5.7.8. Check the user and the password");
        let output = output.prints("< 535 5.7.8 authentication failed");
        assert!(!(output.out() + &output.err()).contains("wr0ng"), "{output:?}");
        expect_failure(send(&server.url_with(None), &[]), "MAIL FROM: 530 5.7.0");
        server.wait_for(1);
    }
}

#[test]
fn a_server_that_takes_no_password_is_told_from_a_wrong_password() {
    let advice = "Neither the user nor the password is wrong";
    for (mechanisms, offered) in [
        ("XOAUTH2", "XOAUTH2, and "),
        ("CRAM-MD5 DIGEST-MD5", "CRAM-MD5 DIGEST-MD5, and "),
        // None of the server's text but names of mechanisms (RFC 4422, 3.1).
        ("bo@example.com \u{1b}[2J NTLM", "NTLM, and "),
        ("", ""),
    ] {
        let server = SmtpServer::start(SmtpOptions {
            user: Some(USER),
            mechanisms,
            ..SmtpOptions::default()
        });
        let error = format!("AUTH mechanism: the server offers {offered}neither PLAIN nor LOGIN. ");
        let output = expect_failure(send(&server.url(), &[]), &error);
        output.reports(advice).reports("a relay").reports("an app password");
        assert_eq!(server.count(SmtpStep::Auth), 0);
    }
}

#[test]
fn a_refusal_for_now_is_told_from_one_for_good() {
    let now = "refuses for now";
    for (step, reply, is_for_now) in [
        (SmtpStep::Greeting, "421 4.7.0 too many connections", true),
        (SmtpStep::Ehlo, "421 4.3.2 closing", true),
        (SmtpStep::Auth, "454 4.7.0 temporary authentication failure", true),
        (SmtpStep::Mail, "451 4.7.1 greylisted", true),
        (SmtpStep::Rcpt, "451 4.7.1 greylisted", true),
        (SmtpStep::Rcpt, "450 4.2.0 greylisted", true),
        (SmtpStep::Content, "451 4.7.1 greylisted", true),
        (SmtpStep::Rcpt, "550 5.1.1 unknown", false),
        (SmtpStep::Mail, "550 5.7.1 not you", false),
        (SmtpStep::Auth, "535 5.7.139 disabled for the tenant", false),
        (SmtpStep::Content, "554 5.7.1 spam", false),
    ] {
        let server = SmtpServer::start(SmtpOptions { user: Some(USER), ..SmtpOptions::default() });
        server.misbehave(step, Misbehaviour::Reply(reply));
        let output = expect_failure(send(&server.url(), &[]), &reply[..9]);
        assert_eq!(output.err().contains(now), is_for_now, "{reply}: {}", output.err());
    }
}

/// RFC 5321, 3.2: the server is older than RFC 1869.
#[test]
fn a_server_that_does_not_know_ehlo_is_greeted_with_helo() {
    for reply in ["500 unknown", "502 5.5.1 not implemented"] {
        let server = SmtpServer::start(SmtpOptions::default());
        server.misbehave(SmtpStep::Ehlo, Misbehaviour::Reply(reply));
        send(&server.url(), &[]).exits(0).prints("\n> HELO ");
        assert_eq!(server.wait_for(1)[0].parameters, "");
        // It has no extensions.
        let output = send(&server.url_with(Some(USER)), &[]);
        expect_failure(output, "AUTH mechanism: the server offers neither PLAIN nor LOGIN. ");
        expect_failure(send_to("j\u{f6}rg@example.com", &server.url(), &[]), "RCPT TO: ");
    }
    let server = SmtpServer::start(SmtpOptions::default());
    server.misbehave(SmtpStep::Ehlo, Misbehaviour::Reply("550 5.7.1 no"));
    let output = expect_failure(send(&server.url(), &[]), "EHLO: 550 5.7.1. ");
    assert!(!output.out().contains("> HELO"), "{}", output.out());
}

#[test]
fn connections_are_encrypted_and_certificates_verified() {
    let (authority, other_authority) =
        (CertificateAuthority::create(), CertificateAuthority::create());
    let right = authority.certify("localhost");
    let wrong_name = authority.certify("mail.example.com");
    for (certificate, trusted, failure) in [
        (&right, &authority, None),
        (&wrong_name, &authority, Some("certificate")),
        (&right, &other_authority, Some("UnknownIssuer")),
    ] {
        for tls in [SmtpTls::StartTls(certificate.clone()), SmtpTls::Implicit(certificate.clone())]
        {
            let server =
                SmtpServer::start(SmtpOptions { user: Some(USER), tls, ..SmtpOptions::default() });
            let output = send(&server.url(), &[("SSL_CERT_FILE", &trusted.file())]);
            let Some(failure) = failure else {
                let text = output.exits(0).out();
                let line = "* encrypted with TLSv1_3, the certificate is valid for localhost";
                assert!(text.contains(line), "{text}");
                assert!(server.wait_for(1)[0].is_encrypted);
                continue;
            };
            expect_failure(output, failure);
            assert_eq!(server.count(SmtpStep::Auth), 0, "no password for a stranger");
        }
    }
    // The system's own authorities do not know the test's.
    let options = SmtpOptions { tls: SmtpTls::Implicit(right.clone()), ..SmtpOptions::default() };
    let server = SmtpServer::start(options);
    expect_failure(send(&server.url(), &[]), "TLS: ");
    // Where encryption is offered but fails, the message is not sent without.
    let options = SmtpOptions { tls: SmtpTls::StartTls(right), ..SmtpOptions::default() };
    let server = SmtpServer::start(options);
    let trusted = [("SSL_CERT_FILE", &*authority.file())];
    server.misbehave(SmtpStep::StartTls, Misbehaviour::Reply("454 4.7.0 not now"));
    expect_failure(send(&server.url(), &trusted), "STARTTLS: 454 4.7.0");
    // A reply that an attacker puts before the handshake is not taken for an encrypted one.
    server.misbehave(SmtpStep::StartTls, Misbehaviour::Reply("220 go ahead\r\n250 forged"));
    expect_failure(send(&server.url(), &trusted), "TLS: the server sent data before the handshake");
    server.behave();
    send(&server.url(), &trusted).exits(0);
    server.wait_for(1);
}

/// `smtps://` on a port without TLS, the other way round, and servers that are not there.
#[test]
fn the_wrong_scheme_for_a_port_or_no_server_fails_with_advice() {
    let plain = SmtpServer::start(SmtpOptions::default());
    let url = plain.url().replace("smtp://", "smtps://");
    expect_failure(send(&url, &[]), "smtps:// is for port 465");
    let authority = CertificateAuthority::create();
    let tls = SmtpTls::Implicit(authority.certify("localhost"));
    let encrypted = SmtpServer::start(SmtpOptions { tls, ..SmtpOptions::default() });
    encrypted.misbehave(SmtpStep::Greeting, Misbehaviour::Close);
    let url = encrypted.url().replace("smtps://", "smtp://");
    expect_failure(send(&url, &[]), "smtps:// is for port 465");
    plain.port.close();
    expect_failure(send(&plain.url(), &[]), "connecting: Connection refused");
    expect_failure(send("smtp://mail.invalid:25", &[]), "connecting: ");
}

/// Every address of 127.0.0.0/8 is this host, so the address of another host stands in for one here: `0.0.0.0`, which
/// Linux connects to this host as well, is no loopback address.
#[test]
fn a_password_is_not_sent_without_encryption_to_another_host() {
    let server = SmtpServer::start(SmtpOptions { user: Some(USER), ..SmtpOptions::default() });
    let url = server.url().replace("localhost", "0.0.0.0");
    let refusal = "STARTTLS: not offered, and passwords are not sent without encryption";
    expect_failure(send(&url, &[]), refusal);
    assert_eq!(server.count(SmtpStep::Auth), 0);
    let url = server.url_with(None).replace("localhost", "0.0.0.0");
    expect_failure(send(&url, &[]), "MAIL FROM: 530");
}

#[test]
fn a_refusal_at_any_step_is_shown_without_the_text_of_the_server() {
    for (step, phase) in [
        (SmtpStep::Greeting, "greeting"),
        (SmtpStep::Ehlo, "EHLO"),
        (SmtpStep::Auth, "AUTH"),
        (SmtpStep::Mail, "MAIL FROM"),
        (SmtpStep::Rcpt, "RCPT TO"),
        (SmtpStep::Data, "DATA"),
        (SmtpStep::Content, "message"),
    ] {
        let server = SmtpServer::start(SmtpOptions { user: Some(USER), ..SmtpOptions::default() });
        for (reply, shown) in [
            ("451 4.3.0 <bo@example.com> later", "451 4.3.0"),
            ("550-5.1.1 <bo@example.com>\r\n550 5.1.1 no", "550 5.1.1"),
            ("250-ok\r\n251 another code", "the server's reply is no SMTP"),
            ("HTTP/1.1 400 Bad Request", "the server's reply is no SMTP"),
            ("\u{1b}[2J", "the server's reply is no SMTP"),
        ] {
            server.misbehave(step, Misbehaviour::Reply(reply));
            let output = expect_failure(send(&server.url(), &[]), &format!(" {phase}: {shown}. "));
            assert!(!output.err().contains("bo@example.com"), "{}", output.err());
            assert!(!output.out().contains('\u{1b}'), "{}", output.out());
        }
        server.misbehave(step, Misbehaviour::Close);
        expect_failure(send(&server.url(), &[]), &format!(" {phase}: "));
        server.misbehave(step, Misbehaviour::Flood);
        let refusal = format!(" {phase}: the server's reply is too long. ");
        expect_failure(send(&server.url(), &[]), &refusal);
        assert_eq!(server.received().len(), 0);
    }
    // The answer to `QUIT` no longer matters.
    let server = SmtpServer::start(SmtpOptions::default());
    server.misbehave(SmtpStep::Quit, Misbehaviour::Reply("421 4.0.0 no"));
    send(&server.url(), &[]).exits(0);
    server.wait_for(1);
}

/// Each step has 15 seconds, and the message itself 60, so that no server can hold up mail for long.
#[test]
fn a_server_that_hangs_or_drips_is_given_up() {
    let cases = [
        (SmtpStep::Greeting, Misbehaviour::Hang, "greeting", 15),
        (SmtpStep::Ehlo, Misbehaviour::Drip, "EHLO", 15),
        (SmtpStep::StartTls, Misbehaviour::Reply("220 go ahead"), "TLS", 15),
        (SmtpStep::Rcpt, Misbehaviour::Hang, "RCPT TO", 15),
        (SmtpStep::Content, Misbehaviour::Drip, "message", 60),
    ];
    let certificate = CertificateAuthority::create().certify("localhost");
    parallel(cases.len(), |i| {
        let (step, misbehaviour, phase, seconds) = cases[i];
        let tls = match step {
            SmtpStep::StartTls => SmtpTls::StartTls(certificate.clone()),
            _ => SmtpTls::None,
        };
        let server = SmtpServer::start(SmtpOptions { tls, ..SmtpOptions::default() });
        server.misbehave(step, misbehaviour);
        let begin = Instant::now();
        expect_failure(send(&server.url(), &[]), &format!(" {phase}: no answer in time. "));
        let (elapsed, limit) = (begin.elapsed(), Duration::from_secs(seconds));
        assert!(elapsed >= limit && elapsed < limit + Duration::from_secs(14), "{elapsed:?}");
    });
}

#[test]
fn addresses_other_than_ascii_need_a_server_that_takes_them_and_names_do_not() {
    let with = SmtpServer::start(SmtpOptions::default());
    let without = SmtpServer::start(SmtpOptions { utf8: false, ..SmtpOptions::default() });
    let address = "j\u{f6}rg@b\u{fc}cher.example";
    send_to(address, &with.url(), &[]).exits(0);
    let mail = &with.wait_for(1)[0];
    assert_eq!(mail.recipient, "j\u{f6}rg@xn--bcher-kva.example");
    assert_eq!(mail.parameters, "SMTPUTF8 BODY=8BITMIME");
    assert_eq!(mail.to().1, mail.recipient);
    let refusal = "RCPT TO: the address is not ASCII, and the server does not offer SMTPUTF8";
    expect_failure(send_to(address, &without.url(), &[]), refusal);
    let sender = [("CLOAKROOM_MAIL_FROM", "j\u{f6}rg@example.org")];
    expect_failure(send(&without.url(), &sender), "MAIL FROM: the address is not ASCII");
    // A domain has an ASCII form, which every server takes.
    send_to("joerg@b\u{fc}cher.example", &without.url(), &[]).exits(0);
    let mail = &without.wait_for(1)[0];
    assert_eq!((&*mail.recipient, &*mail.parameters), ("joerg@xn--bcher-kva.example", ""));
    assert!(mail.raw.is_ascii());
    let long =
        "\u{dc}bersicht, Abteilung f\u{fc}r Garderoben und verlorene Gegenst\u{e4}nde \u{1f9e5}";
    let sender = format!("\"{long}\" <noreply@b\u{fc}cher.example>");
    send(&without.url(), &[("CLOAKROOM_MAIL_FROM", &sender)]).exits(0);
    let mail = &without.wait_for(2)[1];
    assert_eq!(mail.from(), (long.to_owned(), "noreply@xn--bcher-kva.example".to_owned()));
    assert!(mail.header("Message-ID").ends_with("@xn--bcher-kva.example>"));
    assert!(mail.raw.is_ascii());
}

#[test]
fn recipients_that_are_no_address_are_refused_before_anything_is_sent() {
    let server = SmtpServer::start(SmtpOptions::default());
    for address in [
        "",
        "bo@",
        "b o@example.com",
        "Bo <bo@example.com>",
        "bo@example.com\r\nRCPT TO:<eve@example.com>",
    ] {
        expect_failure(send_to(address, &server.url(), &[]), "composing: the address is malformed");
    }
    assert_eq!(server.count(SmtpStep::Greeting), 0);
}

#[test]
fn settings_without_a_mail_server_or_a_sender_are_refused() {
    let url = "smtp://localhost";
    let off = "holds the word none, so no mail is sent; set it to the URL of a mail server, such as smtps://";
    for (name, value, fault) in [
        ("CLOAKROOM_SMTP_URL", "", "is not set"),
        ("CLOAKROOM_SMTP_URL", "none", off),
        ("CLOAKROOM_MAIL_FROM", "", "is not set"),
        ("CLOAKROOM_PASSWORD_RESET_URL", "", "is not set"),
    ] {
        send(url, &[(name, value)]).exits(2).reports(&format!("{name} {fault}"));
    }
    let misspelt = send(url, &[("CLOAKROOM_SMTP_URL", ""), ("CLOAKROOM_SMTP_ULR", url)]).exits(2);
    let misspelt = misspelt.reports("\n  CLOAKROOM_SMTP_URL is not set, so");
    misspelt.reports("\n  CLOAKROOM_SMTP_ULR is no setting; did you");
    // Outside production the service starts, and warns.
    let log = Server::start(&[("CLOAKROOM_SMTP_URL", url)]).log();
    assert!(log.contains("CLOAKROOM_PASSWORD_RESET_URL is not: no mail is sent"), "{log}");
}
