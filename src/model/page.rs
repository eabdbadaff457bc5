//! Pages of a list.

use serde::Serialize;

/// Which page a client asks for.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    /// The first page is 1.
    pub page: i64,
    /// Items of one page, 1 to [`PageRequest::MAX_SIZE`].
    pub size: i64,
}

impl PageRequest {
    /// Most items of one page.
    pub const MAX_SIZE: i64 = 100;

    /// How many items lie before the page. Beyond 64 bits it stays at the largest number, which is past the end
    /// of any list.
    pub fn offset(self) -> i64 {
        (self.page - 1).saturating_mul(self.size)
    }
}

/// A page as clients see it.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    items: Vec<T>,
    total: i64,
    page: i64,
    size: i64,
    pages: i64,
}

impl<T> Page<T> {
    /// The `items` of the page that was asked for, out of `total` in all.
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
