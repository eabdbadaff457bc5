//! Requests for password resets. A handler only stores the address that was typed; here it is looked up. So the time of
//! the response does not tell whether an account has the address (OWASP, "Forgot Password Cheat Sheet").

use super::{Background, Progress};
use crate::db;
use crate::error::Error;

/// Turns up to a hundred requests into messages in the outbox, or drops them.
pub fn queue_messages(background: &Background) -> Result<Progress, Error> {
    let queued = db::resets::queue_messages(&background.db)?;
    if queued.messages > 0 {
        // If the channel is full, the thread is about to look for messages anyway.
        let _ = background.wake_mail.try_send(());
    }
    Ok(Progress::after_batch(queued.requests))
}
