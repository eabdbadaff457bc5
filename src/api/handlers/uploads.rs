//! Storage of users.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::api::context::RequestContext;
use crate::api::middleware::authenticate::CurrentUser;
use crate::db;
use crate::db::files::{FileQuery, FileSort, NewFile};
use crate::error::Error;
use crate::http::fields::Fields;
use crate::http::file_response;
use crate::http::multipart::Multipart;
use crate::http::part_header::Part;
use crate::http::query::Query;
use crate::http::response::{self, Response};
use crate::model::file::{self, File, SIGNATURE_BYTES};
use crate::model::page::{MAX_SIZE, PageRequest};
use crate::model::rules;
use crate::storage::Draft;

/// What an upload's body may hold beside the file: boundaries, heads of parts, the description.
const BESIDE_FILE: u64 = 64 * 1024;
/// Longest UTF-8 form of a description, and a character more, so that a longer one stays too long.
const DESCRIPTION_BYTES: usize = 4 * (rules::MAX_DESCRIPTION + 1);

/// A received content and its type.
type Received = (Draft, String);

/// `POST /api/v1/uploads`: `file` and, if wanted, `description`, in any order. Recorded, and answered,
/// once the content is safe on disk.
pub fn create(context: &RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let config = &context.app.config;
    let limit = config.max_upload_size;
    let most = limit.saturating_add(BESIDE_FILE);
    let mut parts = context.request.multipart(most, move || Error::FileTooLarge(limit))?;
    let mut texts = Map::new();
    let received = receive(context, &mut parts, &mut texts)?;
    let (filename, description) = Fields::read(texts, |form| {
        (
            form.required("file", rules::uploaded_filename),
            form.optional("description", rules::description),
        )
    })?;
    let (mut draft, content_type) =
        received.ok_or_else(|| Error::Internal("a named file was not received".into()))?;
    let upload = NewFile {
        id: draft.id(),
        user: user.user().id,
        filename: &filename,
        content_type: &content_type,
        size: draft.size(),
        hash: &draft.settle()?,
        description: description.as_deref(),
    };
    let recorded = db::files::insert(
        &context.app.db,
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
    context: &RequestContext,
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
                    && rules::uploaded_filename(name).is_ok()
                {
                    received = Some(receive_file(context, parts, &part)?);
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

fn receive_file(
    context: &RequestContext,
    parts: &mut Multipart,
    part: &Part,
) -> Result<Received, Error> {
    let config = &context.app.config;
    let content_type = file::essence(part.content_type.as_deref());
    if !config.allowed_upload_types.allow(&content_type) {
        return Err(Error::TypeNotAllowed);
    }
    if file::contradicts(&content_type, parts.peek(SIGNATURE_BYTES)?) {
        return Err(Error::TypeNotAllowed);
    }
    let mut draft = context.app.storage.draft()?;
    while let Some(chunk) = parts.chunk()? {
        if draft.size() + chunk.len() as u64 > config.max_upload_size {
            return Err(Error::FileTooLarge(config.max_upload_size));
        }
        draft.write(chunk)?;
    }
    Ok((draft, content_type))
}

/// `GET /api/v1/uploads`: a page of the user's files.
pub fn list(context: &RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let columns = [
        ("upload_date", FileSort::UploadDate),
        ("uploaded_at", FileSort::UploadDate),
        ("filename", FileSort::Filename),
        ("file_size", FileSort::Size),
    ];
    // An empty text matches everything, like none.
    let text = |query: &mut Query, name| {
        let text = query.optional(name, rules::search);
        text.filter(|text| !text.is_empty())
    };
    let (asked, listing) = context.request.query(|query| {
        let asked = PageRequest {
            page: query.integer("page", 1, 1..=i64::MAX),
            size: query.integer("size", 20, 1..=MAX_SIZE),
        };
        let listing = FileQuery {
            search: text(query, "search"),
            content_type: text(query, "content_type").map(|t| t.to_ascii_lowercase()),
            sort: query.choice("sort_by", &columns).unwrap_or(FileSort::UploadDate),
            descending: query
                .choice("sort_order", &[("asc", false), ("desc", true)])
                .unwrap_or(true),
        };
        (asked, listing)
    })?;
    let page = db::files::list(&context.app.db, user.user().id, &listing, asked)?;
    response::json(200, &page)
}

/// `GET /api/v1/uploads/{file_id}`: metadata.
pub fn show(context: &RequestContext, user: &CurrentUser, id: Uuid) -> Result<Response, Error> {
    response::json(200, &readable(context, user, id)?)
}

/// `GET /api/v1/uploads/{file_id}/download`: the content, or a range of it.
pub fn download(context: &RequestContext, user: &CurrentUser, id: Uuid) -> Result<Response, Error> {
    let file = readable(context, user, id)?;
    let content = context.app.storage.read(id, file.file_size as u64);
    // It may have been deleted in between; else the content is lost.
    let content = content.or_else(|lost| readable(context, user, id).and(Err(lost)))?;
    file_response::answer(&context.request, &file, content)
}

/// `PUT /api/v1/uploads/{file_id}`: changes what is given of `filename`, `description`, `is_public`.
pub fn update(context: &RequestContext, user: &CurrentUser, id: Uuid) -> Result<Response, Error> {
    let (filename, description, is_public) = context.request.json(|body| {
        (
            body.optional("filename", rules::filename),
            body.optional("description", rules::description),
            body.optional_boolean("is_public"),
        )
    })?;
    let file = db::files::update(
        &context.app.db,
        id,
        user.user().id,
        filename.as_deref(),
        description.as_deref(),
        is_public,
    )?;
    response::json(200, &file)
}

/// `DELETE /api/v1/uploads/{file_id}`: the record first, so that nothing is listed that is not there.
pub fn delete(context: &RequestContext, user: &CurrentUser, id: Uuid) -> Result<Response, Error> {
    db::files::delete(&context.app.db, id, user.user().id)?;
    context.app.storage.remove(id);
    Ok(response::no_content())
}

/// The user's own file, or a public one.
fn readable(context: &RequestContext, user: &CurrentUser, id: Uuid) -> Result<File, Error> {
    let file = db::files::find(&context.app.db, id)?;
    if file.is_public || file.user_id == user.user().id {
        Ok(file)
    } else {
        Err(Error::NotPermitted)
    }
}
