//! The form of an upload, part by part as it arrives: a file must not be kept in memory.

use crate::db::stats::Arrival;
use crate::error::{Error, FieldLocation};
use crate::folders;
use crate::http::multipart::{MAX_FORM_OVERHEAD, Multipart};
use crate::http::params::Params;
use crate::model::content_type::{SIGNATURE_BYTES, stored_type};
use crate::model::file::NewFile;
use crate::model::{filename, problems, rules};
use crate::request::app::App;
use crate::request::context::RequestContext;
use crate::storage::Draft;

/// Bytes that are read of a description: the longest one and one character more, so that the rule still recognises one
/// that is too long. A character in NFC may come as three of four bytes each.
const MAX_DESCRIPTION_BYTES: usize = 12 * (rules::MAX_DESCRIPTION + 1);

/// Bytes that are read of a hash: the longest one, and one more.
const MAX_SHA256_BYTES: usize = "sha256:".len() + 64 + 1;

/// The file of a form, which has arrived in full, and is on disk, but has no record in the database yet: its content,
/// and what the form says of it, its type as the list of types has it.
pub type UploadedFile = (Draft, NewFile);

/// How long the file of a form may be, below the limit of all files.
pub struct Room<'a> {
    /// The most bytes.
    pub bytes: u64,
    /// The folder that it will lie in, whatever the form says.
    pub folder: Option<String>,
    /// The failure of a file that has more.
    pub beyond: fn() -> Error,
    /// Where the bytes count while they come. If nowhere, they are only hashed, because the content is known.
    pub arrivals: Vec<Arrival<'a>>,
}

/// Receives the form of an upload whose file must fit into `room`, which is what the quotas have left. If the
/// form is too long, fails with [`Error::FormTooLarge`] if that is certainly not because of the file, otherwise with
/// [`Error::FileTooLarge`]: a length that is announced may leave it open.
pub fn receive(context: &mut RequestContext, room: &mut Room) -> Result<UploadedFile, Error> {
    let app = context.app;
    let (limit, rest) = (app.config.max_upload_size, MAX_FORM_OVERHEAD);
    let (mut file, mut began, mut received) = (None, None, 0);
    let form = context.request.multipart(limit.saturating_add(rest)).and_then(|mut parts| {
        let form = receive_parts(app, room, &mut parts, &mut file, &mut began);
        received = parts.received();
        form
    });
    // It is not because of the file if that has arrived, or if what came before it took more than it may, or left
    // nothing for the file's header.
    let is_rest = file.is_some() || began.map_or(received >= rest, |began| began > rest);
    form.map_err(|error| match error {
        Error::BodyTooLarge(_) if is_rest => Error::FormTooLarge { file: limit, rest },
        Error::BodyTooLarge(_) => Error::FileTooLarge(limit),
        other => other,
    })
}

/// Reads all parts of the body. There must be exactly one `file`, within `room`, which goes to `file` as soon
/// as it has arrived; how many bytes came before its content goes to `began`. Of several descriptions or folders the
/// first one counts, and the others are skipped.
fn receive_parts(
    app: &App,
    room: &mut Room,
    parts: &mut Multipart,
    file: &mut Option<UploadedFile>,
    began: &mut Option<u64>,
) -> Result<UploadedFile, Error> {
    let mut form = Params::new(FieldLocation::Body);
    let (mut count, mut description, mut sha256) = (0, None, None);
    let mut folder = room.folder.take();
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
                        *began = Some(parts.position());
                        *file = Some(receive_file(app, room, parts, name, part.content_type)?);
                    }
                    Err(problem) => form.add_error("file", problem),
                }
            }
            "description" if description.is_none() => {
                let text = parts.text(MAX_DESCRIPTION_BYTES)?.ok_or(problems::NOT_UTF8);
                let accepted = text.and_then(|text| rules::description(&text));
                let note = |problem| form.add_error("description", problem);
                description = Some(accepted.map_err(note).unwrap_or_default());
            }
            "folder" if folder.is_none() => {
                let note = |problem| form.add_error("folder", problem);
                folder = Some(folders::part(parts)?.map_err(note).unwrap_or_default());
            }
            "sha256" => match parts.text(MAX_SHA256_BYTES)?.as_deref().map(rules::sha256) {
                Some(Ok(hash)) if sha256.as_ref().is_some_and(|first| *first != hash) => {
                    form.add_error("sha256", problems::SENT_TWICE);
                }
                Some(Ok(hash)) => sha256 = Some(hash),
                Some(Err(_)) | None => form.add_error("sha256", problems::NOT_A_SHA256),
            },
            _ => {}
        }
    }
    if count == 0 {
        form.add_error("file", problems::MISSING);
    }
    let description = description.filter(|text| !text.is_empty());
    if let (Some((draft, _)), Some(sha256)) = (&file, sha256)
        && draft.hash() != sha256
    {
        form.add_error("file", problems::OTHER_CONTENT);
    }
    let folder = folder.unwrap_or_default();
    form.finish(file.take().map(|(draft, file)| (draft, NewFile { description, folder, ..file })))
}

/// Receives the file in the current part. Fails as [`stored_type`] and [`write_content`] do.
fn receive_file(
    app: &App,
    room: &mut Room,
    parts: &mut Multipart,
    filename: String,
    declared_type: Option<String>,
) -> Result<UploadedFile, Error> {
    let (types, beginning) = (&app.config.allowed_upload_types, parts.peek(SIGNATURE_BYTES)?);
    let content_type = stored_type(declared_type.as_deref(), &filename, beginning, types)?;
    let draft = write_content(app, room, parts)?;
    Ok((draft, NewFile { filename, content_type, ..NewFile::default() }))
}

/// Writes the content of the current part to disk. Fails with [`Error::FileTooLarge`] beyond the limit of files, as
/// `room` says beyond that, and with [`Error::StorageFull`] if it does not fit beside other uploads under way.
fn write_content(app: &App, room: &mut Room, parts: &mut Multipart) -> Result<Draft, Error> {
    let limit = app.config.max_upload_size;
    let mut draft = app.storage.draft()?;
    while let Some(chunk) = parts.chunk()? {
        let size = draft.size() + chunk.len() as u64;
        if size > limit {
            return Err(Error::FileTooLarge(limit));
        }
        if size > room.bytes {
            return Err((room.beyond)());
        }
        if room.arrivals.is_empty() {
            draft.skip(chunk);
            continue;
        }
        room.arrivals.iter_mut().try_for_each(|arrival| arrival.grow_to(&app.db, size))?;
        draft.write(chunk)?;
    }
    Ok(draft)
}
