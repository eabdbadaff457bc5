//! The dump of the database, made by PostgreSQL's `pg_dump`.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::DUMP;
use super::manifest::Dump;
use crate::tools::examination::{CopyError, copy_hashed};
use crate::tools::postgres_programs;
use crate::tools::private_files::{create_file, describe};
use crate::tools::progress::Progress;

/// The extensions that are dumped: those that the schema uses. Others, such as `amcheck`, are the server's business,
/// and the role that restores may not be allowed to create them. The first one is part of every database and never
/// dumped itself; without it the option would fail if the second is missing.
const EXTENSIONS: [&str; 2] = ["--extension=plpgsql", "--extension=pg_trgm"];
/// How long `pg_dump` may wait for the lock of a table, such as that of a migration, in milliseconds.
const MAX_LOCK_WAIT: &str = "--lock-wait-timeout=60000";

/// How long `pg_dump` may write nothing. It has no such limit itself, and would wait for a server that hangs.
const MAX_SILENCE: Duration = Duration::from_secs(600);

/// A process that is killed if this is dropped before its end.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A pipe from which each read fails with [`ErrorKind::TimedOut`] if nothing comes for that long.
struct TimeLimited<R>(R, Duration);

impl<R: Read + AsFd> Read for TimeLimited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = Timespec::try_from(self.1).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit))? {
            0 => Err(ErrorKind::TimedOut.into()),
            _ => self.0.read(buffer),
        }
    }
}

/// Dumps the database, as it is in the exported snapshot, into the directory of a backup. `pg_dump` is the program with
/// the settings of the database. On failure: what to tell the operator, after what the program itself has told.
///
/// The program writes to a pipe, and not to the file itself, so that the dump is hashed on its way.
pub fn dump(mut pg_dump: Command, snapshot_id: &str, backup: &Path) -> Result<Dump, String> {
    let path = backup.join(DUMP);
    let file = create_file(&path)?;
    pg_dump.args(["--format=custom", MAX_LOCK_WAIT, "--snapshot", snapshot_id]).args(EXTENSIONS);
    pg_dump.stdout(Stdio::piped());
    let mut child =
        KilledOnDrop(postgres_programs::spawn(pg_dump).map_err(|e| format!("pg_dump: {e}"))?);
    let output = child.0.stdout.take().ok_or("pg_dump has no output")?;
    let output = TimeLimited(output, MAX_SILENCE);
    let mut progress = Progress::of_bytes("dumping the database", None);
    let (size, sha256) =
        copy_hashed(output, file, |bytes| progress.advance(bytes)).map_err(|e| match e {
            CopyError::Read(e) => format!("pg_dump: {e}"),
            CopyError::Write(e) => describe(&path, &e),
        })?;
    let status = child.0.wait().map_err(|e| format!("pg_dump: {e}"))?;
    if !status.success() {
        return Err(format!("pg_dump failed: {status}"));
    }
    Ok(Dump { size, sha256 })
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_read_ends_with_bytes_with_the_end_of_the_pipe_or_with_its_limit() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut reader = TimeLimited(reader, Duration::from_millis(20));
        let mut buffer = [0; 10];
        for _ in 0..2 {
            writer.write_all(b"four").expect("written");
            assert_eq!(reader.read(&mut buffer).expect("bytes"), 4);
            assert_eq!(reader.read(&mut buffer).expect_err("none").kind(), ErrorKind::TimedOut);
        }
        drop(writer);
        assert_eq!(reader.read(&mut buffer).expect("the end"), 0);
    }
}
