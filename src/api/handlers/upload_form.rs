//! The form of an upload, part by part as it arrives: a file must not be kept in memory.

use crate::api::app::App;
use crate::api::context::RequestContext;
use crate::error::{Error, FieldLocation, UploadLimits};
use crate::http::multipart::{MAX_FORM_OVERHEAD, Multipart};
use crate::http::params::Params;
use crate::model::media_type::{self, SIGNATURE_BYTES};
use crate::model::{filename, problems, rules};
use crate::storage::Draft;

/// Bytes that are read of a description: the longest one in UTF-8 and one character more, so that the rule still
/// recognises one that is too long.
const MAX_DESCRIPTION_BYTES: usize = 4 * (rules::MAX_DESCRIPTION + 1);

/// The fields of an upload's form. The file is on disk already.
pub struct UploadForm {
    pub file: UploadedFile,
    pub description: Option<String>,
}

/// A file that has arrived in full, but has no record in the database yet.
pub struct UploadedFile {
    pub draft: Draft,
    pub filename: String,
    /// As the list of types spells it.
    pub content_type: String,
}

/// Receives the form of an upload whose file may have at most `room` bytes. Fails with [`Error::FileTooLarge`] if the
/// file exceeds the limit of files, with [`Error::FormTooLarge`] if it is the rest of the form that is too long, and
/// with [`Error::UploadTooLarge`] if a length that is announced before all bytes leaves that open.
pub fn receive(context: &mut RequestContext, room: u64) -> Result<UploadForm, Error> {
    let app = context.app;
    let limits = UploadLimits { file: app.config.max_upload_size, rest: MAX_FORM_OVERHEAD };
    let parts = context.request.multipart(limits.form());
    let mut parts = parts.map_err(|error| if_too_large(error, Error::UploadTooLarge(limits)))?;
    let mut file = None;
    receive_parts(app, room, &mut parts, &mut file).map_err(|error| {
        // A chunk is refused by its length, before it arrives. Then the file may be to blame unless it has arrived, or
        // the other parts have left nothing for its header.
        let is_rest = file.is_some() || parts.received() >= limits.rest;
        let cause = if is_rest { Error::FormTooLarge } else { Error::UploadTooLarge };
        if_too_large(error, cause(limits))
    })
}

/// Returns `cause` in the place of the error of a body that is too long.
fn if_too_large(error: Error, cause: Error) -> Error {
    if matches!(error, Error::BodyTooLarge(_)) { cause } else { error }
}

/// Reads all parts of the body. There must be exactly one `file`, of at most `room` bytes, which goes to `file` as soon
/// as it has arrived; of several descriptions the first one counts, and the others are skipped.
fn receive_parts(
    app: &App,
    room: u64,
    parts: &mut Multipart,
    file: &mut Option<UploadedFile>,
) -> Result<UploadForm, Error> {
    let mut form = Params::new(FieldLocation::Body);
    let (mut count, mut is_described) = (0, false);
    while let Some(part) = parts.next()? {
        match part.name.as_str() {
            "file" => {
                count += 1;
                if count == 2 {
                    form.add_error("file", problems::SENT_TWICE);
                }
                if count > 1 {
                    continue;
                }
                let name = part.filename.ok_or(problems::MISSING);
                // A file whose name is refused is not stored at all.
                match name.and_then(|name| filename::uploaded_filename(&name)) {
                    Ok(name) => {
                        *file = Some(receive_file(app, room, parts, name, part.content_type)?);
                    }
                    Err(problem) => form.add_error("file", problem),
                }
            }
            "description" if !is_described => {
                is_described = true;
                match parts.text(MAX_DESCRIPTION_BYTES)? {
                    Some(text) => form.set("description", text),
                    None => form.add_error("description", problems::NOT_UTF8),
                }
            }
            _ => {}
        }
    }
    if count == 0 {
        form.add_error("file", problems::MISSING);
    }
    let description = form.optional("description", rules::description);
    let description = description.filter(|text| !text.is_empty());
    form.finish(file.take().map(|file| UploadForm { file, description }))
}

/// Receives the file in the current part. Fails with [`Error::TypeNotAllowed`] if the declared type is not accepted,
/// with [`Error::TypeContradicted`] if the content is of another type, and as [`write_content`] does. If the body
/// becomes too long meanwhile, that is because of the file unless what came before it took more than it may.
fn receive_file(
    app: &App,
    room: u64,
    parts: &mut Multipart,
    filename: String,
    declared_type: Option<String>,
) -> Result<UploadedFile, Error> {
    let config = &app.config;
    let is_rest_small = parts.position() <= MAX_FORM_OVERHEAD;
    let explained = |error| match is_rest_small {
        true => if_too_large(error, Error::FileTooLarge(config.max_upload_size)),
        false => error,
    };
    let declared = media_type::without_parameters(declared_type.as_deref());
    let Some(content_type) = media_type::listed(&declared, &config.allowed_upload_types) else {
        let accepted: Vec<_> = config.allowed_upload_types.iter().collect();
        return Err(Error::TypeNotAllowed { declared, accepted: accepted.join(", ") });
    };
    let beginning = parts.peek(SIGNATURE_BYTES).map_err(explained)?;
    if let Some(recognised) = media_type::contradicting_type(&declared, beginning) {
        return Err(Error::TypeContradicted { declared, recognised });
    }
    let draft = write_content(app, room, parts).map_err(explained)?;
    Ok(UploadedFile { draft, filename, content_type: content_type.to_owned() })
}

/// Writes the content of the current part to disk. Fails with [`Error::FileTooLarge`] beyond the limit of files, and
/// with [`Error::StorageFull`] beyond `room` bytes.
fn write_content(app: &App, room: u64, parts: &mut Multipart) -> Result<Draft, Error> {
    let limit = app.config.max_upload_size;
    let mut draft = app.storage.draft()?;
    while let Some(chunk) = parts.chunk()? {
        let size = draft.size() + chunk.len() as u64;
        if size > limit {
            return Err(Error::FileTooLarge(limit));
        }
        if size > room {
            return Err(Error::StorageFull);
        }
        draft.write(chunk)?;
    }
    Ok(draft)
}
