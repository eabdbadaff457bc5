//! Pages of a list.

use serde::Serialize;

/// Which page of a list a client asks for.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    /// The number of the page; the first one is 1.
    pub page: i64,
    /// Items on a page, from 1 to [`PageRequest::MAX_SIZE`].
    pub size: i64,
}

impl PageRequest {
    /// Most items on a page.
    pub const MAX_SIZE: i64 = 100;

    /// How many items lie before the page. Where that exceeds 64 bits it is `i64::MAX`, which is past the end of any
    /// list as well.
    pub fn offset(self) -> i64 {
        (self.page - 1).saturating_mul(self.size)
    }
}

/// One page of a list, with the size of the whole list, as clients see it.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    items: Vec<T>,
    total: i64,
    page: i64,
    size: i64,
    pages: i64,
}

impl<T> Page<T> {
    /// The page of `items` that was `asked` for, out of a list of `total` items.
    pub fn new(items: Vec<T>, total: i64, asked: PageRequest) -> Page<T> {
        Page {
            items,
            total,
            page: asked.page,
            size: asked.size,
            pages: total.div_euclid(asked.size) + i64::from(total % asked.size > 0),
        }
    }
}
