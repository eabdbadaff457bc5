//! Lists and statistics for administrators.

use serde_json::json;

use super::paging::page_request;
use crate::api::context::RequestContext;
use crate::api::middleware::identity::Admin;
use crate::db::stats;
use crate::db::users::{self, UserFilter, UserSort};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::page::Page;
use crate::model::rules;
use crate::model::user::{Profile, Role};

fn read_filter(query: &mut Params) -> UserFilter {
    UserFilter {
        search: query.optional("search", rules::search_part),
        role: query.choice("role", &Role::CHOICES),
        is_active: query.boolean("active"),
        ..UserFilter::default()
    }
}

/// `GET /api/v1/admin/users`: a page of accounts with `stats`, newest first.
pub fn list(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (filter, page) =
        context.request.query().read(|query| (read_filter(query), page_request(query)))?;
    let page = page?;
    let db = &context.app.db;
    let (users, total) = users::list(db, &filter, UserSort::CreatedAt, true, page)?;
    let profiles = users.iter().map(Profile::of).collect();
    response::json(200, &Page::new(profiles, total, page))
}

/// `GET /api/v1/admin/stats`: totals of users, files and storage, which is in bytes. How much of the quota is used is a
/// percentage with two decimal places.
pub fn stats(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (users, files) = stats::totals(&context.app.db)?;
    let (used, quota) = (files.total_size, context.app.config.storage_quota);
    let percent = used as f64 / quota as f64 * 100.0;
    let usage_percentage = (percent * 100.0).round() / 100.0;
    let storage = json!({ "used": used, "quota": quota, "usage_percentage": usage_percentage });
    response::json(200, &json!({ "users": users, "files": files, "storage": storage }))
}
