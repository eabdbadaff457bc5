//! Totals over all accounts and files.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use postgres::Row;
use uuid::Uuid;

use super::connection::SqlParams;
use super::{Database, from_row, one_row, sql};
use crate::error::Error;
use crate::model::file::FileStatistics;
use crate::model::user::UserStatistics;

/// Counts accounts and files, without deleted accounts and theirs.
pub fn totals(db: &Database) -> Result<(UserStatistics, FileStatistics), Error> {
    let row = one_row(db.read(sql!("db/stats/show"), &[])?)?;
    let users = UserStatistics {
        total: row.get("users"),
        active: row.get("active_users"),
        new_this_month: row.get("new_users"),
    };
    let files = FileStatistics {
        total: row.get("files"),
        total_size: row.get("bytes"),
        uploads_this_month: row.get("new_files"),
        deleted_size: row.get("deleted_bytes"),
    };
    Ok((users, files))
}

/// Adds up to `limit` rows of each table of kept totals together, if they have become many. Returns how many rows fewer
/// there are.
pub fn fold_totals(db: &Database, limit: i64) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("db/stats/fold"), &[&limit])?)?.get("fewer"))
}

/// The figures that the metrics take from the database.
pub struct StoredTotals {
    /// Bytes of all files.
    pub bytes: i64,
    /// Bytes of deleted files that can be restored.
    pub deleted: i64,
    /// Messages that wait to be sent.
    pub mail_waiting: i64,
    /// Messages that were given up in the last 30 days.
    pub mail_failed: i64,
    /// Age of the oldest message that waits.
    pub mail_oldest_seconds: i64,
}

/// Longest wait for the database while metrics are read. Prometheus waits 10 s for a scrape by default, and must get
/// the other values also while the database hangs: two of these waits, if the query is repeated, are within that.
const MAX_METRICS_WAIT: Duration = Duration::from_secs(3);

/// Reads the totals. Cheap enough for every scrape of the metrics.
pub fn stored(db: &Database) -> Result<StoredTotals, Error> {
    let row = one_row(db.read_within(MAX_METRICS_WAIT, sql!("db/stats/stored"), &[])?)?;
    Ok(
        from_row!(row => StoredTotals { bytes, deleted, mail_waiting, mail_failed, mail_oldest_seconds }),
    )
}

/// The least that a file counts where young accounts share a quota, as in the function `disk_usage` of the schema.
const MIN_DISK_USAGE: u64 = 16 * 1024;

/// Whose quota it is that uploads of many count towards.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "links are extras"))]
pub enum QuotaOf {
    Service,
    /// Young accounts that registered themselves.
    Young,
    /// A link by which strangers send files.
    Link(Uuid),
}

/// The bytes that count towards a quota of many users, as far as this process knows: the database's last answer, the
/// uploads to this process since, and those that are under way. So most uploads need not ask whether there is room.
/// `sql/files/insert_many.sql` decides.
pub struct StoredBytes {
    pub quota: u64,
    of: QuotaOf,
    stored: AtomicU64,
    /// What has come of the uploads that are under way.
    arriving: AtomicU64,
}

impl StoredBytes {
    /// Knows nothing yet, as if the quota were used up.
    pub fn new(quota: u64, of: QuotaOf) -> StoredBytes {
        StoredBytes::with(quota, of, u64::MAX)
    }

    /// Knows that `stored` bytes count.
    pub fn with(quota: u64, of: QuotaOf, stored: u64) -> StoredBytes {
        let (stored, arriving) = (AtomicU64::new(stored), AtomicU64::new(0));
        StoredBytes { quota, of, stored, arriving }
    }

    /// What has come of the uploads that are under way.
    #[cfg(feature = "extras")]
    pub fn arriving(&self) -> u64 {
        self.arriving.load(Relaxed)
    }

    /// Returns what the quota has left for an upload of `user`. The database is asked only if that seems to be less
    /// than `wanted`, because files may have been deleted.
    pub fn left(&self, db: &Database, user: Uuid, wanted: u64) -> Result<u64, Error> {
        let wanted = self.usage(wanted, 0);
        let known = self.stored.load(Relaxed);
        let stored = match self.quota.saturating_sub(known) >= wanted {
            true => Some(known),
            false => self.ask(db, user, wanted)?,
        };
        let left = stored.map_or(u64::MAX, |stored| self.quota.saturating_sub(stored));
        Ok(if left < self.usage(0, 0) { 0 } else { left })
    }

    /// Asks the database how many bytes count if it were for `more` of this user; `None` if the quota is not the
    /// user's.
    fn ask(&self, db: &Database, user: Uuid, more: u64) -> Result<Option<u64>, Error> {
        let params: SqlParams = &[&user, &(more as i64), &(self.quota as i64)];
        let rows = match self.of {
            QuotaOf::Young => db.read(sql!("files/young_disk_usage"), params)?,
            QuotaOf::Service => db.read(sql!("db/stats/bytes"), &[])?,
            QuotaOf::Link(link) => db.read(sql!("links/received_bytes"), &[&link])?,
        };
        let bytes = |row: &Row| u64::try_from(row.get::<_, i64>("bytes")).unwrap_or(0);
        let stored = rows.first().map(bytes);
        stored.inspect(|bytes| self.stored.store(*bytes, Relaxed));
        Ok(stored)
    }

    /// How much a file counts.
    fn usage(&self, size: u64, description: usize) -> u64 {
        let is_of_young = self.of == QuotaOf::Young;
        if is_of_young { size.max(MIN_DISK_USAGE) + description as u64 } else { size }
    }

    /// Counts a file that was recorded, or what has come of one in several requests.
    pub fn add(&self, size: u64, description: usize) {
        let add = |before: u64| Some(before.saturating_add(self.usage(size, description)));
        let _ = self.stored.fetch_update(Relaxed, Relaxed, add);
    }

    /// Forgets the number, because the database found another one: other processes store files too.
    pub fn forget(&self) {
        self.stored.store(u64::MAX, Relaxed);
    }

    /// Begins to count an upload of `user`.
    pub fn begin(&self, user: Uuid) -> Arrival<'_> {
        Arrival { of: self, user, counted: 0, is_exempt: false, looked_at: Instant::now() }
    }
}

/// What has come of an upload. It counts until this is dropped, which must be before the file is recorded, so that no
/// byte counts twice.
pub struct Arrival<'a> {
    of: &'a StoredBytes,
    user: Uuid,
    counted: u64,
    /// Whether the quota turned out not to be the user's.
    is_exempt: bool,
    /// When its link was last known to be live, if it comes by one.
    looked_at: Instant,
}

/// How often the link of an upload that is under way is looked up again: what comes by one that has ended is in vain.
const LINK_PERIOD: Duration = Duration::from_secs(10);

impl Arrival<'_> {
    /// Counts `size` bytes in place of those before. Fails with [`Error::StorageFull`] if they do not fit into the
    /// quota beside all others. The database is asked only before that, and now and then with [`Error::LinkNotFound`]
    /// whether the link is still live.
    pub fn grow_to(&mut self, db: &Database, size: u64) -> Result<(), Error> {
        if matches!(self.of.of, QuotaOf::Link(_)) && self.looked_at.elapsed() > LINK_PERIOD {
            self.of.ask(db, self.user, 0)?.ok_or(Error::LinkNotFound)?;
            self.looked_at = Instant::now();
        }
        if self.is_exempt {
            return Ok(());
        }
        let StoredBytes { quota, stored, arriving, .. } = self.of;
        let more = self.of.usage(size, 0).saturating_sub(self.counted);
        let fits = |stored: u64, before: u64| stored.saturating_add(before + more) <= *quota;
        let known = stored.load(Relaxed);
        let add = |before| fits(known, before).then_some(before + more);
        if arriving.fetch_update(Relaxed, Relaxed, add).is_err() {
            let wanted = arriving.load(Relaxed) + more;
            let Some(stored) = self.of.ask(db, self.user, wanted)? else {
                self.is_exempt = true;
                return Ok(());
            };
            // Of uploads that do not fit together the first one makes room for the next in the same moment: otherwise
            // all of them could fail.
            let own = self.counted;
            let next = |before| if fits(stored, before) { before + more } else { before - own };
            let before = arriving.fetch_update(Relaxed, Relaxed, |before| Some(next(before)));
            if !before.is_ok_and(|before| fits(stored, before)) {
                self.counted = 0;
                return Err(Error::StorageFull);
            }
        }
        self.counted += more;
        Ok(())
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.of.arriving.fetch_sub(self.counted, Relaxed);
    }
}
