//! `cloakroom import-files DIR`: what lies in a directory becomes files of an account, by the steps of an upload. It is
//! walked by descriptors that follow no link, so nothing outside it is read, whatever others do to it meanwhile.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::process::geteuid;
use uuid::Uuid;

use super::files::{AtPath, CopyError, copy_hashed};
use super::output::{MAX_NAMED, Progress, bytes, count, print_line};
use crate::config::Config;
use crate::db::batches::Batches;
use crate::db::stats::{QuotaOf, StoredBytes};
use crate::db::{Database, SqlParams, one_row, sql};
use crate::error::{Error, Problem};
use crate::files::record;
use crate::folders::path::folder;
use crate::model::content_type::{SIGNATURE_BYTES, stored_type};
use crate::model::file::{File as StoredFile, FileQuotas, NewFile, folder_path};
use crate::model::filename::uploaded_filename;
use crate::model::media_type::types_by_extension;
use crate::model::signature::OCTET_STREAM;
use crate::model::{problems, rules};
use crate::semaphore::lock;
use crate::serve::{CommandError, ignore_file_size_signal};
use crate::sign_in::statements::find_by_login;
use crate::storage::Storage;

/// How many files are imported at a time: each waits for the disk or the store, and then for the commit of its record,
/// which those that wait share.
const THREADS: usize = 8;
/// Files that may wait for that. Each may hold its directory open.
const MAX_WAITING: usize = 256;
/// How long a record waits for those that are being made, as that of an upload.
const MAX_QUEUED: Duration = Duration::from_millis(20);
/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 * 1024;
/// What a directory is opened with, and a file: a named pipe has nobody wait, and no terminal becomes this process's.
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW);
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Runs the command. What was imported until it fails stays.
pub fn import_files(
    config: &Config,
    (directory, owner, to): (&Path, &str, &str),
    is_dry_run: bool,
    all: bool,
) -> Result<(), CommandError> {
    let wrong = |it: Problem| CommandError::Settings(vec![format!("--folder: {}", it.message)]);
    let base = folder_path(&folder(to).map_err(wrong)?);
    ignore_file_size_signal()?;
    let (storage, db) = super::open_installation(config)?;
    let flags = OFlags::DIRECTORY.bits().cast_signed();
    let root = File::options().read(true).custom_flags(flags).open(directory).at(directory)?;
    let (owner, left) = find_owner(config, &db, owner)?;
    let report = Mutex::new(Report { all, left, ..Report::default() });
    let (uploads, base) = (Batches::new(1, MAX_QUEUED), base.trim_end_matches('/').to_owned());
    let import = Import { config, storage, db, uploads, owner, base, is_dry_run, report };
    import.run(&root);
    let report = lock(&import.report);
    report.print(if is_dry_run { "to be imported" } else { "imported" });
    match (&report.end, report.refused.values().map(|(number, _)| number).sum()) {
        (Some(error), _) => Err(format!("{error}: run it again to go on"))?,
        (None, 0) => Ok(()),
        (None, refused) => Err(format!("{} refused", count(refused, "file")))?,
    }
}

/// The active account with this username or e-mail address, and how many bytes and files its quotas have left.
fn find_owner(config: &Config, db: &Database, name: &str) -> Result<(Uuid, (u64, i64)), String> {
    let login = rules::login_name(name).unwrap_or_default();
    let found = find_by_login(db, &login, IpAddr::V4(Ipv4Addr::UNSPECIFIED))?.account;
    let user = found.map(|account| account.user).filter(|user| user.is_active);
    let user = user.ok_or_else(|| format!("--owner: no active account is named {name:?}"))?;
    let (most_bytes, most_files) = user.quotas(&FileQuotas::of(config));
    let own = u64::try_from(most_bytes - user.stats.total_storage_used).unwrap_or(0);
    let of_all =
        StoredBytes::new(config.storage_quota, QuotaOf::Service).left(db, user.id, u64::MAX)?;
    Ok((user.id, (own.min(of_all), most_files - user.stats.total_uploads)))
}

struct Import<'a> {
    config: &'a Config,
    storage: Storage,
    db: Database,
    uploads: Batches<Arc<NewFile>, Option<StoredFile>>,
    owner: Uuid,
    /// The folder for what lies in DIR, as a path.
    base: String,
    is_dry_run: bool,
    report: Mutex<Report>,
}

/// A regular file: its directory, and its path below DIR.
type Found = (Arc<OwnedFd>, PathBuf);

impl Import<'_> {
    /// Imports all that lies in `root`.
    fn run(&self, root: &File) {
        let (sender, receiver) = sync_channel::<Found>(MAX_WAITING);
        let receiver = Mutex::new(receiver);
        let progress = Mutex::new(Progress::begin("reading files", None));
        let next = || lock(&receiver).recv();
        let import = || {
            while let Ok(found) = next() {
                if lock(&self.report).end.is_none() {
                    let outcome = self.import(&found);
                    lock(&self.report).note(&found.1, outcome);
                    lock(&progress).advance(1);
                }
            }
        };
        thread::scope(|scope| {
            (0..THREADS).for_each(|_| drop(scope.spawn(import)));
            let mut pending = vec![PathBuf::new()];
            while let Some(path) = pending.pop() {
                let listed = self.list(root, &path, &mut pending, &sender);
                let _ = listed.map_err(|error| lock(&self.report).note(&path, Err(refusal(error))));
            }
            drop(sender);
        });
    }

    /// Adds the directories in a directory to `pending`, and sends its files.
    fn list(
        &self,
        root: &File,
        path: &Path,
        pending: &mut Vec<PathBuf>,
        sender: &SyncSender<Found>,
    ) -> io::Result<()> {
        // Step by step, so that no part of the way is a link.
        let open = |at, name| openat(at, name, DIRECTORY, Mode::empty());
        let start = openat(root, ".", DIRECTORY, Mode::empty())?;
        let directory = Arc::new(path.iter().try_fold(start, open)?);
        if fstat(&directory)?.st_dev != root.metadata()?.dev() {
            lock(&self.report).other_systems += 1;
            return Ok(());
        }
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let path = path.join(name);
            let looked = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
            let kind = looked.map(|it| FileType::from_raw_mode(it.st_mode));
            let mut report = lock(&self.report);
            match kind {
                _ if report.end.is_some() => return Ok(()),
                Ok(FileType::Directory) if name == "." || name == ".." => {}
                Ok(FileType::Directory) => pending.push(path),
                Ok(FileType::RegularFile) => {
                    drop(report);
                    // The other threads live as long as this one sends.
                    let _ = sender.send((directory.clone(), path));
                }
                Ok(FileType::Symlink) => report.links += 1,
                Ok(_) => report.special += 1,
                Err(error) => report.note(&path, Err(refusal(error))),
            }
        }
        Ok(())
    }

    /// Imports a file and returns its size, or `None` if it is there already. A dry run only finds out whether it
    /// would.
    fn import(&self, (directory, path): &Found) -> Result<Option<u64>, Error> {
        let (folder, filename) =
            target(&self.base, path).map_err(|it| refusal(io::Error::other(it.message)))?;
        let name = path.file_name().unwrap_or_default();
        let file = File::from(openat(directory, name, FILE, Mode::empty()).map_err(refusal)?);
        // It was one a moment ago, and may be anything now.
        let state =
            || file.metadata().map(|it| (it.is_file(), it.len(), it.mtime(), it.mtime_nsec()));
        let before = state().map_err(refusal)?;
        let (size, limit) = (before.1, self.config.max_upload_size);
        let check = |read| match read == size && before.0 && state().is_ok_and(|now| now == before)
        {
            true => Ok(()),
            false => Err(refusal(io::Error::other("changed while it was read"))),
        };
        if size > limit {
            return Err(Error::FileTooLarge(limit));
        }
        let is_there = |sha256: Option<&str>| -> Result<bool, Error> {
            let params: SqlParams = &[&self.owner, &folder, &filename, &(size as i64), &sha256];
            Ok(one_row(self.db.read(sql!("tools/has_file"), params)?)?.get("is_there"))
        };
        if is_there(None)? {
            match copy_hashed((&file).take(size + 1), io::sink()) {
                Ok(hashed) if is_there(Some(&hashed.sha256))? => {
                    return check(hashed.size).map(|()| None);
                }
                Err(CopyError::Read(error) | CopyError::Write(error)) => {
                    return Err(refusal(error));
                }
                Ok(_) => (&file).rewind().map_err(refusal)?,
            }
        }
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, (&file).take(size + 1));
        let first = reader.fill_buf().map_err(refusal)?;
        let content_type = found_type(self.config, &filename, first)?;
        if !lock(&self.report).takes(size) {
            return Err(Error::StorageFull);
        }
        let new = NewFile { folder, filename, content_type, size, ..NewFile::default() };
        let stored = match self.is_dry_run {
            true => Ok(()),
            false => self.store(&mut reader, new, check),
        };
        if stored.is_err() {
            lock(&self.report).give_back(size);
        }
        stored.map(|()| Some(size))
    }

    /// Stores a file that `reader` reads, and which is as it was before if `check` says so of the bytes read.
    fn store(
        &self,
        reader: &mut impl Read,
        new: NewFile,
        check: impl Fn(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut draft = self.storage.draft()?;
        if geteuid().is_root() {
            let data = fs::metadata(&self.config.data_dir).map_err(refusal)?;
            chown(draft.path(), Some(data.uid()), Some(data.gid())).map_err(refusal)?;
        }
        check(io::copy(reader, &mut draft).map_err(refusal)?)?;
        let (id, user, crc32, is_utf8) = (draft.id(), self.owner, draft.crc32(), draft.is_utf8());
        let file = NewFile { id, user, hash: draft.commit()?, crc32, is_utf8, ..new };
        let quotas = FileQuotas::of(self.config);
        let recorded = record::record(&self.uploads, &self.db, &Arc::new(file), &quotas);
        // As that of an upload: where it is unknown whether there is a record, the sweep finds the content.
        if matches!(recorded, Ok(_) | Err(Error::OutcomeUnknown | Error::Internal(_))) {
            draft.keep();
        }
        recorded.map(drop)
    }
}

/// Why a file, or a directory, cannot be read.
fn refusal(error: impl Into<io::Error>) -> Error {
    Error::Internal(error.into().to_string())
}

/// The folder and the name of a file, by its path below DIR, or why it can have none.
fn target(base: &str, path: &Path) -> Result<(String, String), Problem> {
    let text = path.to_str().ok_or(problems::NOT_UTF8)?;
    let (below, name) = text.rsplit_once('/').unwrap_or(("", text));
    Ok((folder(&format!("{base}/{below}"))?, uploaded_filename(name)?))
}

/// The type of a file that nobody declares: that which its content shows, or else that of its extension.
fn found_type(config: &Config, filename: &str, content: &[u8]) -> Result<String, Error> {
    let first = content.get(..SIGNATURE_BYTES).unwrap_or(content);
    let find = |declared| stored_type(declared, filename, first, &config.allowed_upload_types);
    match find(None) {
        Ok(shown) if shown != OCTET_STREAM => Ok(shown),
        other => types_by_extension(filename).find_map(|it| find(Some(it)).ok()).map_or(other, Ok),
    }
}

/// What was found and done.
#[derive(Default)]
struct Report {
    /// Whether all refusals are named, each at once. Otherwise the first for each reason are kept for the end.
    all: bool,
    /// How many more bytes and files the quotas take, so that few are written in vain: the statement decides.
    left: (u64, i64),
    files: u64,
    bytes: u64,
    there: u64,
    links: u64,
    special: u64,
    other_systems: u64,
    /// By their reasons, how many there are, and which.
    refused: BTreeMap<String, (u64, Vec<PathBuf>)>,
    /// What ended the command.
    end: Option<String>,
}

impl Report {
    /// Whether a file of this size fits into the quotas, of which it takes its part then.
    fn takes(&mut self, size: u64) -> bool {
        let fits = size <= self.left.0 && self.left.1 > 0;
        if fits {
            self.left = (self.left.0 - size, self.left.1 - 1);
        }
        fits
    }

    /// What a file that was not stored has taken of the quotas is left for others.
    fn give_back(&mut self, size: u64) {
        self.left = (self.left.0 + size, self.left.1 + 1);
    }

    fn note(&mut self, path: &Path, outcome: Result<Option<u64>, Error>) {
        use Error::{OutcomeUnknown, StoreUnavailable, TimedOut, Unavailable, UserNotUsable};
        let error = match outcome {
            Ok(Some(size)) => {
                return (self.files, self.bytes) = (self.files + 1, self.bytes + size);
            }
            Ok(None) => return self.there += 1,
            Err(error) => error,
        };
        let reason = error.cause().into_owned();
        if matches!(
            error,
            OutcomeUnknown | StoreUnavailable | TimedOut | Unavailable | UserNotUsable
        ) {
            self.end = Some(reason);
            return;
        }
        if self.all {
            print_line(format_args!("{path:?}: {reason}"));
        }
        let (number, paths) = self.refused.entry(reason).or_default();
        *number += 1;
        if *number <= MAX_NAMED && !self.all {
            paths.push(path.to_owned());
        }
    }

    /// Names what was refused, and sums all up.
    fn print(&self, verb: &str) {
        for (reason, (number, paths)) in &self.refused {
            paths.iter().for_each(|path| print_line(format_args!("{path:?}: {reason}")));
            if *number > MAX_NAMED && !self.all {
                print_line(format_args!("and {} more", number - MAX_NAMED));
            }
        }
        let Report { there, links, special, other_systems, .. } = self;
        let (files, size) = (count(self.files, "file"), bytes(self.bytes));
        print_line(format_args!(
            "{verb}: {files} ({size}); there already: {there}; passed over: symbolic links: {links}, special files: \
             {special}, other file systems: {other_systems}."
        ));
    }
}
