//! Uploads that a client sends again with the same `Idempotency-Key`.

mod statements;

pub use statements::find;

use crate::error::{Error, FieldError, FieldLocation, KEY_REUSED, Problem};
use crate::http::request::Request;
use crate::model::file::{File, KeyedUpload, NewFile};
use crate::model::problems::value_error;

/// Longest key, in characters.
const MAX_KEY: usize = 255;

/// The key in the header `Idempotency-Key`, if there is one.
pub fn key(request: &Request) -> Result<Option<String>, Error> {
    let mut lines = request.headers("Idempotency-Key");
    let Some(line) = lines.next() else { return Ok(None) };
    let key = parse(line).filter(|_| lines.next().is_none());
    let problem = value_error("Must be one key of 1 to 255 visible ASCII characters");
    key.map(Some).ok_or_else(|| FieldError::of_header("Idempotency-Key", problem))
}

/// An `Idempotency-Key`, as it stands or as a quoted string (RFC 8941, 3.3.3, as the draft of that header has it): 1 to
/// 255 visible characters of ASCII.
fn parse(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\t']);
    let key = match text.strip_prefix('"') {
        None => Some(text.to_owned()),
        Some(quoted) => unquoted(quoted),
    };
    let is_key = |key: &String| {
        (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
    };
    key.filter(is_key)
}

/// The text of a quoted string after its first quote, without its escapes; `None` if it does not end with a quote.
fn unquoted(quoted: &str) -> Option<String> {
    let (mut text, mut rest) = (String::new(), quoted.chars());
    loop {
        match rest.next()? {
            '"' => return rest.next().is_none().then_some(text),
            '\\' => text.push(rest.next().filter(|c| matches!(c, '"' | '\\'))?),
            c => text.push(c),
        }
    }
}

/// The error of an upload whose key another one has.
pub fn key_reused() -> Error {
    FieldError::of_header("Idempotency-Key", value_error(KEY_REUSED))
}

/// The file of the first upload with the key of `upload`, as it was then. Fails if that was not the same upload.
pub fn first_file(upload: &NewFile, first: &KeyedUpload) -> Result<File, Error> {
    if first.request_hash != upload.request_hash() {
        return Err(key_reused());
    }
    Ok(File {
        id: first.file,
        user_id: upload.user,
        folder: Some(upload.folder.clone()),
        filename: upload.filename.clone(),
        original_filename: upload.filename.clone(),
        content_type: upload.content_type.clone(),
        file_size: upload.size as i64,
        file_hash: upload.hash.clone(),
        description: upload.description.clone(),
        upload_date: first.created_at,
        uploaded_at: first.created_at,
        updated_at: first.created_at,
        is_public: false,
        received_by: upload.link,
        version: 1,
    })
}

impl FieldError {
    /// The error of a request whose header has this problem.
    pub fn of_header(name: &'static str, problem: Problem) -> Error {
        let location = FieldLocation::Header;
        Error::Invalid(vec![FieldError { location, field: Some(name), problem }])
    }
}
