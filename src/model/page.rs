//! Pages of a list.

use serde::Serialize;

use crate::error::Error;

/// Which part of a list a client asks for, both as a page number and as an offset, because responses use both.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    /// The number of the page; the first one is 1.
    pub page: i64,
    /// Most items on the page, from 1 to [`PageRequest::MAX_SIZE`].
    pub size: i64,
    /// How many items of the list come before the first one of the page.
    pub offset: i64,
}

impl PageRequest {
    /// Most items on a page.
    pub const MAX_SIZE: i64 = 100;

    /// A page by its number and size, both of which must be in range. If the offset exceeds 64 bits it is
    /// `i64::MAX`, which is past the end of any list as well.
    pub fn by_page(page: i64, size: i64) -> PageRequest {
        PageRequest { page, size, offset: (page - 1).saturating_mul(size) }
    }

    /// At most `limit` items after the first `offset` ones. Its page is the one on which the first of them would be.
    /// Fails with [`Error::OffsetOutOfRange`] or [`Error::LimitOutOfRange`].
    pub fn by_offset(limit: i64, offset: i64) -> Result<PageRequest, Error> {
        if offset < 0 {
            return Err(Error::OffsetOutOfRange);
        }
        if !(1..=PageRequest::MAX_SIZE).contains(&limit) {
            return Err(Error::LimitOutOfRange);
        }
        Ok(PageRequest { page: (offset / limit).saturating_add(1), size: limit, offset })
    }
}

/// One page of a list, with the size of the whole list.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    items: Vec<T>,
    /// How many items the list has, on all pages.
    total: i64,
    page: i64,
    size: i64,
    /// How many pages the list has; 0 if it is empty.
    pages: i64,
}

impl<T> Page<T> {
    /// The page with these items, as it was requested, out of a list of `total` items.
    pub fn new(items: Vec<T>, total: i64, request: PageRequest) -> Page<T> {
        Page {
            items,
            total,
            page: request.page,
            size: request.size,
            pages: total.div_euclid(request.size) + i64::from(total % request.size > 0),
        }
    }
}
