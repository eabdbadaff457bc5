//! What the headers say of an upload.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::partial::PartialError;
use crate::error::{Error, FieldError, FieldLocation, Problem};
use crate::folders::path::folder;
use crate::http::params::Params;
use crate::http::request::Request;
use crate::model::media_type::without_parameters;
use crate::model::{filename, problems, rules};

/// The longest type that is one, with parameters, in bytes.
const MAX_TYPE: usize = 255;

/// What the client says of a file that is to come.
#[derive(Default)]
pub struct FileToCome {
    /// In bytes.
    pub size: u64,
    pub filename: String,
    pub declared_type: Option<String>,
    /// In the form of the column `files.folder`.
    pub folder: Option<String>,
    pub description: Option<String>,
    /// In hexadecimal digits.
    pub sha256: Option<String>,
}

/// Fails with [`PartialError::Version`] unless the request is one of the protocol's version that is spoken here.
pub fn check_version(request: &Request) -> Result<(), Error> {
    let is_known = request.header("Tus-Resumable").is_some_and(|version| version.trim() == "1.0.0");
    if is_known { Ok(()) } else { Err(Error::Partial(PartialError::Version)) }
}

/// Whether the body is declared as the bytes of an upload.
pub fn has_bytes(request: &Request) -> bool {
    let content_type = request.header("Content-Type").unwrap_or_default();
    without_parameters(content_type) == "application/offset+octet-stream"
}

/// The number in a header that has only digits, once. Larger ones than fit are the largest.
pub fn number(request: &Request, name: &'static str) -> Result<u64, Error> {
    let mut lines = request.headers(name);
    let problem = match (lines.next(), lines.next()) {
        (None, _) => problems::MISSING,
        (Some(text), None) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            return Ok(text.parse().unwrap_or(u64::MAX));
        }
        _ => problems::value_error("Must be one number of digits only"),
    };
    Err(FieldError::of_header(name, problem))
}

/// Reads `Upload-Length` and `Upload-Metadata`. With `folder` the file will lie there, and the one in the metadata may
/// be any text. Fails with [`Error::FileTooLarge`] if the file is longer than `most`.
pub fn read(request: &Request, most: u64, folder: Option<String>) -> Result<FileToCome, Error> {
    let size = number(request, "Upload-Length")?;
    if size > most {
        return Err(Error::FileTooLarge(most));
    }
    let mut file = FileToCome { size, folder, ..FileToCome::default() };
    let (mut params, mut known) = (Params::new(FieldLocation::Header), Vec::new());
    let elements = request.elements("Upload-Metadata");
    for element in elements.filter(|element| !element.is_empty()) {
        let (key, encoded) = element.split_once(' ').unwrap_or((element, ""));
        let outcome = match known.contains(&key) {
            true => Err(problems::SENT_TWICE),
            false => decoded(encoded).and_then(|bytes| file.set(key, &bytes)),
        };
        if let Err(problem) = outcome {
            params.add_error(
                "Upload-Metadata",
                Problem { message: format!("{key}: {}", problem.message).into(), ..problem },
            );
        }
        known.push(key);
    }
    if !known.contains(&"filename") {
        params.add_error("Upload-Metadata", problems::MISSING);
    }
    params.finish(Some(file))
}

fn decoded(text: &str) -> Result<Vec<u8>, Problem> {
    STANDARD.decode(text.trim()).map_err(|_| problems::value_error("Must be Base64"))
}

impl FileToCome {
    /// Sets what has this key. Others are ignored.
    fn set(&mut self, key: &str, bytes: &[u8]) -> Result<(), Problem> {
        let text = || str::from_utf8(bytes).map_err(|_| problems::NOT_UTF8);
        match key {
            "filename" => self.filename = filename::uploaded_filename(text()?)?,
            // What is no type declares none.
            "filetype" => {
                let is_type = |text: &&str| text.len() <= MAX_TYPE && !text.contains('\0');
                self.declared_type = Some(text()?).filter(is_type).map(str::to_owned);
            }
            "folder" if self.folder.is_none() => self.folder = Some(folder(text()?)?),
            "description" => {
                self.description =
                    Some(rules::description(text()?)?).filter(|text| !text.is_empty());
            }
            "sha256" => self.sha256 = Some(rules::sha256(text()?)?),
            _ => {}
        }
        Ok(())
    }
}
