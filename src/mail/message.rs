//! Writes messages: headers and a plain text, from the files in `templates/`.
//!
//! A message contains nothing that a user chose but the address, the username if it asks to confirm the address, and
//! the confirmed address of an identity: anyone can register an account with somebody else's address, and must not be
//! able to send that person a text of their own. A username consists of letters, digits and underscores.

use std::fmt::Write;

use lettre::Address;
use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue, MessageId};
use lettre::message::{Mailbox, SinglePart};
use time::macros::format_description;
use uuid::Uuid;

use super::error::MailError;
use super::kind::{MailKind, MailLink, substitute};
use crate::model::timestamp::Timestamp;

/// The content of a message.
#[derive(Debug)]
pub struct Mail {
    kind: &'static MailKind,
    /// The time of the change that the message reports.
    at: Timestamp,
    /// The token of the link and when it expires, if the kind has a link.
    token: Option<(String, Timestamp)>,
    /// The username of the account, if it has one.
    account: Option<String>,
    /// The network of the client who caused the mail, if it is known.
    network: Option<String>,
    /// The address of the identity at an OpenID provider that the mail is about, if the provider has confirmed one.
    identity: Option<String>,
    /// How many files came by links.
    files: Option<i32>,
}

/// The pages that links lead to; `{token}` stands for the token.
#[derive(Debug)]
pub struct MailLinks {
    /// Where a password is set.
    pub password_reset: String,
    /// Where an address is confirmed. `None` if no address must be.
    pub email_confirmation: Option<String>,
    /// The console, if it is on and its address is known.
    pub console: Option<String>,
}

impl Mail {
    /// A mail about something that happened at a time. `make_token` is called if the kind has a link. It returns the
    /// token of the link and when it expires.
    pub fn new<E>(
        kind: &'static MailKind,
        at: Timestamp,
        make_token: impl FnOnce(MailLink) -> Result<(String, Timestamp), E>,
    ) -> Result<Mail, E> {
        let token = kind.link.map(make_token).transpose()?;
        Ok(Mail { kind, at, token, account: None, network: None, identity: None, files: None })
    }

    /// Says which account and identity the mail is about, which network caused it, and how many files came. Each may be
    /// unknown.
    pub fn about(
        self,
        account: Option<String>,
        network: Option<String>,
        identity: Option<String>,
        files: Option<i32>,
    ) -> Mail {
        Mail { account, network, identity, files, ..self }
    }
}

/// A complete message, and the addresses of its envelope.
#[derive(Debug)]
pub struct ComposedMessage {
    pub sender: String,
    pub recipient: String,
    /// All headers and the body, in lines that end with CR LF. They are ASCII, unless an address has other characters
    /// before its `@`.
    pub bytes: Vec<u8>,
}

/// Writes a message. Fails finally if the recipient's address cannot be written into a message.
pub fn compose(
    sender: &Mailbox,
    links: &MailLinks,
    recipient: &str,
    mail: &Mail,
    now: Timestamp,
) -> Result<ComposedMessage, MailError> {
    let values = values(mail, links, now);
    let sender =
        Mailbox::new(sender.name.as_deref().and_then(display_name), ascii_domain(&sender.email));
    let address = recipient
        .parse::<Address>()
        .map_err(|_| MailError::rejected("composing", "the address is malformed"))?;
    let to = Mailbox::new(None, ascii_domain(&address));
    // Asks for no automatic reply, such as a notice of absence (RFC 3834).
    let auto_submitted = HeaderName::new_from_ascii_str("Auto-Submitted");
    let id = format!("<{}@{}>", Uuid::new_v4(), sender.email.domain());
    let unwritable = |_| MailError::rejected("composing", "the message cannot be written");
    // Without an envelope the library would parse the headers that it has just written, and it cannot parse all of
    // them.
    let envelope = Envelope::new(Some(sender.email.clone()), vec![to.email.clone()]);
    let message = lettre::Message::builder()
        .envelope(envelope.map_err(unwritable)?)
        .from(sender.clone())
        .to(to.clone())
        .subject(mail.kind.subject)
        .date(now.0.into())
        .header(MessageId::from(id))
        .raw_header(HeaderValue::new(auto_submitted, "auto-generated".to_owned()))
        .singlepart(SinglePart::plain(substitute(mail.kind.text, &values)))
        .map_err(unwritable)?;
    Ok(ComposedMessage {
        sender: sender.email.to_string(),
        recipient: to.email.to_string(),
        bytes: message.formatted(),
    })
}

/// The values of the placeholders in the template.
fn values(mail: &Mail, links: &MailLinks, now: Timestamp) -> Vec<(&'static str, String)> {
    let network = mail.network.as_ref().map(|network| format!(" in the network {network}"));
    let console = links.console.as_ref().map(|page| format!("\n\n{page}"));
    let files = match mail.files.unwrap_or_default() {
        1 => "One file".to_owned(),
        many => format!("{many} files"),
    };
    let mut values = vec![
        ("files", files),
        ("console", console.unwrap_or_default()),
        ("time", written_out(mail.at)),
        ("account", mail.account.clone().unwrap_or_else(|| "without a username".to_owned())),
        ("network", network.unwrap_or_default()),
        ("identity", mail.identity.clone().unwrap_or("an identity without an address".into())),
    ];
    if let Some((token, expires_at)) = &mail.token {
        let page = match (mail.kind.link, &links.email_confirmation) {
            (Some(MailLink::EmailConfirmation), Some(page)) => page,
            _ => &links.password_reset,
        };
        values.extend([
            ("link", page.replace("{token}", token)),
            ("expiry", written_out(*expires_at)),
            ("lifetime", lifetime((expires_at.0 - now.0).whole_seconds())),
        ]);
    }
    values
}

/// The sender's name as it may stand before an address. Control characters become spaces; the mail library quotes or
/// encodes whatever else has a meaning in a header.
fn display_name(name: &str) -> Option<String> {
    let name = name.replace(char::is_control, " ");
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The address with its domain in ASCII (RFC 5890), which every server understands.
fn ascii_domain(address: &Address) -> Address {
    let domain = idna::domain_to_ascii(address.domain()).ok();
    let ascii = domain.and_then(|domain| Address::new(address.user(), domain).ok());
    ascii.unwrap_or_else(|| address.clone())
}

/// The time as people read it, such as `2 January 2026, 03:04 UTC`.
fn written_out(at: Timestamp) -> String {
    let format =
        format_description!("[day padding:none] [month repr:long] [year], [hour]:[minute] UTC");
    // Formatting fails only for values without a date or a time, and this one has both.
    at.0.to_offset(time::UtcOffset::UTC).format(format).unwrap_or_else(|_| at.text())
}

/// The lifetime as people read it, such as `30 minutes` or `1 hour and 1 minute`. Parts of a minute are rounded up,
/// because a moment has already passed between making the token and writing the message.
fn lifetime(seconds: i64) -> String {
    let minutes = (seconds.max(1) + 59) / 60;
    let units = [(minutes / 1440, "day"), (minutes / 60 % 24, "hour"), (minutes % 60, "minute")];
    let mut text = String::new();
    for (count, unit) in units.into_iter().filter(|(count, _)| *count > 0) {
        let and = if text.is_empty() { "" } else { " and " };
        let plural = if count == 1 { "" } else { "s" };
        // Writing to a string never fails.
        let _ = write!(text, "{and}{count} {unit}{plural}");
    }
    text
}

#[cfg(test)]
mod tests {
    use mail_parser::{Message as ParsedMessage, MessageParser};

    use super::*;
    use crate::mail::kind::mail_kind;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    fn composed(sender: &str, recipient: &str, mail: &Mail) -> ComposedMessage {
        let sender = sender.parse().unwrap_or_else(|e| panic!("{sender}: {e}"));
        compose(&sender, &links(), recipient, mail, at("2026-01-02T03:04:05Z"))
            .unwrap_or_else(|e| panic!("{recipient:?}: {e}"))
    }

    fn links() -> MailLinks {
        let page = |name| format!("https://app.example.com/{name}?a=1&token={{token}}");
        MailLinks {
            password_reset: page("reset"),
            email_confirmation: Some(page("confirm")),
            console: None,
        }
    }

    /// A mail of a kind, with this token if it has a link.
    fn mail(kind: &str, token: &str) -> Mail {
        let kind = mail_kind(kind).unwrap_or_else(|| panic!("{kind}"));
        let token = |_| Ok::<_, ()>((token.to_owned(), at("2026-01-02T03:34:04.5Z")));
        Mail::new(kind, at("2026-12-31T23:59:59Z"), token).unwrap_or_else(|()| panic!("{kind:?}"))
    }

    /// A message to Bo from a sender with this name.
    fn message_from(name: Option<&str>) -> ComposedMessage {
        let address = "noreply@example.org".parse().unwrap_or_else(|e| panic!("{e}"));
        let sender = Mailbox::new(name.map(str::to_owned), address);
        compose(&sender, &links(), "bo@example.com", &mail("token_created", ""), Timestamp::now())
            .unwrap_or_else(|e| panic!("{name:?}: {e}"))
    }

    fn parse(message: &ComposedMessage) -> ParsedMessage<'_> {
        MessageParser::default().parse(&message.bytes).unwrap_or_else(|| panic!("{message:?}"))
    }

    fn names_of_headers(message: &ComposedMessage) -> Vec<String> {
        parse(message).headers_raw().map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn no_name_of_the_sender_adds_a_header_or_a_recipient_and_recipients_have_none() {
        let expected = names_of_headers(&message_from(None));
        for (name, shown) in [
            ("Bo", Some("Bo")),
            ("  Bo  ", Some("Bo")),
            ("\r\n", None),
            ("Bo\r\nBcc: eve@example.com", Some("Bo  Bcc: eve@example.com")),
            ("Bo\r\n\r\nWin a prize", Some("Bo    Win a prize")),
            ("Bo\0Ann\u{85}Eve", Some("Bo Ann Eve")),
            ("Bo, eve@example.com, Ann", Some("Bo, eve@example.com, Ann")),
            ("\"Bo\\\" <eve@example.com>", Some("\"Bo\\\" <eve@example.com>")),
            ("J\u{f6}rg, \u{1f9e5}\r\nBcc: x", Some("J\u{f6}rg, \u{1f9e5}  Bcc: x")),
        ] {
            let message = message_from(Some(name));
            assert_eq!(names_of_headers(&message), expected, "{name:?}");
            let parsed = parse(&message);
            let addresses = |found: Option<&mail_parser::Address>| -> Vec<_> {
                let all = found.into_iter().flat_map(|found| found.iter());
                all.map(|one| (one.name().map(str::to_owned), one.address().map(str::to_owned)))
                    .collect()
            };
            let from = (shown.map(str::to_owned), Some("noreply@example.org".to_owned()));
            assert_eq!(addresses(parsed.from()), [from], "{name:?}");
            assert_eq!(addresses(parsed.to()), [(None, Some("bo@example.com".to_owned()))]);
            assert!(message.bytes.is_ascii(), "{name:?}");
        }
    }

    #[test]
    fn addresses_with_line_breaks_or_a_second_address_are_rejected() {
        let sender = "noreply@example.org".parse().unwrap_or_else(|e| panic!("{e}"));
        for address in [
            "",
            "bo",
            "bo@example.com\r\nBcc: eve@example.com",
            "bo\r\n@example.com",
            "bo@example.com\0",
            "bo@example.com>",
            "<bo@example.com>",
            "bo@example.com,eve@example.com",
            "bo@example.com eve@example.com",
            "\"b\ro\"@example.com",
            "\"b\no\"@example.com",
            "\"b\0o\"@example.com",
            "bo@exam\u{0}ple.com",
        ] {
            let outcome =
                compose(&sender, &links(), address, &mail("token_created", ""), Timestamp::now());
            assert!(
                outcome.as_ref().is_err_and(|error| error.is_final),
                "{address:?}: {outcome:?}"
            );
        }
        // A quoted local part may contain all of these characters.
        let recipient = "\"a>b, c\"@example.com";
        let message = composed("noreply@example.org", recipient, &mail("token_created", ""));
        assert_eq!(message.recipient, recipient);
        assert_eq!(names_of_headers(&message), names_of_headers(&message_from(None)));
    }

    #[test]
    fn each_kind_has_its_subject_its_time_or_link_and_what_to_do() {
        let token = "abc.d-e_f".repeat(40);
        let link = |kind| match kind {
            "email_confirmation" => format!("https://app.example.com/confirm?a=1&token={token}"),
            _ => format!("https://app.example.com/reset?a=1&token={token}"),
        };
        let expiry = "within 30 minutes: until 2 January 2026, 03:34 UTC.";
        let time = "31 December 2026, 23:59 UTC";
        for (kind, subject, time, advice) in [
            (
                "password_reset",
                "Reset your Cloakroom password",
                expiry,
                "If this was not you, ignore this message.",
            ),
            ("invitation", "You have a Cloakroom account", expiry, "ignore this message."),
            (
                "email_confirmation",
                "Confirm your e-mail address for Cloakroom",
                expiry,
                "on 31 December 2026, 23:59 UTC, somebody asked to use this e-mail address for the Cloakroom account \
                 without a username.",
            ),
            (
                "email_taken",
                "You have a Cloakroom account already",
                time,
                "If it was you, use the account that there is.",
            ),
            (
                "email_change_requested",
                "Your Cloakroom account is about to change its e-mail address",
                time,
                "If it was not, change your password now",
            ),
            (
                "password_changed",
                "Your Cloakroom password was changed",
                time,
                "If it was not, reset your password now",
            ),
            (
                "email_changed",
                "The e-mail address of your Cloakroom account was changed",
                time,
                "If it was not, tell the administrator",
            ),
            (
                "token_created",
                "A personal access token of your Cloakroom account was created",
                time,
                "If it was not, change your password now, which ends all tokens",
            ),
            (
                "second_factor_enabled",
                "Your Cloakroom account has a second factor",
                time,
                "If it was not, tell the administrator of your Cloakroom, who can take it away",
            ),
            (
                "second_factor_disabled",
                "The second factor of your Cloakroom account was taken away",
                time,
                "If it was not, change your password now",
            ),
            (
                "recovery_code_used",
                "A recovery code of your Cloakroom account was used",
                time,
                "If it was not, change your password now, make new recovery codes",
            ),
            (
                "recovery_codes_renewed",
                "New recovery codes of your Cloakroom account were made",
                time,
                "If it was not, change your password now, make new recovery codes",
            ),
            (
                "too_many_wrong_codes",
                "The password of your Cloakroom account must be reset",
                time,
                "Reset your password now",
            ),
            (
                "files_lost",
                "Files of your Cloakroom account were lost",
                time,
                "If you have copies of what is missing now, upload them again",
            ),
        ] {
            let message = composed("noreply@example.org", "bo@example.com", &mail(kind, &token));
            let parsed = parse(&message);
            assert_eq!(parsed.subject(), Some(subject));
            let text = parsed.body_text(0).unwrap_or_default();
            assert_eq!(text.lines().any(|line| line == link(kind)), time == expiry, "{text}");
            let words = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(time) && words.contains(advice), "{words}");
            assert!(!words.contains(['{', '}']), "{words}");
        }
    }

    #[test]
    fn lifetimes_are_whole_minutes_rounded_up() {
        for (seconds, text) in [
            (0, "1 minute"),
            (60, "1 minute"),
            (1799, "30 minutes"),
            (1801, "31 minutes"),
            (3600, "1 hour"),
            (3660, "1 hour and 1 minute"),
            (172_800, "2 days"),
        ] {
            assert_eq!(lifetime(seconds), text);
        }
    }
}
