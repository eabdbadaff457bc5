//! Lists and statistics for administrators.

use schemars::JsonSchema;
use serde::Serialize;

use super::paging::page_request;
use super::users::UPDATE;
use crate::api::context::{Admin, RequestContext};
use crate::api::openapi::{Operation, Tag, json};
use crate::db::stats;
use crate::db::users::{self, UserFilter, UserSort};
use crate::error::Error;
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::page::{Page, PageRequest};
use crate::model::rules;
use crate::model::user::{Profile, Role};

pub const LIST: Operation = Operation {
    id: "admin_list_users",
    tag: Tag::Administration,
    summary: "List accounts, and how much each has stored",
    description: "Newest first.",
    inputs: &[&LIST_QUERY],
    answers: &[json::<Page<Profile>>(200, "A page of the accounts that match all filters.")],
    errors: |_| vec![Error::OffsetOutOfRange, Error::LimitOutOfRange],
    ..Operation::EMPTY
};

static LIST_QUERY: Input<(UserFilter, Result<PageRequest, Error>)> =
    Input::query(|query| (read_filter(query), page_request(query)));

fn read_filter(query: &mut Params) -> UserFilter {
    query.about("A part of the username or the e-mail address. Not case-sensitive.");
    UserFilter {
        search: query.optional("search", rules::SEARCH_PART),
        role: query.choice("role", &Role::CHOICES),
        is_active: query.boolean("active"),
        ..UserFilter::default()
    }
}

/// `GET /api/v1/admin/users`: a page of accounts with `stats`, newest first.
pub fn list(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (filter, page) = context.read(&LIST_QUERY)?;
    let page = page?;
    let db = &context.app.db;
    let (users, total) = users::list(db, &filter, UserSort::CreatedAt, true, page)?;
    let profiles = users.iter().map(Profile::of).collect();
    response::json(200, &Page::new(profiles, total, page))
}

/// The operation of `PUT /api/v1/admin/users/{user_id}`, which has the same handler as `PUT /api/v1/users/{user_id}`.
pub const UPDATE_USER: Operation =
    Operation { id: "admin_update_user", tag: Tag::Administration, ..UPDATE };

pub const STATS: Operation = Operation {
    id: "admin_get_statistics",
    tag: Tag::Administration,
    summary: "Show totals of users, files and storage",
    description: "Months are calendar months in UTC. Deleted accounts and their files do not count.",
    answers: &[json::<Statistics>(200, "The totals of this moment.")],
    ..Operation::EMPTY
};

#[derive(Serialize, JsonSchema)]
struct Statistics {
    users: UserStatistics,
    files: FileStatistics,
    storage: StorageStatistics,
}

#[derive(Serialize, JsonSchema)]
struct UserStatistics {
    total: i64,
    active: i64,
    new_this_month: i64,
}

#[derive(Serialize, JsonSchema)]
struct FileStatistics {
    total: i64,
    /// In bytes.
    total_size: i64,
    uploads_this_month: i64,
}

#[derive(Serialize, JsonSchema)]
struct StorageStatistics {
    /// In bytes.
    used: i64,
    /// In bytes.
    quota: u64,
    /// `used` as a percentage of `quota`, rounded to two decimal places.
    usage_percentage: f64,
}

/// `GET /api/v1/admin/stats`: totals of users, files and storage.
pub fn stats(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let totals = stats::totals(&context.app.db)?;
    let quota = context.app.config.storage_quota;
    let percent = totals.bytes as f64 / quota as f64 * 100.0;
    let body = Statistics {
        users: UserStatistics {
            total: totals.users,
            active: totals.active_users,
            new_this_month: totals.new_users,
        },
        files: FileStatistics {
            total: totals.files,
            total_size: totals.bytes,
            uploads_this_month: totals.new_files,
        },
        storage: StorageStatistics {
            used: totals.bytes,
            quota,
            usage_percentage: (percent * 100.0).round() / 100.0,
        },
    };
    response::json(200, &body)
}
