//! What the queries of all lists have in common: which page, and the direction of the order.

use crate::error::Error;
use crate::http::params::Params;
use crate::http::request::Request;
use crate::model::page::PageRequest;
use crate::model::rules;

/// The size of a page in a request that gives none.
const DEFAULT_SIZE: i64 = 20;

/// Reads the query of a list: what `read` takes from it, and the page that is asked for.
pub fn list_query<T>(
    request: &Request,
    read: impl FnOnce(&mut Params) -> T,
) -> Result<(T, PageRequest), Error> {
    let (value, page) = request.query(|query| (read(query), page_request(query)))?;
    Ok((value, page?))
}

/// Reads a page in one of two forms, `page` and `size` or `limit` and `offset`. The first form's values out of range
/// are errors of their fields (422), like the use of both forms at once; the second form's are requests that fail with
/// 400.
fn page_request(query: &mut Params) -> Result<PageRequest, Error> {
    let is_page = query.has("page") || query.has("size");
    let by_offset = ["limit", "offset"].map(|name| (name, query.has(name)));
    if is_page || by_offset.iter().all(|(_, is_given)| !is_given) {
        for (name, _) in by_offset.into_iter().filter(|(_, is_given)| *is_given) {
            query.add_error(name, rules::not_beside("page or size"));
        }
        let page = query.integer("page", 1, 1..=i64::MAX);
        let size = query.integer("size", DEFAULT_SIZE, 1..=PageRequest::MAX_SIZE);
        return Ok(PageRequest::by_page(page, size));
    }
    let limit = query.integer("limit", DEFAULT_SIZE, i64::MIN..=i64::MAX);
    let offset = query.integer("offset", 0, i64::MIN..=i64::MAX);
    PageRequest::by_offset(limit, offset)
}

/// Reads `sort_order`, which all sorted lists take. Descending is the default.
pub fn is_descending(query: &mut Params) -> bool {
    query.choice("sort_order", &[("asc", false), ("desc", true)]).unwrap_or(true)
}
