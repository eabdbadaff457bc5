//! Messages that a test's mail server has received.

use mail_parser::{Address, Message, MessageParser};

/// A message and its envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// The message, parsed. Fails if a strict parser would find anything else than one text.
    #[track_caller]
    pub fn parsed(&self) -> Message<'_> {
        let message = MessageParser::default().parse(&self.raw).expect("a message");
        assert_eq!((message.parts.len(), message.text_body_count()), (1, 1), "{self:?}");
        message
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

    /// The text.
    #[track_caller]
    pub fn text(&self) -> String {
        self.parsed().body_text(0).expect("a text").into_owned()
    }

    /// The token in the link, which otherwise is `url` with `{token}` in the token's place.
    #[track_caller]
    pub fn token(&self, url: &str) -> String {
        let (before, after) = url.split_once("{token}").expect("a URL with {token}");
        let text = self.text();
        let line = text.lines().find(|line| line.starts_with(before));
        let link = line.unwrap_or_else(|| panic!("no {before} in {text}")).trim_end();
        link[before.len()..].strip_suffix(after).expect("the end of the URL").to_owned()
    }
}

#[track_caller]
fn only(address: &Address) -> (String, String) {
    let all: Vec<_> = address.iter().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    (all[0].name().unwrap_or_default().to_owned(), all[0].address().expect("an address").to_owned())
}
