//! The admin pages: users with what they store, and statistics.

use serde_json::json;

use crate::api::context::RequestContext;
use crate::api::middleware::authenticate::Admin;
use crate::db::stats;
use crate::db::users::{self, UserFilter, UserSort};
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::page::{MAX_SIZE, Page, PageRequest};
use crate::model::rules;
use crate::model::user::{Profile, Role};

/// `GET /api/v1/admin/users`: a page of full Users with `stats`, newest first.
pub fn list(context: &RequestContext, _: &Admin) -> Result<Response, Error> {
    let (filter, asked) = context.request.query(|query| {
        let filter = UserFilter {
            search: query.optional("search", rules::part),
            role: query.choice("role", &Role::CHOICES),
            is_active: query.optional("active", rules::boolean),
            ..UserFilter::default()
        };
        let asked = PageRequest {
            page: query.integer("page", 1, 1..=i64::MAX),
            size: query.integer("size", 20, 1..=MAX_SIZE),
        };
        (filter, asked)
    })?;
    let db = &context.app.db;
    let (sort, limit, offset) = (UserSort::CreatedAt, asked.size, asked.offset());
    let (users, total) = users::list(db, &filter, sort, true, limit, offset)?;
    let profiles = users.iter().map(Profile::of).collect();
    response::json(200, &Page::new(profiles, total, asked))
}

/// `GET /api/v1/admin/stats`: totals of users, files and storage.
pub fn stats(context: &RequestContext, _: &Admin) -> Result<Response, Error> {
    let totals = stats::totals(&context.app.db)?;
    let quota = context.app.config.storage_quota;
    let percent = totals.bytes as f64 / quota as f64 * 100.0;
    response::json(
        200,
        &json!({
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
        }),
    )
}
