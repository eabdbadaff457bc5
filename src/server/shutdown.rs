//! `SIGTERM` and `SIGINT`: the first of them asks the process to stop, the second ends it at once.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Exit status of the process after a second signal.
const FORCED_EXIT_STATUS: i32 = 1;

/// Whether the process was asked to stop. It can be polled, waited for, and watched together with other sockets.
pub struct ShutdownSignal {
    requested: Arc<AtomicBool>,
    /// One end of a socket pair; the signal handlers write a byte to the other.
    receiver: UnixStream,
    /// What a stop begins with, see [`ShutdownSignal::begin_stop`].
    begin_stop: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl ShutdownSignal {
    /// Installs handlers of both signals.
    pub fn on_signals() -> io::Result<ShutdownSignal> {
        let requested = Arc::new(AtomicBool::new(false));
        let (receiver, sender) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT] {
            // Handlers run in the order of registration. The first one exits if the flag is set already, which it
            // is not yet at the first signal.
            flag::register_conditional_shutdown(signal, FORCED_EXIT_STATUS, requested.clone())?;
            flag::register(signal, requested.clone())?;
            low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(ShutdownSignal { requested, receiver, begin_stop: Box::new(|| Duration::ZERO) })
    }

    /// Has a server call `begin_stop` when it has accepted its last connection. That returns how long open requests may
    /// take to finish.
    pub fn calling(
        self,
        begin_stop: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> ShutdownSignal {
        ShutdownSignal { begin_stop: Box::new(begin_stop), ..self }
    }

    /// Says that no more connections are accepted. Returns how long open requests may take to finish.
    pub fn begin_stop(&self) -> Duration {
        (self.begin_stop)()
    }

    /// Whether a signal has arrived.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }

    /// The flag behind [`ShutdownSignal::is_requested`], for threads that outlive this value.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.requested.clone()
    }

    /// Blocks until a signal has arrived.
    pub fn wait(&self) {
        // A read that fails or is interrupted is repeated: only the flag counts.
        while !self.is_requested() {
            let _ = (&self.receiver).read(&mut [0]);
        }
    }

    /// A file descriptor for `poll` that becomes readable at the first signal and stays so until [`Self::wait`].
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}
