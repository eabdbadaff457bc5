//! Files of Cloakroom in which threads wait for each other, compiled with the locks, channels and atomics of `shuttle`
//! in place of those of the standard library. It runs the threads of a test one at a time, and whenever one uses any of
//! these, it chooses which thread goes on.
//!
//! The files are those of the program, unchanged: in this crate the name `std` means the crate itself. What they use of
//! other files is here as short as it can be. The tests are in `main.rs`, which is a test of Cloakroom. It cannot hold
//! this too, because the unit tests in the files, which need real threads, would be a part of it.

extern crate self as std;
extern crate std as real;

pub use real::{collections, hash, io, mem, net, os, time};
pub use shuttle;

#[path = "../../src/db/batches.rs"]
pub mod batches;
#[path = "../../src/http/client_address.rs"]
pub mod client_address;
#[path = "../../src/server/connections.rs"]
pub mod connections;
#[path = "../../src/semaphore.rs"]
pub mod semaphore;

pub mod http {
    pub use crate::client_address;
}

pub mod error {
    #[derive(Clone, Debug, PartialEq)]
    pub enum Error {
        TimedOut,
        Internal(String),
    }
}

pub mod body_memory {
    use std::time::Instant;

    /// As in `src/body_memory.rs`.
    pub trait Client: Send + Sync {
        fn waiting_since(&self) -> Option<Instant>;
        fn evict(&self, since: Instant);
        fn is_evicted(&self) -> bool;
        fn stop_reading(&self);
    }
}

/// What `connections.rs` uses of `src/server/limits.rs`. No test takes so long.
pub mod limits {
    use std::time::Duration;

    pub const MAX_CLIENT_STOP: Duration = Duration::from_secs(3600);
    pub const MAX_LINGER: (Duration, usize) = (Duration::ZERO, 0);
    pub const MAX_PROXY_LINGER: (Duration, usize) = (Duration::ZERO, 0);
    pub const RETRY_PAUSE: Duration = Duration::from_secs(3600);
    pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(3600);
    pub const STOP_PERIOD: Duration = Duration::from_secs(3600);
}

/// Those of `shuttle`, but for the waits with a timeout, because its own never time out. Here a timeout of zero is over
/// at once, `Duration::MAX` never, and any other after as many steps of other threads as chance decides, or never. So a
/// test must be such that every wait ends without its timeout too: otherwise `shuttle` reports a deadlock.
pub mod sync {
    pub use shuttle::sync::*;

    use std::time::Duration;

    use shuttle::rand::{Rng, thread_rng};

    #[derive(Default)]
    pub struct Condvar(Arc<shuttle::sync::Condvar>);

    impl Condvar {
        pub fn new() -> Condvar {
            Condvar::default()
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }

        /// The end of the timeout is a notification by a thread which does nothing else.
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _timeout: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, ())> {
            if thread_rng().gen_bool(0.5) {
                let timer = self.0.clone();
                shuttle::thread::spawn(move || timer.notify_all());
            }
            let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
            Ok((guard, ()))
        }

        pub fn wait_timeout_while<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            timeout: Duration,
            condition: impl FnOnce(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'a, T>, ())> {
            let is_met = !condition(&mut guard);
            if is_met || timeout.is_zero() {
                Ok((guard, ()))
            } else {
                self.wait_timeout(guard, timeout)
            }
        }
    }

    pub mod mpsc {
        pub use shuttle::sync::mpsc::*;

        use std::time::Duration;

        use shuttle::rand::{Rng, thread_rng};

        pub struct Receiver<T>(shuttle::sync::mpsc::Receiver<T>);

        pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
            let (sender, receiver) = shuttle::sync::mpsc::sync_channel(bound);
            (sender, Receiver(receiver))
        }

        impl<T> Receiver<T> {
            pub fn recv(&self) -> Result<T, RecvError> {
                self.0.recv()
            }

            pub fn try_recv(&self) -> Result<T, TryRecvError> {
                self.0.try_recv()
            }

            pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
                let looks = match timeout {
                    Duration::ZERO => 1,
                    Duration::MAX => 0,
                    _ => thread_rng().gen_range(0..20),
                };
                if looks == 0 {
                    return self.recv().map_err(|_| RecvTimeoutError::Disconnected);
                }
                for _ in 0..looks {
                    match self.try_recv() {
                        Err(TryRecvError::Empty) => shuttle::thread::yield_now(),
                        other => return other.map_err(|_| RecvTimeoutError::Disconnected),
                    }
                }
                Err(RecvTimeoutError::Timeout)
            }
        }
    }
}
