//! Pages of lists.

use serde::Serialize;

/// Most items of a page.
pub const MAX_SIZE: i64 = 100;

/// Which page a client asks for.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest {
    /// From 1.
    pub page: i64,
    /// Items of a page, 1 to [`MAX_SIZE`].
    pub size: i64,
}

impl PageRequest {
    /// Items before the page.
    pub fn offset(self) -> i64 {
        (self.page - 1).saturating_mul(self.size)
    }
}

/// The page envelope of spec.md.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    items: Vec<T>,
    total: i64,
    page: i64,
    size: i64,
    pages: i64,
}

impl<T> Page<T> {
    /// The page that was asked for, of `total` items in all.
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
