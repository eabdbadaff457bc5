//! Finds the addresses of the store's host, by one look-up at a time whose outcome counts for some seconds. The
//! resolver of `ureq` starts a thread for each request, and while a name server does not answer, their number has no
//! bound.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::semaphore::lock;

/// How long the outcome of a look-up counts.
const MAX_AGE: Duration = Duration::from_secs(5);
/// The longest wait for a look-up.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The most addresses that are tried, as many as `ureq` takes.
const MAX_ADDRESSES: usize = 16;

/// The outcome of a look-up: addresses, or what failed.
type Outcome = Result<Vec<SocketAddr>, String>;

/// Resolves the name of one host.
#[derive(Debug)]
pub struct HostResolver {
    state: Arc<(Mutex<LookUpState>, Condvar)>,
    look_up: fn(&str) -> io::Result<Vec<SocketAddr>>,
}

#[derive(Debug, Default)]
struct LookUpState {
    is_running: bool,
    /// When the last look-up ended, and its outcome.
    last: Option<(Instant, Outcome)>,
}

impl Default for HostResolver {
    fn default() -> HostResolver {
        let look_up = |host: &str| host.to_socket_addrs().map(Iterator::collect);
        HostResolver { state: Arc::default(), look_up }
    }
}

impl HostResolver {
    /// The outcome of a look-up of `host`, which has a port; `None` if it takes longer than `max_wait`.
    fn outcome(&self, host: &str, max_wait: Duration) -> Option<Outcome> {
        let deadline = Instant::now() + max_wait;
        let (state, ended) = &*self.state;
        let mut state = lock(state);
        loop {
            if let Some((at, outcome)) = &state.last
                && at.elapsed() < MAX_AGE
            {
                return Some(outcome.clone());
            }
            if !state.is_running {
                match self.start(host.to_owned()) {
                    Ok(()) => state.is_running = true,
                    Err(e) => return Some(Err(format!("no thread for looking up {host}: {e}"))),
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts a look-up in a thread of its own.
    fn start(&self, host: String) -> io::Result<()> {
        let (shared, look_up) = (self.state.clone(), self.look_up);
        let work = move || {
            let outcome = look_up(&host).map_err(|e| format!("{host}: {e}"));
            let (state, ended) = &*shared;
            *lock(state) = LookUpState { is_running: false, last: Some((Instant::now(), outcome)) };
            ended.notify_all();
        };
        thread::Builder::new().name("resolver".into()).spawn(work).map(drop)
    }
}

impl Resolver for HostResolver {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let parts = uri.scheme().zip(uri.authority());
        let host =
            parts.and_then(|(scheme, authority)| DefaultResolver::host_and_port(scheme, authority));
        let host = host.ok_or(Error::HostNotFound)?;
        let found = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => {
                let outcome = self.outcome(&host, MAX_WAIT.min(*timeout.after));
                let outcome = outcome.ok_or(Error::Timeout(timeout.reason))?;
                outcome.map_err(|fault| Error::Io(io::Error::other(fault)))?
            }
        };
        let mut addresses = self.empty();
        found.into_iter().take(MAX_ADDRESSES).for_each(|address| addresses.push(address));
        if addresses.is_empty() { Err(Error::HostNotFound) } else { Ok(addresses) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const MOMENT: Duration = Duration::from_millis(100);

    #[test]
    fn requests_wait_for_one_look_up_and_its_outcome_counts_for_some_seconds() {
        static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);
        let look_up = |_: &str| {
            LOOK_UPS.fetch_add(1, Ordering::Relaxed);
            thread::sleep(3 * MOMENT);
            Ok(vec![SocketAddr::from(([127, 0, 0, 1], 1))])
        };
        let resolver = HostResolver { state: Arc::default(), look_up };
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| assert!(resolver.outcome("store:1", MOMENT).is_none()));
            }
        });
        for _ in 0..2 {
            let found = resolver.outcome("store:1", MAX_WAIT);
            assert!(found.is_some_and(|found| found.is_ok_and(|found| found.len() == 1)));
        }
        assert_eq!(LOOK_UPS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_address_is_not_looked_up_and_a_name_that_fails_is_an_error() {
        let look_up = |_: &str| Err(io::Error::other("no such name"));
        let resolver = HostResolver { state: Arc::default(), look_up };
        let resolve = |uri: &str| {
            let uri = uri.parse().map_err(|_| Error::HostNotFound)?;
            let found = resolver.resolve(&uri, &Config::default(), NextTimeout::default())?;
            Ok::<_, Error>(found[0].to_string())
        };
        for (uri, expected) in [
            ("http://192.0.2.1/x", "192.0.2.1:80"),
            ("https://192.0.2.1:3900", "192.0.2.1:3900"),
            ("https://[2001:db8::1]/", "[2001:db8::1]:443"),
        ] {
            assert!(resolve(uri).is_ok_and(|found| found == expected), "{uri}");
        }
        assert!(resolve("http://store/").is_err_and(|e| e.to_string().contains("no such name")));
    }
}
