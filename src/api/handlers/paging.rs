//! The query parameters that all lists have in common: the page, and the direction of sorting.

use crate::error::Error;
use crate::http::params::Params;
use crate::http::request::Request;
use crate::model::page::PageRequest;
use crate::model::rules;

/// The size of a page in a request that gives none.
const DEFAULT_SIZE: i64 = 20;

/// Reads the query of a list: the parameters that `read` takes from it, and which page is asked for.
pub fn list_query<T>(
    request: &Request,
    read: impl FnOnce(&mut Params) -> T,
) -> Result<(T, PageRequest), Error> {
    let (value, page) = request.query(|query| (read(query), page_request(query)))?;
    Ok((value, page?))
}

/// Reads which page is asked for, either as `page` and `size` or as `limit` and `offset`. Giving both is a field error
/// (422), and so is a `page` or `size` out of range. A `limit` or `offset` out of range is the inner error (400).
fn page_request(query: &mut Params) -> Result<PageRequest, Error> {
    let is_by_page = query.has("page") || query.has("size");
    let given = ["limit", "offset"].into_iter().filter(|name| query.has(name)).collect::<Vec<_>>();
    if is_by_page || given.is_empty() {
        for name in given {
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
