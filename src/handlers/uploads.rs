//! Files of users.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::app::Call;
use crate::error::Error;
use crate::files::Draft;
use crate::http::download;
use crate::http::fields::Fields;
use crate::http::multipart::Multipart;
use crate::http::part::Part;
use crate::http::query::Query;
use crate::http::response::{self, Response};
use crate::middleware::authenticate::Caller;
use crate::model::fields;
use crate::model::file::{self, File, SIGNATURE_BYTES};
use crate::model::page::{PageRequest, SIZE_MOST};
use crate::store;
use crate::store::files::{Listing, SortBy, Upload};

/// What an upload's body may hold beside the file: boundaries, heads of parts, the description.
const BESIDE_FILE: u64 = 64 * 1024;
/// Longest UTF-8 form of a description, and a character more, so that a longer one stays too long.
const DESCRIPTION_BYTES: usize = 4 * (fields::DESCRIPTION_MOST + 1);

/// A received content and its type.
type Received = (Draft, String);

/// `POST /api/v1/uploads`: `file` and, if wanted, `description`, in any order. Recorded, and answered,
/// once the content is safe on disk.
pub fn create(call: &Call, caller: &Caller) -> Result<Response, Error> {
    let config = &call.app.config;
    let limit = config.max_upload_size;
    let most = limit.saturating_add(BESIDE_FILE);
    let mut parts = call.request.multipart(most, move || Error::FileTooLarge(limit))?;
    let mut texts = Map::new();
    let received = receive(call, &mut parts, &mut texts)?;
    let (filename, description) = Fields::read(texts, |form| {
        (
            form.required("file", fields::uploaded_filename),
            form.optional("description", fields::description),
        )
    })?;
    let (mut draft, content_type) =
        received.ok_or_else(|| Error::Internal("a named file was not received".into()))?;
    let upload = Upload {
        id: draft.id(),
        user: caller.user().id,
        filename: &filename,
        content_type: &content_type,
        size: draft.size(),
        hash: &draft.settle()?,
        description: description.as_deref(),
    };
    let recorded = store::files::insert(
        &call.app.db,
        &upload,
        config.user_storage_quota,
        config.storage_quota,
    );
    // Where nobody knows whether it is recorded, the sweep looks later.
    if matches!(recorded, Ok(_) | Err(Error::OutcomeUnknown)) {
        draft.release();
    }
    response::json(201, &recorded?)
}

/// Reads the parts to the end of the body. Of several with one name the first counts. The name of the
/// file goes to `texts`, like a field.
fn receive(
    call: &Call,
    parts: &mut Multipart,
    texts: &mut Map<String, Value>,
) -> Result<Option<Received>, Error> {
    let (mut received, mut has_file) = (None, false);
    while let Some(part) = parts.next()? {
        match part.name.as_str() {
            "file" if !has_file => {
                has_file = true;
                // A content whose name is refused is not worth the disk.
                if let Some(name) = &part.filename
                    && fields::uploaded_filename(name).is_ok()
                {
                    received = Some(receive_file(call, parts, &part)?);
                }
                texts.extend(part.filename.map(|name| ("file".into(), name.into())));
            }
            "description" if !texts.contains_key("description") => {
                let text = parts.text(DESCRIPTION_BYTES)?;
                texts.insert("description".into(), text.into());
            }
            _ => {}
        }
    }
    Ok(received)
}

fn receive_file(call: &Call, parts: &mut Multipart, part: &Part) -> Result<Received, Error> {
    let config = &call.app.config;
    let content_type = file::essence(part.content_type.as_deref());
    if !config.allowed_upload_types.allow(&content_type) {
        return Err(Error::TypeNotAllowed);
    }
    if file::contradicts(&content_type, parts.peek(SIGNATURE_BYTES)?) {
        return Err(Error::TypeNotAllowed);
    }
    let mut draft = call.app.files.draft()?;
    while let Some(chunk) = parts.chunk()? {
        if draft.size() + chunk.len() as u64 > config.max_upload_size {
            return Err(Error::FileTooLarge(config.max_upload_size));
        }
        draft.write(chunk)?;
    }
    Ok((draft, content_type))
}

/// `GET /api/v1/uploads`: a page of the caller's files.
pub fn list(call: &Call, caller: &Caller) -> Result<Response, Error> {
    let columns = [
        ("upload_date", SortBy::UploadDate),
        ("uploaded_at", SortBy::UploadDate),
        ("filename", SortBy::Filename),
        ("file_size", SortBy::Size),
    ];
    // An empty text matches everything, like none.
    let text = |query: &mut Query, name| {
        let text = query.optional(name, fields::search);
        text.filter(|text| !text.is_empty())
    };
    let (asked, listing) = call.request.query(|query| {
        let asked = PageRequest {
            page: query.integer("page", 1, 1..=i64::MAX),
            size: query.integer("size", 20, 1..=SIZE_MOST),
        };
        let listing = Listing {
            search: text(query, "search"),
            content_type: text(query, "content_type").map(|t| t.to_ascii_lowercase()),
            sort_by: query.choice("sort_by", &columns).unwrap_or(SortBy::UploadDate),
            descending: query
                .choice("sort_order", &[("asc", false), ("desc", true)])
                .unwrap_or(true),
        };
        (asked, listing)
    })?;
    let page = store::files::list(&call.app.db, caller.user().id, &listing, asked)?;
    response::json(200, &page)
}

/// `GET /api/v1/uploads/{file_id}`: metadata.
pub fn show(call: &Call, caller: &Caller, id: Uuid) -> Result<Response, Error> {
    response::json(200, &readable(call, caller, id)?)
}

/// `GET /api/v1/uploads/{file_id}/download`: the content, or a range of it.
pub fn download(call: &Call, caller: &Caller, id: Uuid) -> Result<Response, Error> {
    let file = readable(call, caller, id)?;
    let content = call.app.files.read(id, file.file_size as u64);
    // It may have been deleted in between; else the content is lost.
    let content = content.or_else(|lost| readable(call, caller, id).and(Err(lost)))?;
    download::answer(&call.request, &file, content)
}

/// `PUT /api/v1/uploads/{file_id}`: changes what is given of `filename`, `description`, `is_public`.
pub fn update(call: &Call, caller: &Caller, id: Uuid) -> Result<Response, Error> {
    let (filename, description, is_public) = call.request.json(|body| {
        (
            body.optional("filename", fields::filename),
            body.optional("description", fields::description),
            body.optional_boolean("is_public"),
        )
    })?;
    let file = store::files::update(
        &call.app.db,
        id,
        caller.user().id,
        filename.as_deref(),
        description.as_deref(),
        is_public,
    )?;
    response::json(200, &file)
}

/// `DELETE /api/v1/uploads/{file_id}`: the record first, so that nothing is listed that is not there.
pub fn delete(call: &Call, caller: &Caller, id: Uuid) -> Result<Response, Error> {
    store::files::delete(&call.app.db, id, caller.user().id)?;
    call.app.files.remove(id);
    Ok(response::no_content())
}

/// The caller's own file, or a public one.
fn readable(call: &Call, caller: &Caller, id: Uuid) -> Result<File, Error> {
    let file = store::files::find(&call.app.db, id)?;
    if file.is_public || file.user_id == caller.user().id {
        Ok(file)
    } else {
        Err(Error::NotPermitted)
    }
}
