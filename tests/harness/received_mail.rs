//! Messages that a test's mail server has received.

use mail_parser::{Address, Message, MessageParser};

/// A message and its envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMail {
    /// The address of `MAIL FROM`.
    pub sender: String,
    /// What followed the address, such as `SMTPUTF8`.
    pub parameters: String,
    /// The address of `RCPT TO`.
    pub recipient: String,
    /// The argument of `EHLO`.
    pub client: String,
    /// The user who had signed in.
    pub user: Option<String>,
    pub is_encrypted: bool,
    /// The message as it came, without the dots that SMTP adds.
    pub raw: Vec<u8>,
}

impl ReceivedMail {
    /// The message, parsed. Fails if a strict parser would not find exactly a text part and an HTML part.
    #[track_caller]
    pub fn parsed(&self) -> Message<'_> {
        let message = MessageParser::default().parse(&self.raw).expect("a message");
        let kinds: Vec<_> = message
            .parts
            .iter()
            .map(|part| {
                let kind = part.headers.iter().find(|header| header.name() == "Content-Type");
                let kind = kind.and_then(|header| header.value().as_content_type());
                let kind = kind.expect("a type");
                format!("{}/{}", kind.c_type, kind.c_subtype.as_deref().unwrap_or_default())
            })
            .collect();
        assert_eq!(kinds, ["multipart/alternative", "text/plain", "text/html"]);
        message
    }

    /// The names of all headers, in their order.
    pub fn header_names(&self) -> Vec<String> {
        self.parsed().headers_raw().map(|(name, _)| name.to_owned()).collect()
    }

    /// The value of the only header of that name as it came, without the line breaks.
    #[track_caller]
    pub fn header(&self, name: &str) -> String {
        let message = self.parsed();
        let found: Vec<_> =
            message.headers_raw().filter(|(key, _)| key.eq_ignore_ascii_case(name)).collect();
        assert_eq!(found.len(), 1, "{name} in {:?}", message.headers_raw().collect::<Vec<_>>());
        found[0].1.replace("\r\n", "").trim().to_owned()
    }

    #[track_caller]
    pub fn subject(&self) -> String {
        self.parsed().subject().expect("a subject").to_owned()
    }

    /// The name, which may be empty, and the address of the only recipient in the header `To`.
    #[track_caller]
    pub fn to(&self) -> (String, String) {
        only(self.parsed().to().expect("To"))
    }

    /// The same of the header `From`.
    #[track_caller]
    pub fn from(&self) -> (String, String) {
        only(self.parsed().from().expect("From"))
    }

    /// The text of the plain part.
    #[track_caller]
    pub fn text(&self) -> String {
        self.parsed().body_text(0).expect("a text").into_owned()
    }

    /// The text of the HTML part.
    #[track_caller]
    pub fn html(&self) -> String {
        self.parsed().body_html(0).expect("HTML").into_owned()
    }

    /// The token in the link of the plain part, which otherwise is `url` with `{token}` in the token's place. Fails if
    /// the HTML part has another link.
    #[track_caller]
    pub fn token(&self, url: &str) -> String {
        let (before, after) = url.split_once("{token}").expect("a URL with {token}");
        let text = self.text();
        let line = text.lines().find(|line| line.starts_with(before));
        let link = line.unwrap_or_else(|| panic!("no {before} in {text}")).trim_end();
        assert_eq!(self.html().matches(&link.replace('&', "&amp;")).count(), 2, "{link}");
        link[before.len()..].strip_suffix(after).expect("the end of the URL").to_owned()
    }
}

#[track_caller]
fn only(address: &Address) -> (String, String) {
    let all: Vec<_> = address.iter().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    (all[0].name().unwrap_or_default().to_owned(), all[0].address().expect("an address").to_owned())
}
