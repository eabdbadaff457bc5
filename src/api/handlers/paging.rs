//! The query parameters that all lists have in common: the page, and the direction of sorting.

use crate::error::Error;
use crate::http::params::Params;
use crate::model::page::PageRequest;
use crate::model::{problems, rules};

/// The size of a page in a request that gives none.
const DEFAULT_SIZE: i64 = 20;

/// Reads which page is asked for, either as `page` and `size` or as `limit` and `offset`. Giving both is a field error
/// (422), and so is a `page` or `size` out of range. A `limit` or `offset` out of range is the inner error (400).
pub fn page_request(query: &mut Params) -> Result<PageRequest, Error> {
    let is_by_page = query.has("page") || query.has("size");
    let page = query.integer("page", 1, 1..=i64::MAX);
    let size = query.integer("size", DEFAULT_SIZE, 1..=PageRequest::MAX_SIZE);
    let limit = query.optional("limit", rules::any_integer);
    let offset = query.optional("offset", rules::any_integer);
    if limit.is_none() && offset.is_none() {
        return Ok(PageRequest::by_page(page, size));
    }
    if is_by_page {
        for (name, value) in [("limit", limit), ("offset", offset)] {
            if value.is_some() {
                query.add_error(name, problems::not_beside("page or size"));
            }
        }
    }
    PageRequest::by_offset(limit.unwrap_or(DEFAULT_SIZE), offset.unwrap_or(0))
}

/// Reads `sort_order`, which all sorted lists take. Descending is the default.
pub fn is_descending(query: &mut Params) -> bool {
    query.choice("sort_order", &[("asc", false), ("desc", true)]).unwrap_or(true)
}
