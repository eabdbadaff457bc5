//! The files of users: upload, list, download, change and delete.

use uuid::Uuid;

use super::paging::{is_descending, page_request};
use crate::api::context::{App, CurrentUser, RequestContext};
use crate::api::openapi::{Answer, Content, NO_CONTENT, Operation, Tag, json};
use crate::config::Config;
use crate::db::files::{self, FileQuery, FileQuotas, FileSort, NewFile};
use crate::error::{Error, FieldLocation, Forbidden};
use crate::http::file_response::file_response;
use crate::http::input::{FormInput, Input};
use crate::http::multipart::Multipart;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::file::{self, File, SIGNATURE_BYTES};
use crate::model::page::{Page, PageRequest};
use crate::model::{filename, problems, rules};
use crate::storage::Draft;

/// Bytes that the body of an upload may have in addition to the file: boundaries, headers of parts, the description.
const MAX_FORM_OVERHEAD: u64 = 64 * 1024;
/// Bytes that are read of a description: the longest one in UTF-8 and one character more, so that the rule still
/// recognises one that is too long.
const MAX_DESCRIPTION_BYTES: usize = 4 * (rules::MAX_DESCRIPTION + 1);

pub const CREATE: Operation = Operation {
    id: "upload_file",
    tag: Tag::Files,
    summary: "Upload a file",
    description: "The form has exactly one part `file`, with a filename. Parts that are not described here are \
                  ignored. The declared type of the file must be one that the service accepts, and its first bytes \
                  must not be those of another type. Only the last component of the filename is kept. A 201 response \
                  means that the content has been written to disk.",
    inputs: &[&UPLOAD],
    answers: &[json::<File>(201, "The stored file.")],
    errors: |config| {
        let not_allowed = type_not_allowed("text/html".into(), config);
        vec![Error::FileTooLarge(config.max_upload_size), not_allowed, Error::StorageFull]
    },
    ..Operation::EMPTY
};

// The function is only called to describe the form, when there is no file yet.
static UPLOAD: FormInput = FormInput(|form| drop(read_upload(form, None)));

/// Reads the fields of an upload's form. `file` is its file, which has been received already; if it is `None`, so is
/// the result.
fn read_upload(form: &mut Params, file: Option<UploadedFile>) -> Option<UploadForm> {
    let file = form.file("file", file);
    let description = form.optional("description", rules::DESCRIPTION);
    file.map(|file| UploadForm { file, description })
}

/// The fields of an upload's form. The file is on disk already.
struct UploadForm {
    file: UploadedFile,
    description: Option<String>,
}

/// A file that has arrived in full, but has no record in the database yet.
struct UploadedFile {
    draft: Draft,
    filename: String,
    content_type: String,
}

/// `POST /api/v1/uploads`: stores a file. The form has the field `file` and optionally `description`, in any order. The
/// content is safe on disk before it is recorded in the database and the response sent.
pub fn create(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let app = context.app;
    let limit = app.config.max_upload_size;
    let parts = context.read_form(&UPLOAD, limit.saturating_add(MAX_FORM_OVERHEAD));
    let form = parts.and_then(|mut parts| receive_form(app, &mut parts));
    let UploadForm { file, description } = form.map_err(|error| match error {
        Error::BodyTooLarge(_) => Error::FileTooLarge(limit),
        other => other,
    })?;
    let mut draft = file.draft;
    let upload = NewFile {
        id: draft.id(),
        user: user.id(),
        filename: &file.filename,
        content_type: &file.content_type,
        size: draft.size(),
        hash: &draft.settle()?,
        description: description.as_deref(),
    };
    let quotas = FileQuotas {
        user_bytes: app.config.user_storage_quota,
        user_files: app.config.user_file_quota,
        service_bytes: app.config.storage_quota,
    };
    let recorded = files::insert(&app.db, &upload, &quotas, &context.origin());
    // If it is unknown whether the file was recorded, the content stays. The sweep removes it later if it has no
    // record.
    if matches!(recorded, Ok(_) | Err(Error::OutcomeUnknown)) {
        draft.release();
    }
    response::json(201, &recorded?)
}

/// Reads all parts of the body. There must be exactly one `file`; of several descriptions the first one counts.
fn receive_form(app: &App, parts: &mut Multipart) -> Result<UploadForm, Error> {
    let mut form = Params::new(FieldLocation::Body);
    let (mut count, mut file) = (0, None);
    while let Some(part) = parts.next()? {
        match part.name.as_str() {
            "file" => {
                count += 1;
                if count > 1 {
                    if count == 2 {
                        form.add_error("file", problems::sent_twice());
                    }
                    continue;
                }
                let name = part.filename.ok_or_else(problems::missing);
                // A file whose name is refused is not stored at all.
                match name.and_then(|name| filename::uploaded_filename(&name)) {
                    Ok(name) => file = Some(receive_file(app, parts, name, part.content_type)?),
                    Err(problem) => form.add_error("file", problem),
                }
            }
            "description" => match parts.text(MAX_DESCRIPTION_BYTES)? {
                Some(text) => form.set("description", text),
                None => form.add_error("description", problems::not_utf8()),
            },
            _ => {}
        }
    }
    if count == 0 {
        form.add_error("file", problems::missing());
    }
    let upload = read_upload(&mut form, file);
    form.finish(upload)
}

/// Writes the content of the current part to disk. Fails with [`Error::TypeNotAllowed`] if the declared type is not
/// accepted, with [`Error::TypeContradicted`] if the content is of another type, and with [`Error::FileTooLarge`]
/// beyond the limit.
fn receive_file(
    app: &App,
    parts: &mut Multipart,
    filename: String,
    declared_type: Option<String>,
) -> Result<UploadedFile, Error> {
    let config = &app.config;
    let content_type = file::essence(declared_type.as_deref());
    let is_allowed = |allowed: &str| file::is_same_type(allowed, &content_type);
    if !config.allowed_upload_types.iter().any(is_allowed) {
        return Err(type_not_allowed(content_type, config));
    }
    if let Some(recognised) = file::contradicting_type(&content_type, parts.peek(SIGNATURE_BYTES)?)
    {
        return Err(Error::TypeContradicted { declared: content_type, recognised });
    }
    let mut draft = app.storage.draft()?;
    while let Some(chunk) = parts.chunk()? {
        if draft.size() + chunk.len() as u64 > config.max_upload_size {
            return Err(Error::FileTooLarge(config.max_upload_size));
        }
        draft.write(chunk)?;
    }
    Ok(UploadedFile { draft, filename, content_type })
}

fn type_not_allowed(declared: String, config: &Config) -> Error {
    let accepted: Vec<_> = config.allowed_upload_types.iter().collect();
    Error::TypeNotAllowed { declared, accepted: accepted.join(", ") }
}

pub const LIST: Operation = Operation {
    id: "list_files",
    tag: Tag::Files,
    summary: "List your own files",
    description: "Newest first unless the query says otherwise. Files that compare equal are sorted by id.",
    inputs: &[&FILE_QUERY],
    answers: &[json::<Page<File>>(200, "A page of the files that match all filters.")],
    errors: |_| vec![Error::OffsetOutOfRange, Error::LimitOutOfRange],
    ..Operation::EMPTY
};

static FILE_QUERY: Input<(FileQuery, Result<PageRequest, Error>)> =
    Input::query(|query| (read_file_query(query), page_request(query)));

/// `GET /api/v1/uploads`: a page of the user's own files, filtered and sorted.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let (query, page) = context.read(&FILE_QUERY)?;
    files::list(&context.app.db, user.id(), &query, page?, |page| response::json(200, page))?
}

fn read_file_query(query: &mut Params) -> FileQuery {
    let columns = [
        ("upload_date", FileSort::UploadDate),
        ("uploaded_at", FileSort::UploadDate),
        ("filename", FileSort::Filename),
        ("file_size", FileSort::Size),
    ];
    // An empty text is the same as no filter.
    query.about("A part of the filename or the description. Not case-sensitive.");
    let search = query.optional("search", rules::SEARCH);
    query.about("Media type without parameters. Not case-sensitive.");
    let content_type = query.optional("content_type", rules::SEARCH);
    query.about("Default `upload_date`, of which `uploaded_at` is another name.");
    FileQuery {
        search: search.filter(|text| !text.is_empty()),
        content_type: content_type
            .filter(|text| !text.is_empty())
            .map(|essence| essence.to_ascii_lowercase()),
        sort: query.choice("sort_by", &columns).unwrap_or(FileSort::UploadDate),
        descending: is_descending(query),
    }
}

pub const SHOW: Operation = Operation {
    id: "get_file",
    tag: Tag::Files,
    summary: "Show the metadata of a file",
    description: "Only its owner may see a file, unless `is_public` is true: then every signed-in user may.",
    answers: &[json::<File>(200, "The metadata.")],
    errors: |_| vec![Error::FileNotFound, Error::NotPermitted(Forbidden::PrivateFile)],
    ..Operation::EMPTY
};

/// `GET /api/v1/uploads/{file_id}`: the file's metadata.
pub fn show(context: &mut RequestContext, user: &CurrentUser, id: Uuid) -> Result<Response, Error> {
    response::json(200, &find_readable(context.app, user, id)?)
}

pub const DOWNLOAD: Operation = Operation {
    id: "download_file",
    tag: Tag::Files,
    summary: "Download the content of a file",
    description: "`Content-Type` is the type that was declared at upload. A request for a single range of bytes \
                  returns that range; a request for several ranges returns the whole content.",
    headers: &[
        ("Range", "One range of bytes, such as `bytes=0-1023` (RFC 9110, 14.2)."),
        (
            "If-None-Match",
            "The `ETag` of an earlier download; 304 if the content is still the same.",
        ),
        (
            "If-Range",
            "An `ETag`: returns the range only if the content is still the same, otherwise all of it.",
        ),
    ],
    answers: &[
        Answer {
            status: 200,
            description: "The whole content.",
            content: Content::Bytes,
            headers: FILE_HEADERS,
        },
        Answer {
            status: 206,
            description: "The requested range.",
            content: Content::Bytes,
            headers: FILE_HEADERS,
        },
        Answer {
            status: 304,
            description: "The content has not changed.",
            content: Content::Empty,
            headers: &[],
        },
    ],
    errors: |_| {
        let private = Error::NotPermitted(Forbidden::PrivateFile);
        vec![Error::FileNotFound, private, Error::RangeNotSatisfiable(4096)]
    },
    ..Operation::EMPTY
};

/// The headers of a download.
const FILE_HEADERS: &[(&str, &str)] = &[
    ("Content-Disposition", "`attachment` with the name that the file had at upload."),
    ("ETag", "The SHA-256 of the content."),
    ("Last-Modified", "The time of the upload."),
    ("Accept-Ranges", "`bytes`."),
];

/// `GET /api/v1/uploads/{file_id}/download`: the content, or a range of it.
pub fn download(
    context: &mut RequestContext,
    user: &CurrentUser,
    id: Uuid,
) -> Result<Response, Error> {
    let file = find_readable(context.app, user, id)?;
    let content = context.app.storage.read(id, file.file_size as u64);
    // If the content is missing, the file may have been deleted since its record was read. Looking the record up again
    // turns that into a 404. A record that still exists without its content is an internal error.
    let content = content.or_else(|lost| find_readable(context.app, user, id).and(Err(lost)))?;
    file_response(&context.request, &file, content)
}

pub const UPDATE: Operation = Operation {
    id: "update_file",
    tag: Tag::Files,
    summary: "Change the metadata of a file",
    description: "Changes the fields that are given.",
    inputs: &[&FILE_CHANGE],
    answers: &[json::<File>(200, "The metadata after the change.")],
    errors: |_| vec![Error::FileNotFound, Error::NotPermitted(Forbidden::ForeignFile)],
    ..Operation::EMPTY
};

/// What may be changed of a file.
struct FileChange {
    filename: Option<String>,
    description: Option<String>,
    is_public: Option<bool>,
}

static FILE_CHANGE: Input<FileChange> = Input::json(read_file_change);

fn read_file_change(body: &mut Params) -> FileChange {
    let filename = body.optional("filename", filename::FILENAME);
    let description = body.optional("description", rules::DESCRIPTION);
    body.about("Whether every signed-in user may read the file.");
    FileChange { filename, description, is_public: body.boolean("is_public") }
}

/// `PUT /api/v1/uploads/{file_id}`: changes `filename`, `description` and `is_public`, each if it is given.
pub fn update(
    context: &mut RequestContext,
    user: &CurrentUser,
    id: Uuid,
) -> Result<Response, Error> {
    let FileChange { filename, description, is_public } = context.read(&FILE_CHANGE)?;
    let file = files::update(
        &context.app.db,
        id,
        user.id(),
        filename.as_deref(),
        description.as_deref(),
        is_public,
        &context.origin(),
    )?;
    response::json(200, &file)
}

pub const DELETE: Operation = Operation {
    id: "delete_file",
    tag: Tag::Files,
    summary: "Delete a file",
    answers: &[NO_CONTENT],
    errors: |_| vec![Error::FileNotFound, Error::NotPermitted(Forbidden::ForeignFile)],
    ..Operation::EMPTY
};

/// `DELETE /api/v1/uploads/{file_id}`: removes the record and then the content, so that no file is listed without its
/// content. While a backup runs, the content stays for it, until a later sweep.
pub fn delete(
    context: &mut RequestContext,
    user: &CurrentUser,
    id: Uuid,
) -> Result<Response, Error> {
    if files::delete(&context.app.db, id, user.id(), &context.origin())? {
        context.app.storage.remove(id);
    }
    Ok(response::no_content())
}

/// Finds a file that the user may read. Fails with [`Error::NotPermitted`] unless it is the user's own or public.
fn find_readable(app: &App, user: &CurrentUser, id: Uuid) -> Result<File, Error> {
    let file = files::find(&app.db, id)?;
    let may_read = file.is_public || file.user_id == user.id();
    if may_read { Ok(file) } else { Err(Error::NotPermitted(Forbidden::PrivateFile)) }
}
