//! Settings of outgoing mail, and how secrets are read and shown.

use std::str::FromStr;

use super::reader::Reader;
use super::values::{Secret, is_origin};

/// How mail leaves.
#[derive(Debug, Clone, Default)]
pub enum Smtp {
    /// Not said: in development reset tokens are logged.
    #[default]
    Unset,
    /// `none`: there is no password reset.
    Off,
    /// `smtp://` or `smtps://`, with `user:password@` or without.
    Server(Secret),
}

impl FromStr for Smtp {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = match text {
            "" => return Ok(Smtp::Unset),
            "none" => return Ok(Smtp::Off),
            _ => text.strip_prefix("smtp://").or(text.strip_prefix("smtps://")),
        };
        let place = rest.ok_or(())?.trim_end_matches('/');
        let (credentials, place) = place.rsplit_once('@').map_or(("-:-", place), |(c, p)| (c, p));
        let has_both = credentials.split_once(':').is_some_and(|(user, _)| !user.is_empty());
        let authority = format!("http://{place}");
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (place, "25"),
        };
        let good_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        if has_both && good_port && !host.is_empty() && is_origin(&authority) {
            Ok(Smtp::Server(Secret::new(text.to_owned())))
        } else {
            Err(())
        }
    }
}

/// The URL of a mail server as it may be shown.
pub fn without_credentials(url: &Secret) -> String {
    match (url.expose().split_once("://"), url.expose().rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://(not shown)@{place}"),
        _ => url.expose().to_owned(),
    }
}

/// An address, also with a name before it.
pub fn is_mailbox(text: &str) -> bool {
    text.parse::<email_address::EmailAddress>().is_ok()
}

/// A link that carries the token of a password reset.
pub fn is_reset_url(text: &str) -> bool {
    let origin = text.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    (origin.starts_with("http://") || origin.starts_with("https://"))
        && is_origin(&origin)
        && text.contains("{token}")
        && text.bytes().all(|b| b.is_ascii_graphic())
}

impl Reader {
    /// `none`, or a URL, whose password is not shown.
    pub fn smtp(&mut self, name: &'static str) -> Smtp {
        let found = self.look_up(&[name]).map_or(String::new(), |(_, value)| value);
        let parsed: Option<Smtp> = found.parse().ok();
        self.shown.push((
            name,
            match &parsed {
                Some(Smtp::Server(url)) => without_credentials(url),
                _ => found,
            },
        ));
        self.or_fault(
            name,
            "(not shown)",
            "none, smtp://host:port or smtps://user:password@host:port",
            parsed,
        )
    }

    /// A text that `rule` accepts.
    pub fn checked(
        &mut self,
        name: &'static str,
        allowed: &str,
        rule: fn(&str) -> bool,
    ) -> Option<String> {
        let text = self.text(name)?;
        let good = rule(&text).then(|| text.clone());
        self.or_fault(name, text, allowed, good.map(Some))
    }

    /// Comma-separated secrets.
    pub fn secrets(&mut self, name: &'static str) -> Vec<Secret> {
        let found = self.look_up(&[name]).map_or(String::new(), |(_, value)| value);
        let parts = found.split(',').map(str::trim).filter(|part| !part.is_empty());
        let secrets: Vec<_> = parts.map(|part| Secret::new(part.to_owned())).collect();
        self.shown.push((
            name,
            match secrets.len() {
                0 => String::new(),
                n => format!("({n} set, not shown)"),
            },
        ));
        secrets
    }
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
