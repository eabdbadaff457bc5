//! `SIGTERM` and `SIGINT`: the first asks the process to stop, the second ends it.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Exit status after the second signal.
const IMPATIENT: i32 = 1;

/// Whether the process was asked to stop.
pub struct ShutdownSignal {
    asked: Arc<AtomicBool>,
    woken: UnixStream,
}

impl ShutdownSignal {
    /// Listens to both signals from now on.
    pub fn on_signals() -> io::Result<ShutdownSignal> {
        let asked = Arc::new(AtomicBool::new(false));
        let (woken, wake) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT] {
            // In this order: at the first signal the flag is not set yet.
            flag::register_conditional_shutdown(signal, IMPATIENT, asked.clone())?;
            flag::register(signal, asked.clone())?;
            low_level::pipe::register(signal, wake.try_clone()?)?;
        }
        Ok(ShutdownSignal { asked, woken })
    }

    /// True since the first signal.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// The flag itself, to look at it from elsewhere.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.asked.clone()
    }

    /// Returns at the first signal.
    pub fn wait(&self) {
        // A failed read is tried again; the flag is what counts.
        while !self.is_asked() {
            let _ = (&self.woken).read(&mut [0]);
        }
    }

    /// Becomes readable at the first signal.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}
