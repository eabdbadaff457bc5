//! Lists and statistics for administrators.

use serde_json::json;

use super::paging::list_query;
use crate::api::context::{Admin, RequestContext};
use crate::db::stats;
use crate::db::users::{self, UserFilter, UserSort};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::page::Page;
use crate::model::rules;
use crate::model::user::{Profile, Role};

/// `GET /api/v1/admin/users`: a page of accounts with `stats`, newest first.
pub fn list(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (filter, page) = list_query(&context.request, read_filter)?;
    let db = &context.app.db;
    let (users, total) = users::list(db, &filter, UserSort::CreatedAt, true, page)?;
    let profiles = users.iter().map(Profile::of).collect();
    response::json(200, &Page::new(profiles, total, page))
}

fn read_filter(query: &mut Params) -> UserFilter {
    UserFilter {
        search: query.optional("search", rules::search_part),
        role: query.choice("role", &Role::CHOICES),
        is_active: query.boolean("active"),
        ..UserFilter::default()
    }
}

/// `GET /api/v1/admin/stats`: totals of users, files and storage.
pub fn stats(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let totals = stats::totals(&context.app.db)?;
    let quota = context.app.config.storage_quota;
    let percent = totals.bytes as f64 / quota as f64 * 100.0;
    let body = json!({
        "users": {
            "total": totals.users,
            "active": totals.active_users,
            "new_this_month": totals.new_users,
        },
        "files": {
            "total": totals.files,
            "total_size": totals.bytes,
            "uploads_this_month": totals.new_files,
        },
        "storage": {
            "used": totals.bytes,
            "quota": quota,
            "usage_percentage": (percent * 100.0).round() / 100.0,
        },
    });
    response::json(200, &body)
}
