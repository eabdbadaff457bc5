//! The settings of outgoing mail.

use std::fmt;
use std::str::FromStr;

use super::values::{Secret, is_origin};

/// The port of SMTP (RFC 5321, 4.5.4.2), for URLs that name none.
const DEFAULT_PORT: &str = "25";

/// The server to which outgoing mail is handed.
#[derive(Debug, Clone)]
pub enum Smtp {
    /// Not set. In development, password reset tokens are logged; production refuses to start.
    Unset,
    /// `none`: password resets are switched off.
    Off,
    /// The URL of a mail server. It is secret because it may hold a password.
    Server(Secret),
}

impl FromStr for Smtp {
    type Err = ();

    /// Parses an empty text, `none`, or `smtp://[user:password@]host[:port]`, also with `smtps`. Only slashes may
    /// follow.
    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = match text {
            "" => return Ok(Smtp::Unset),
            "none" => return Ok(Smtp::Off),
            _ => text.strip_prefix("smtp://").or(text.strip_prefix("smtps://")).ok_or(())?,
        };
        let authority = rest.trim_end_matches('/');
        // A password may contain `@`, a host may not.
        let (credentials, host_and_port) = match authority.rsplit_once('@') {
            Some((credentials, host_and_port)) => (Some(credentials), host_and_port),
            None => (None, authority),
        };
        let has_valid_credentials = credentials
            .is_none_or(|both| both.split_once(':').is_some_and(|(user, _)| !user.is_empty()));
        let (host, port) = match host_and_port.rsplit_once(':') {
            // In `[::1]` the last colon is a part of the address.
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (host_and_port, DEFAULT_PORT),
        };
        let has_valid_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        let has_valid_host = !host.is_empty() && is_origin(&format!("smtp://{host_and_port}"));
        (has_valid_credentials && has_valid_port && has_valid_host)
            .then(|| Smtp::Server(Secret::new(text.to_owned())))
            .ok_or(())
    }
}

/// The text of the setting, with any user and password hidden.
impl fmt::Display for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = match self {
            Smtp::Unset => return Ok(()),
            Smtp::Off => return f.write_str("none"),
            Smtp::Server(url) => url.expose(),
        };
        match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, server))) => write!(f, "{scheme}://(not shown)@{server}"),
            _ => f.write_str(url),
        }
    }
}

/// Whether `text` is an e-mail address, with or without a display name before it.
pub fn is_mailbox(text: &str) -> bool {
    text.parse::<email_address::EmailAddress>().is_ok()
}

/// Whether `text` is an http or https URL that contains `{token}`.
pub fn is_reset_url(text: &str) -> bool {
    let origin = text.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    (origin.starts_with("http://") || origin.starts_with("https://"))
        && is_origin(&origin)
        && text.contains("{token}")
        && text.bytes().all(|b| b.is_ascii_graphic())
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
            assert!(matches!(good.parse(), Ok(Smtp::Server(_))), "{good}");
        }
        assert!(matches!("".parse(), Ok(Smtp::Unset)));
        assert!(matches!("none".parse(), Ok(Smtp::Off)));
        for bad in [
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
        ] {
            assert!(bad.parse::<Smtp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn reset_links_are_urls_with_a_token() {
        for good in
            ["https://app.example.com/reset?token={token}", "http://localhost:3000/#/reset/{token}"]
        {
            assert!(is_reset_url(good), "{good}");
        }
        for bad in [
            "",
            "{token}",
            "https://app.example.com/reset",
            "ftp://app.example.com/{token}",
            "https:///{token}",
            "https://app.example.com/re set/{token}",
        ] {
            assert!(!is_reset_url(bad), "{bad}");
        }
    }
}
