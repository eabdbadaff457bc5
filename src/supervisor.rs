//! What the process tells the supervisor that has started it, such as systemd, over the socket in `NOTIFY_SOCKET`
//! (sd_notify(3)): that it serves, that it stops, and meanwhile what it does. Nobody depends on being heard: without a
//! socket nothing happens, and a message that cannot be sent is lost.

use std::time::Duration;

use sd_notify::{NotifyState, notify};

/// A step may take its whole time, and the supervisor must not give the process up just then.
const GRACE: Duration = Duration::from_secs(10);

/// The start has reached a step that takes at most `max`: until then the supervisor must not give it up.
pub fn starting(step: &str, max: Duration) {
    send(step, &[extension(max)]);
}

/// The start has failed.
pub fn failed(reason: &str) {
    send(reason, &[]);
}

/// The port is open and requests are answered.
pub fn ready(address: std::net::SocketAddr) {
    send(&format!("Listening on http://{address}"), &[NotifyState::Ready]);
}

/// No more connections are accepted, and open requests may take `max` to finish.
pub fn stopping(max: Duration) {
    send("Stopping: open requests are finished", &[NotifyState::Stopping, extension(max)]);
}

/// Asks for the time that a step may take.
fn extension(max: Duration) -> NotifyState<'static> {
    let microseconds = (max + GRACE).as_micros();
    NotifyState::ExtendTimeoutUsec(u32::try_from(microseconds).unwrap_or(u32::MAX))
}

/// Sends a change of state and a line that says more. The line ends at a line break: the next line would be a message
/// of its own.
fn send(status: &str, states: &[NotifyState]) {
    let status = status.replace(char::is_control, " ");
    // Without a place to send it to there is nobody to tell.
    let _ = notify(&[states, &[NotifyState::Status(&status)]].concat());
}
