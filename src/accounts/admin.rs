//! Lists and statistics, for administrators.

use serde_json::json;

use super::handlers::find_page;
use crate::db::stats;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::page::Page;
use crate::model::user::Profile;
use crate::request::context::RequestContext;
use crate::request::identity::SignedInAdmin;

/// `GET /api/v1/admin/users`: a page of accounts with `stats`, filtered and sorted as those of `GET /api/v1/users`.
pub fn list(context: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    let (users, total, page) = find_page(context)?;
    let quotas = context.app.file_quotas();
    let profiles = users.iter().map(|user| Profile::of(user, &quotas)).collect();
    response::json(200, &Page::new(profiles, total, page))
}

/// `GET /api/v1/admin/stats`: totals of users, files and storage, which is in bytes. How much of the quota is used is a
/// percentage with two decimal places. The version is that of the program.
pub fn stats(context: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    let (users, files) = stats::totals(&context.db)?;
    let (used, quota) = (files.total_size, context.app.config.storage_quota);
    let percent = used as f64 / quota as f64 * 100.0;
    let usage_percentage = (percent * 100.0).round() / 100.0;
    let storage = json!({
        "used": used, "quota": quota, "usage_percentage": usage_percentage, "deleted": files.deleted_size
    });
    let version = env!("CARGO_PKG_VERSION");
    response::json(
        200,
        &json!({ "users": users, "files": files, "storage": storage, "version": version }),
    )
}
