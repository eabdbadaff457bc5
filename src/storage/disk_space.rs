//! The room that is left on the file system of the data directory.

use std::io;

use super::Storage;

/// What a file system has in all, and what an ordinary user may still take of it.
pub struct DiskSpace {
    pub total_bytes: u64,
    pub free_bytes: u64,
    /// Each file takes one inode. Both counts are 0 where the file system has no fixed number, as Btrfs.
    pub total_inodes: u64,
    pub free_inodes: u64,
}

impl Storage {
    /// Asks for the room on the file system that contents are stored on.
    pub fn disk_space(&self) -> io::Result<DiskSpace> {
        let found = rustix::fs::statvfs(&self.contents)?;
        Ok(DiskSpace {
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            total_inodes: found.f_files,
            free_inodes: found.f_favail,
        })
    }
}
