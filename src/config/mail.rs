//! The settings of outgoing mail.

use std::fmt;

use lettre::message::Mailbox;
use percent_encoding::percent_decode_str;

use super::values::{Origin, Secret, is_loopback};

/// The server to which outgoing mail is handed.
#[derive(Debug, Clone)]
pub enum Smtp {
    /// Not set. In development, password reset tokens are logged; production refuses to start.
    Unset,
    /// `none`: password resets are switched off.
    Off,
    Server(MailServer),
}

/// A mail server, and how to sign in to it.
#[derive(Debug, Clone)]
pub struct MailServer {
    pub encryption: Encryption,
    /// A name or an IP address, without the brackets that an IPv6 address has in a URL.
    pub host: String,
    pub port: u16,
    pub user: Option<SmtpUser>,
    /// Its URL, with any user and password hidden.
    pub url: String,
}

/// When the connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// From its first byte (`smtps`).
    Implicit,
    /// After `STARTTLS`, if the server offers it (`smtp`).
    StartTls,
}

/// A user of a mail server.
#[derive(Debug, Clone)]
pub struct SmtpUser {
    pub name: String,
    pub password: Secret,
}

impl MailServer {
    /// Parses `smtp://[user:password@]host[:port]`, also with `smtps`. Only slashes may follow. In the user and the
    /// password, any byte may be written as `%` and two hexadecimal digits. The ports default to those of RFC 5321
    /// (25) and RFC 8314 (465).
    fn parse(text: &str) -> Option<MailServer> {
        let (scheme, rest) = text.split_once("://")?;
        let (encryption, default_port) = match scheme {
            "smtp" => (Encryption::StartTls, "25"),
            "smtps" => (Encryption::Implicit, "465"),
            _ => return None,
        };
        let authority = rest.trim_end_matches('/');
        // A password may contain `@`, a host may not.
        let (user, shown_user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(SmtpUser::parse(user)?), "(not shown)@", address),
            None => (None, "", authority),
        };
        let origin = format!("{scheme}://{address}");
        let Origin { host, port, .. } = Origin::parse(&origin).filter(|it| !it.host.is_empty())?;
        let port = port.unwrap_or(default_port).parse().ok().filter(|port| *port > 0)?;
        let url = format!("{scheme}://{shown_user}{host}:{port}");
        let host = host.trim_matches(['[', ']']).to_owned();
        Some(MailServer { encryption, host, port, user, url })
    }

    /// Whether nothing may be sent without encryption: passwords leave this host only encrypted.
    pub fn requires_encryption(&self) -> bool {
        self.user.is_some() && !self.is_local()
    }

    /// Whether the server is on this host.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.host)
    }
}

impl SmtpUser {
    /// Parses `user:password`. The name may not be empty, and neither may contain NUL, which separates the two in
    /// `AUTH PLAIN` (RFC 4616).
    fn parse(text: &str) -> Option<SmtpUser> {
        let decode = |text| {
            let decoded = percent_decode_str(text).decode_utf8().ok()?.into_owned();
            (!decoded.contains('\0')).then_some(decoded)
        };
        let (name, password) = text.split_once(':')?;
        let (name, password) = (decode(name)?, Secret::new(decode(password)?));
        (!name.is_empty()).then_some(SmtpUser { name, password })
    }
}

impl Smtp {
    /// Parses `none`, or the URL of a server.
    pub fn parse(text: &str) -> Option<Smtp> {
        if text == "none" { Some(Smtp::Off) } else { MailServer::parse(text).map(Smtp::Server) }
    }
}

/// The text of the setting, with any user and password hidden.
impl fmt::Display for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Smtp::Unset => Ok(()),
            Smtp::Off => f.write_str("none"),
            Smtp::Server(server) => f.write_str(&server.url),
        }
    }
}

/// Parses an e-mail address, with or without a display name before it, such as `Cloakroom <noreply@example.com>`.
/// Two parsers must accept it, because that of the mail library ignores any text after the address. The library must
/// also be able to parse its own text form of the address, because it does so for every message.
pub fn mailbox(text: &str) -> Option<Mailbox> {
    text.parse::<email_address::EmailAddress>().ok()?;
    let mailbox: Mailbox = text.parse().ok()?;
    (mailbox.to_string().parse() == Ok(mailbox.clone())).then_some(mailbox)
}

/// Whether `text` is an http or https URL in ASCII that contains `{token}`.
pub fn has_token(text: &str) -> bool {
    let origin = text.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    Origin::parse(&origin).is_some_and(|origin| origin.is_web())
        && text.bytes().all(|b| b.is_ascii_graphic())
        && text.contains("{token}")
}

/// Parses an http or https URL without user, path, query and fragment. A slash at its end is dropped.
pub fn public_url(text: &str) -> Option<String> {
    let url = text.strip_suffix('/').unwrap_or(text);
    let is_origin = Origin::parse(url).is_some_and(|origin| origin.is_web());
    (is_origin && !url.contains(['@', '{', '}'])).then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_servers_are_smtp_urls() {
        for good in [
            "smtp://localhost",
            "smtp://mail.example.com:587",
            "smtps://ann:s%40cret@mail.example.com:465",
            "smtps://ann:p@ss@mail.example.com",
            "smtp://[::1]:2525",
            "smtp://[::1]/",
        ] {
            assert!(matches!(Smtp::parse(good), Some(Smtp::Server(_))), "{good}");
        }
        assert!(matches!(Smtp::parse("none"), Some(Smtp::Off)));
        for bad in [
            "",
            "off",
            "mail.example.com",
            "http://mail.example.com",
            "smtp://",
            "smtp://:25",
            "smtp://host:0",
            "smtp://host:x",
            "smtp://host:65536",
            "smtp://ann@host",
            "smtp://:secret@host",
            "smtp://host/path",
            "smtp://a b",
            "smtp://ann%00:x@host",
            "smtp://ann:%ff@host",
        ] {
            assert!(Smtp::parse(bad).is_none(), "{bad}");
        }
    }

    fn server(url: &str) -> MailServer {
        MailServer::parse(url).unwrap_or_else(|| panic!("{url}"))
    }

    #[test]
    fn ports_have_defaults_and_credentials_are_percent_decoded() {
        for (url, shown) in [
            ("smtp://localhost", "smtp://localhost:25"),
            ("smtp://[::1]", "smtp://[::1]:25"),
            ("smtp://[::1]:2525/", "smtp://[::1]:2525"),
            ("smtps://mail.example.com", "smtps://mail.example.com:465"),
            ("smtps://ann:x@mail.example.com:587", "smtps://(not shown)@mail.example.com:587"),
        ] {
            assert_eq!(server(url).url, shown);
        }
        assert_eq!(server("smtp://[::1]").host, "::1");
        let found = server("smtps://ann%40example.com:p%3a@%25%C3%A9@mail.example.com").user;
        let found = found.map(|it| (it.name, it.password.expose().to_owned()));
        assert_eq!(found, Some(("ann@example.com".to_owned(), "p:@%\u{e9}".to_owned())));
    }

    #[test]
    fn passwords_leave_this_host_only_encrypted() {
        for (url, requires) in [
            ("smtp://ann:x@mail.example.com", true),
            ("smtp://ann:x@192.0.2.1", true),
            ("smtp://ann:x@[2001:db8::1]", true),
            // A name that may resolve to a loopback address today and to another one tomorrow.
            ("smtp://ann:x@localhost.example.com", true),
            ("smtp://ann:x@localhost", false),
            ("smtp://ann:x@127.1.2.3", false),
            ("smtp://ann:x@[::1]", false),
            ("smtp://ann:x@[::ffff:127.0.0.1]", false),
            ("smtp://mail.example.com", false),
        ] {
            assert_eq!(server(url).requires_encryption(), requires, "{url}");
        }
    }

    #[test]
    fn senders_are_one_address_with_or_without_a_name() {
        for good in [
            "noreply@example.com",
            "Cloakroom <noreply@example.com>",
            "\"Cloakroom, Berlin\" <noreply@example.com>",
            "\u{dc}bersicht <noreply@b\u{fc}cher.example>",
        ] {
            assert!(mailbox(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "nobody",
            "Cloakroom",
            "a@example.com, b@example.com",
            "a@example.com b@example.com",
            "Cloakroom <a@example.com> b",
            "Cloakroom <a@example.com",
            "a@example.com\r\nBcc: b@example.com",
            "Cloak\r\nBcc: b@example.com <a@example.com>",
        ] {
            assert!(mailbox(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_public_url_is_an_origin_and_perhaps_a_slash() {
        for (text, expected) in [
            ("https://files.example.com", Some("https://files.example.com")),
            ("https://files.example.com/", Some("https://files.example.com")),
            ("http://[::1]:8000/", Some("http://[::1]:8000")),
            ("https://files.example.com//", None),
            ("https://files.example.com/cloakroom", None),
            ("", None),
            ("files.example.com", None),
            ("ftp://files.example.com", None),
            ("https://", None),
            ("https:///path", None),
            ("https://ann:x@files.example.com", None),
            ("https://files.example.com/?a=1", None),
            ("https://files.example.com/#x", None),
            ("https://files.example.com/{token}", None),
            ("https://files.example.com/a b", None),
        ] {
            assert_eq!(public_url(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn reset_links_are_urls_with_a_token() {
        for good in
            ["https://app.example.com/reset?token={token}", "http://localhost:3000/#/reset/{token}"]
        {
            assert!(has_token(good), "{good}");
        }
        for bad in [
            "",
            "{token}",
            "https://app.example.com/reset",
            "ftp://app.example.com/{token}",
            "https:///{token}",
            "https://app.example.com/re set/{token}",
        ] {
            assert!(!has_token(bad), "{bad}");
        }
    }
}
