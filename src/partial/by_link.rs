//! Uploads in several requests by links to send files by. Whoever has the link neither can nor learns anything else.

use percent_encoding::utf8_percent_encode;
use uuid::Uuid;

use super::handlers::{begin, give_up, go_on, show_whole};
use super::metadata::check_version;
use super::statements::Whose;
use super::writing::Place;
use crate::error::{Error, FieldError, FieldLocation};
use crate::http::response::Response;
use crate::links::handlers::PATH_SEGMENT;
use crate::links::sending::{self, LinkToSend};
use crate::model::rules;
use crate::request::context::RequestContext;

/// Where the uploads by a link are found.
fn place<'a>(context: &RequestContext, link: &'a LinkToSend) -> Place<'a> {
    let token = context.path_params.first().map_or("", |param| &*param.text);
    let path = format!("/api/v1/links/{}/partial", utf8_percent_encode(token, PATH_SEGMENT));
    let whose = Whose { user: link.owner.id, link: Some(link.id) };
    Place { owner: &link.owner, whose, user: None, path }
}

/// The link in the path of a request, and the id of the upload.
fn find(context: &RequestContext) -> Result<(LinkToSend, Uuid), Error> {
    check_version(&context.request)?;
    let link = sending::find(context)?;
    let id = context.path_params.get(1).map_or("", |param| &*param.text);
    let (location, field) = (FieldLocation::Path, Some("upload_id"));
    let invalid = |problem| Error::Invalid(vec![FieldError { location, field, problem }]);
    Ok((link, rules::uuid(id).map_err(invalid)?))
}

/// `POST /api/v1/links/{token}/partial`: begins an upload, perhaps with its first bytes.
pub fn create(context: &mut RequestContext) -> Result<Response, Error> {
    let link = sending::find_limited(context)?;
    let app = context.app;
    let _under_way = sending::begin(app, &link, context.client)?;
    let folder = link.folder.clone();
    begin(context, &place(context, &link), Some(folder))
}

/// `HEAD /api/v1/links/{token}/partial/{upload_id}`: how far an upload has come.
pub fn show(context: &mut RequestContext) -> Result<Response, Error> {
    let (link, id) = find(context)?;
    show_whole(context, &place(context, &link), id)
}

/// `PATCH /api/v1/links/{token}/partial/{upload_id}`: adds bytes to an upload.
pub fn append(context: &mut RequestContext) -> Result<Response, Error> {
    let (link, id) = find(context)?;
    let app = context.app;
    let _under_way = sending::begin(app, &link, context.client)?;
    go_on(context, &place(context, &link), id)
}

/// `DELETE /api/v1/links/{token}/partial/{upload_id}`: ends an upload.
pub fn delete(context: &mut RequestContext) -> Result<Response, Error> {
    let (link, id) = find(context)?;
    give_up(context, place(context, &link).whose, id)
}
