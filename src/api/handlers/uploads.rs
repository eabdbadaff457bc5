//! The files of users: upload, list, download, change and delete.

use std::ops::Range;

use uuid::Uuid;

use super::upload_form;
use crate::api::app::App;
use crate::api::context::RequestContext;
use crate::api::middleware::identity::{self, CurrentUser, json_body};
use crate::db::files::{self, FileQuery, FileSort};
use crate::db::uploads::{self, FileQuotas, NewFile};
use crate::error::{Error, Forbidden};
use crate::http::file_response::{FileUse, file_response};
use crate::http::params::Params;
use crate::http::response::{self, FileRange, Response, ResponseBody};
use crate::model::file::File;
use crate::model::page::Page;
use crate::model::{filename, media_type, rules};
use crate::storage::Content;

/// `POST /api/v1/uploads`: stores a file. The form has the field `file` and optionally `description`, in any order. The
/// content is safely stored before it is recorded in the database and the response sent.
pub fn create(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let app = context.app;
    let left = left_for_file(context, user)?;
    let stored =
        upload_form::receive(context, left).and_then(|mut file| Ok((file.draft.commit()?, file)));
    // A store may take long, too.
    identity::check_again_if_late(context, user)?;
    let (hash, file) = stored?;
    let draft = file.draft;
    let (size, origin) = (draft.size(), context.origin());
    let upload = NewFile {
        id: draft.id(),
        user: user.id(),
        filename: file.filename,
        content_type: file.content_type,
        size,
        hash,
        description: file.description,
        address: origin.address,
        request_id: origin.request_id,
    };
    let quotas = FileQuotas {
        user_bytes: app.config.user_storage_quota,
        user_files: app.config.user_file_quota,
        service_bytes: app.config.storage_quota,
        young_bytes: app.config.young_storage_quota(),
    };
    let recorded = app.uploads.record(&context.db, upload, &quotas);
    match &recorded {
        Ok(_) => app.stored_bytes.add(size),
        Err(_) => app.stored_bytes.forget(),
    }
    // If it is unknown whether the file was recorded, also because of a panic, the content stays. The sweep removes it
    // later if it has no record.
    if matches!(recorded, Ok(_) | Err(Error::OutcomeUnknown | Error::Internal(_))) {
        draft.keep();
    }
    response::json(201, &recorded?)
}

/// How many bytes another file of the user may have, by what the quotas have left. Fails with [`Error::StorageFull`]
/// if a quota is used up already, so that no body is received in vain. The database decides in the end: uploads that
/// run at once see the same numbers.
fn left_for_file(context: &RequestContext, user: &CurrentUser) -> Result<u64, Error> {
    let (app, config) = (context.app, &context.app.config);
    let stats = user.account.stats;
    let used = u64::try_from(stats.total_storage_used).unwrap_or(0);
    let own_left = config.user_storage_quota.saturating_sub(used);
    if own_left == 0 || stats.total_uploads >= i64::from(config.user_file_quota) {
        return Err(Error::StorageFull);
    }
    let wanted = own_left.min(config.max_upload_size);
    let mut left = app.stored_bytes.left(&context.db, config.storage_quota, wanted)?;
    let (stored, young_quota) = (config.storage_quota - left, config.young_storage_quota());
    if user.account.is_young() && stored + wanted > young_quota {
        let of_young =
            uploads::left_to_young_accounts(&context.db, user.id(), wanted, young_quota)?;
        left = left.min(of_young.unwrap_or(left));
    }
    if left == 0 { Err(Error::StorageFull) } else { Ok(own_left.min(left)) }
}

/// Lists that may read more files than this take their turn, as searches do: those of a type are counted, and a page
/// far out comes after the others.
const MANY_FILES: i64 = 1000;

/// `GET /api/v1/uploads`: a page of the user's own files, filtered and sorted.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let (query, page) =
        context.request.query().read(|query| (read_file_query(query), query.page()))?;
    let page = page?;
    let files = user.account.stats.total_uploads;
    let most_read = if query.content_type.is_some() { files } else { files.min(page.offset) };
    let needs_turn = query.search.is_some() || most_read > MANY_FILES;
    let App { db, config, turns, .. } = context.app;
    let (network, timeout) = (context.limited_network(), config.database_timeout);
    let _turn = needs_turn.then(|| turns.search(user.id(), network, timeout)).transpose()?;
    let (files, total) = files::list(db, user.id(), &query, page)?;
    let types = &config.allowed_upload_types;
    let files = files.into_iter().map(|file| file.with_listed_type(types)).collect();
    response::json(200, &Page::new(files, total, page))
}

fn read_file_query(query: &mut Params) -> FileQuery {
    let columns = [
        ("upload_date", FileSort::UploadDate),
        ("uploaded_at", FileSort::UploadDate),
        ("filename", FileSort::Filename),
        ("file_size", FileSort::Size),
    ];
    let content_type = query.filter("content_type", rules::search);
    FileQuery {
        search: query.filter("search", rules::search),
        content_type: content_type.map(|name| {
            let name = name.to_ascii_lowercase();
            media_type::spellings(&name).into_iter().map(str::to_owned).collect()
        }),
        sort: query.choice("sort_by", &columns).unwrap_or(FileSort::UploadDate),
        descending: query.is_descending(),
    }
}

/// `GET /api/v1/uploads/{file_id}`: the file's metadata.
pub fn show(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let id = context.path_id()?;
    response::json(200, &find_readable(context, user, id)?)
}

/// `GET /api/v1/uploads/{file_id}/download`: the content, or a range of it.
pub fn download(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let id = context.path_id()?;
    download_response(context, || Ok((find_readable(context, user, id)?, FileUse::Download)))
}

/// Responds with the content of the file that `find` finds, or a range of it.
pub fn download_response(
    context: &RequestContext,
    find: impl Fn() -> Result<(File, FileUse), Error>,
) -> Result<Response, Error> {
    let (file, file_use) = find()?;
    let (storage, size) = (&context.app.storage, file.file_size as u64);
    // Of the content of a response that has none, it only matters that it is there.
    let is_head = context.request.method() == "HEAD";
    let open = |range: Range<u64>| {
        let (offset, length) = (range.start, range.end - range.start);
        let part = if is_head { 0..0 } else { range };
        // If the content is missing, the file may have been deleted since its record was read. Looking the record up
        // again turns that into a 404. A record that still exists without its content is an internal error.
        let content = storage.read(file.id, size, &file.file_hash, part);
        Ok(match content.or_else(|lost| find().and(Err(lost)))? {
            Content::File(file) => ResponseBody::File(FileRange { file, offset, length }),
            Content::Stream(reader) => ResponseBody::Stream(reader, length),
        })
    };
    file_response(&context.request, &file, file_use, open)
}

/// Reads the new filename, description, and whether the file is public.
fn read_file_change(body: &mut Params) -> (Option<String>, Option<String>, Option<bool>) {
    let filename = body.optional("filename", filename::filename);
    (filename, body.optional("description", rules::description), body.boolean("is_public"))
}

/// `PUT /api/v1/uploads/{file_id}`: changes `filename`, `description` and `is_public`, each if it is given.
pub fn update(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let id = context.path_id()?;
    let app = context.app;
    let (filename, description, is_public) = json_body(context, user)?.read(read_file_change)?;
    let file = files::update(
        &context.db,
        id,
        user.id(),
        filename.as_deref(),
        description.as_deref(),
        is_public,
        &context.origin(),
    )?;
    response::json(200, &file.with_listed_type(&app.config.allowed_upload_types))
}

/// `DELETE /api/v1/uploads/{file_id}`: removes the record and then the content, so that no file is listed without its
/// content. While a backup runs, the content stays for it, until a later sweep; in a store it stays for some days.
pub fn delete(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let id = context.path_id()?;
    if files::delete(&context.db, id, user.id(), &context.origin())? {
        context.app.storage.discard(&[id]);
    }
    Ok(response::no_content())
}

/// Finds a file that the user may read. Fails with [`Error::NotPermitted`] unless it is the user's own or public.
fn find_readable(context: &RequestContext, user: &CurrentUser, id: Uuid) -> Result<File, Error> {
    let file = files::find(&context.db, id)?;
    let file = file.with_listed_type(&context.app.config.allowed_upload_types);
    let may_read = file.is_public || file.user_id == user.id();
    if may_read { Ok(file) } else { Err(Error::NotPermitted(Forbidden::PrivateFile)) }
}
