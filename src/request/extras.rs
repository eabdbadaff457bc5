//! What the features beyond the specification keep longer than a request.

pub mod writers;

use std::sync::Arc;

use super::link_permits::LinkPermits;
use super::waiters::Waiters;
use writers::Writers;

/// A part of the application.
pub struct Extras {
    pub link_permits: LinkPermits,
    pub waiters: Arc<Waiters>,
    /// Of uploads that come in several requests.
    pub writers: Writers,
}

impl Extras {
    pub fn new() -> Extras {
        let waiters = Arc::new(Waiters::new());
        Extras { link_permits: LinkPermits::new(), waiters, writers: Writers::default() }
    }
}
