//! Writes messages: headers and a text in two forms, plain and HTML, from the files in `templates/`.
//!
//! Nothing that a user chose is in the text, the name of the account in particular: anyone can register somebody else's
//! address, and must not be able to send them a text of their own.

use std::fmt::Write;

use lettre::Address;
use lettre::message::header::{HeaderName, HeaderValue, MessageId};
use lettre::message::{Mailbox, MultiPart};
use time::macros::format_description;
use uuid::Uuid;

use super::error::{MailError, Phase};
use super::{Content, Recipient};
use crate::model::timestamp::Timestamp;

/// A message, and the addresses of its envelope.
#[derive(Debug)]
pub struct Message {
    pub sender: String,
    pub recipient: String,
    /// All headers and the body, in lines that end with CR LF. They are ASCII unless the local part of an address, what
    /// is before the `@`, is not.
    pub bytes: Vec<u8>,
}

/// The texts of one kind of message. Placeholders are names in braces.
struct Template {
    subject: &'static str,
    text: &'static str,
    html: &'static str,
}

macro_rules! template {
    ($subject:literal, $name:literal) => {
        Template {
            subject: $subject,
            text: include_str!(concat!("templates/", $name, ".txt")),
            html: include_str!(concat!("templates/", $name, ".html")),
        }
    };
}

const PASSWORD_RESET: Template = template!("Reset your Cloakroom password", "password_reset");
const PASSWORD_CHANGED: Template =
    template!("Your Cloakroom password was changed", "password_changed");
const EMAIL_CHANGED: Template =
    template!("The e-mail address of your Cloakroom account was changed", "email_changed");
const TEST: Template = template!("Test message from Cloakroom", "test");

/// Writes a message. `password_reset_url` contains `{token}`. Fails with [`MailError::Rejected`] if the recipient's
/// address cannot be written into a message.
pub fn compose(
    sender: &Mailbox,
    password_reset_url: &str,
    recipient: Recipient,
    content: Content,
    now: Timestamp,
) -> Result<Message, MailError> {
    let (template, values) = fill_in(password_reset_url, content, now);
    let sender =
        Mailbox::new(sender.name.as_deref().and_then(display_name), ascii_domain(&sender.email));
    let address = recipient
        .address
        .parse::<Address>()
        .map_err(|_| MailError::rejected(Phase::Compose, "the address is malformed"))?;
    let to = Mailbox::new(recipient.name.and_then(display_name), ascii_domain(&address));
    // Asks for no automatic reply, such as a notice of absence (RFC 3834).
    let auto_submitted = HeaderName::new_from_ascii_str("Auto-Submitted");
    let id = format!("<{}@{}>", Uuid::new_v4(), sender.email.domain());
    let message = lettre::Message::builder()
        .from(sender.clone())
        .to(to.clone())
        .subject(template.subject)
        .date(now.0.into())
        .header(MessageId::from(id))
        .raw_header(HeaderValue::new(auto_submitted, "auto-generated".to_owned()))
        .multipart(MultiPart::alternative_plain_html(
            substitute(template.text, &values, str::to_owned),
            substitute(template.html, &values, escape_html),
        ))
        .map_err(|_| MailError::rejected(Phase::Compose, "the message cannot be written"))?;
    Ok(Message {
        sender: sender.email.to_string(),
        recipient: to.email.to_string(),
        bytes: message.formatted(),
    })
}

/// The template of a message, and the values of its placeholders.
fn fill_in(
    password_reset_url: &str,
    content: Content,
    now: Timestamp,
) -> (Template, Vec<(&'static str, String)>) {
    match content {
        Content::PasswordReset { token, expires_at } => (
            PASSWORD_RESET,
            vec![
                ("link", password_reset_url.replace("{token}", token)),
                ("expiry", written_out(expires_at)),
                ("lifetime", lifetime((expires_at.0 - now.0).whole_seconds())),
            ],
        ),
        Content::PasswordChanged { at } => (PASSWORD_CHANGED, vec![("time", written_out(at))]),
        Content::EmailChanged { at } => (EMAIL_CHANGED, vec![("time", written_out(at))]),
        Content::Test => (TEST, vec![("time", written_out(now))]),
    }
}

/// A name as it may stand before an address. Control characters become spaces; the mail library quotes or encodes
/// whatever else has a meaning in a header.
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

/// Replaces the placeholders of a template by their values, passed through `escape`. Values are not searched for
/// placeholders, and braces around other words stay.
fn substitute(
    template: &str,
    values: &[(&'static str, String)],
    escape: impl Fn(&str) -> String,
) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let found = after.split_once('}').and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((value, after))
        });
        rest = match found {
            Some((value, after)) => {
                text.push_str(&escape(value));
                after
            }
            None => {
                text.push('{');
                after
            }
        };
    }
    text.push_str(rest);
    text
}

/// The text as HTML, also where it stands in the quotes of an attribute.
fn escape_html(text: &str) -> String {
    let mut html = String::new();
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

/// Like `2 January 2026, 03:04 UTC`.
fn written_out(at: Timestamp) -> String {
    let format =
        format_description!("[day padding:none] [month repr:long] [year], [hour]:[minute] UTC");
    // Only a time without a date, which this is not, cannot be formatted so.
    at.0.to_offset(time::UtcOffset::UTC).format(format).unwrap_or_else(|_| at.text())
}

/// Like `30 minutes` or `1 hour and 1 minute`: whole minutes, rounded up, because a part of the first one has passed
/// when the message is written.
fn lifetime(seconds: i64) -> String {
    let minutes = (seconds.max(0) + 59) / 60;
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
