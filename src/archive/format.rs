//! The bytes of a ZIP beside the contents of its files (APPNOTE.TXT of PKWARE, 6.3.10), of which nothing is compressed.
//! Sizes and CRC-32 stand in front of each content, so whoever reads the archive need not wait for what follows, and
//! ZIP64 is used only where a number does not fit.

use time::OffsetDateTime;

/// What all archives are numbered by: a change of the bytes that are made of the same files raises it.
pub const FORM: u32 = 1;

/// The value of a number of 32 bits that stands in a field of 64 bits elsewhere.
const ELSEWHERE: u32 = u32::MAX;
/// The versions of the format that a file needs, without and with ZIP64.
const VERSIONS: [u16; 2] = [20, 45];
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// A regular file that its owner may write and all may read, made on Unix.
const MADE_ON_UNIX: u16 = 3 << 8;
const MODE: u32 = 0o100_644 << 16;

/// What an archive says of a file.
pub struct Member {
    /// Its path, of at most 65,535 bytes.
    pub path: String,
    pub crc32: u32,
    /// In bytes.
    pub size: u64,
    pub modified: OffsetDateTime,
    /// Where it begins in the archive.
    pub offset: u64,
}

impl Member {
    /// What stands in front of the content.
    pub fn header(&self) -> Vec<u8> {
        let large = if self.short_size() == ELSEWHERE { vec![self.size; 2] } else { vec![] };
        let mut out = b"PK\x03\x04".to_vec();
        self.add_common(&mut out, &large);
        out.extend(self.path.as_bytes());
        add_large(&mut out, &large);
        out
    }

    /// What the directory at the end says of it.
    pub fn directory_header(&self) -> Vec<u8> {
        let mut large = if self.short_size() == ELSEWHERE { vec![self.size; 2] } else { vec![] };
        let offset = short(self.offset);
        large.extend((offset == ELSEWHERE).then_some(self.offset));
        let mut out = b"PK\x01\x02".to_vec();
        add16(&mut out, &[MADE_ON_UNIX | version(&large)]);
        self.add_common(&mut out, &large);
        // No comment, on the first disk, no attributes but the mode.
        add16(&mut out, &[0, 0, 0]);
        add32(&mut out, &[MODE, offset]);
        out.extend(self.path.as_bytes());
        add_large(&mut out, &large);
        out
    }

    fn short_size(&self) -> u32 {
        short(self.size)
    }

    /// The fields that both headers have, up to the lengths of the path and of what follows it.
    fn add_common(&self, out: &mut Vec<u8>, large: &[u64]) {
        let (date, time) = dos_time(self.modified);
        add16(out, &[version(large), FLAGS, 0, time, date]);
        add32(out, &[self.crc32, self.short_size(), self.short_size()]);
        let extra = if large.is_empty() { 0 } else { 4 + 8 * large.len() };
        add16(out, &[self.path.len() as u16, extra as u16]);
    }
}

/// The end of an archive of so many files, at most 65,534, whose directory begins at `offset` and has `size` bytes.
pub fn end(files: u16, offset: u64, size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    if short(offset) == ELSEWHERE || short(size) == ELSEWHERE {
        out.extend(b"PK\x06\x06");
        // The length of what follows in this record.
        add64(&mut out, &[44]);
        add16(&mut out, &[MADE_ON_UNIX | VERSIONS[1], VERSIONS[1]]);
        add32(&mut out, &[0, 0]);
        add64(&mut out, &[files.into(), files.into(), size, offset]);
        out.extend(b"PK\x06\x07");
        add32(&mut out, &[0]);
        add64(&mut out, &[offset + size]);
        add32(&mut out, &[1]);
    }
    out.extend(b"PK\x05\x06");
    add16(&mut out, &[0, 0, files, files]);
    add32(&mut out, &[short(size), short(offset)]);
    add16(&mut out, &[0]);
    out
}

fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(ELSEWHERE)
}

fn version(large: &[u64]) -> u16 {
    VERSIONS[usize::from(!large.is_empty())]
}

/// Adds the field of the numbers that need 64 bits, if there are any.
fn add_large(out: &mut Vec<u8>, large: &[u64]) {
    if !large.is_empty() {
        add16(out, &[1, 8 * large.len() as u16]);
        add64(out, large);
    }
}

fn add16(out: &mut Vec<u8>, numbers: &[u16]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn add32(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn add64(out: &mut Vec<u8>, numbers: &[u64]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Date and time in the form of MS-DOS, which has steps of two seconds and the years 1980 to 2107.
fn dos_time(time: OffsetDateTime) -> (u16, u16) {
    let year = match time.year() {
        ..1980 => return (1 << 5 | 1, 0),
        2108.. => return (127 << 9 | 12 << 5 | 31, 23 << 11 | 59 << 5 | 29),
        year => (year - 1980) as u16,
    };
    let date = year << 9 | u16::from(u8::from(time.month())) << 5 | u16::from(time.day());
    let (hour, minute, second) = time.to_hms();
    (date, u16::from(hour) << 11 | u16::from(minute) << 5 | u16::from(second / 2))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use time::macros::datetime;
    use zip::ZipArchive;

    use super::super::names::{Paths, numbered, path};
    use super::super::statements::Entry;
    use super::*;
    use crate::model::timestamp::Timestamp;

    #[test]
    fn times_are_those_that_the_format_can_say() {
        for (time, expected) in [
            (datetime!(1979-12-31 23:59:59 UTC), (0x21, 0)),
            (datetime!(1980-01-01 0:00 UTC), (0x21, 0)),
            (datetime!(2026-11-29 13:45:59 UTC), (0x5d7d, 0x6dbd)),
            (datetime!(2107-12-31 23:59:59 UTC), (0xff9f, 0xbf7d)),
            (datetime!(2108-01-01 0:00 UTC), (0xff9f, 0xbf7d)),
        ] {
            assert_eq!(dos_time(time), expected, "{time}");
        }
    }

    /// A number of 64 bits stands only where one of 32 is too small, or would say that it stands elsewhere.
    #[test]
    fn zip64_is_used_only_where_it_must_be() {
        const LARGE: u64 = 0xffff_ffff;
        let member = |size, offset| Member {
            path: "a".into(),
            crc32: 0,
            size,
            modified: datetime!(2026-01-01 0:00 UTC),
            offset,
        };
        for (size, offset, header, in_directory) in [
            (LARGE - 1, LARGE - 1, 31, 47),
            (LARGE, 0, 51, 67),
            (0, LARGE, 31, 59),
            (LARGE + 1, LARGE + 1, 51, 75),
        ] {
            let member = member(size, offset);
            assert_eq!(member.header().len(), header, "{size}");
            assert_eq!(member.directory_header().len(), in_directory, "{size}, {offset}");
        }
        assert_eq!([end(1, LARGE - 1, 1), end(1, LARGE, 1)].map(|end| end.len()), [22, 98]);
    }

    /// Reads files from bytes, one a line: a digit, a folder, `|`, a name and, after `=`, a content.
    fn entries(input: &[u8]) -> Vec<(Entry, Vec<u8>)> {
        let text = String::from_utf8_lossy(input);
        let read = |(line, number): (&str, u128)| {
            let (path, content) = line.split_once('=').unwrap_or((line, ""));
            let (folders, filename) = path.split_once('|').unwrap_or(("", path));
            let folders = folders.split('/').filter(|name| !name.is_empty());
            let mut crc = flate2::Crc::new();
            crc.update(content.as_bytes());
            let entry = Entry {
                id: uuid::Uuid::from_u128(number),
                place: folders.map(|name| format!("{name}\x01")).collect(),
                filename: if filename.is_empty() { "x" } else { filename }.into(),
                content_type: String::new(),
                file_size: content.len() as i64,
                file_hash: String::new(),
                crc32: crc.sum().cast_signed(),
                upload_date: Timestamp(datetime!(2026-11-29 12:00 UTC)),
                updated_at: Timestamp(datetime!(2026-11-29 12:00 UTC)),
                version: 1,
            };
            (entry, content.as_bytes().to_vec())
        };
        text.lines().zip(1..).map(read).collect()
    }

    /// Another program reads what was written, and each path is one that can be unpacked beside the others.
    fn check_archive(input: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
        let entries = entries(input);
        let mut paths = Paths::default();
        entries.iter().for_each(|(entry, _)| paths.add(&path(entry), entry.id));
        let mut numbers = paths.numbers();
        let (mut bytes, mut directory, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (entry, content)) in entries.iter().enumerate() {
            let plain = path(entry);
            let number = numbers.of(place, &plain);
            let path = number.map_or(plain.clone(), |number| numbered(&plain, number));
            names.push(path.clone());
            let member = Member {
                path,
                crc32: entry.crc32.cast_unsigned(),
                size: content.len() as u64,
                modified: entry.updated_at.0,
                offset: bytes.len() as u64,
            };
            directory.extend(member.directory_header());
            bytes.extend(member.header());
            bytes.extend(content);
        }
        let (offset, size) = (bytes.len() as u64, directory.len() as u64);
        bytes.extend(directory);
        bytes.extend(end(entries.len() as u16, offset, size));
        let mut archive = ZipArchive::new(Cursor::new(bytes))?;
        assert_eq!(archive.len(), entries.len());
        let mut seen = std::collections::HashSet::new();
        for (place, (_, content)) in entries.iter().enumerate() {
            let mut file = archive.by_index(place)?;
            assert_eq!(file.name(), names[place]);
            // Within the folder that it is unpacked in.
            let enclosed = file.enclosed_name().unwrap_or_default();
            assert_eq!(enclosed.to_str(), Some(&*names[place]));
            let is_short = |name: &str| name.len() <= 255 && !name.ends_with(['.', ' ']);
            assert!(names[place].split('/').all(is_short), "{}", names[place]);
            assert!(seen.insert(crate::model::text::folded(&names[place])), "{}", names[place]);
            let mut found = Vec::new();
            file.read_to_end(&mut found)?;
            assert_eq!(found, *content);
        }
        let is_folder =
            |path: &String| names.iter().any(|other| other.starts_with(&format!("{path}/")));
        assert!(!names.iter().any(is_folder));
        Ok(())
    }

    #[test]
    fn fuzz_archives() {
        fuzz::check("archives", |input| {
            let outcome = check_archive(input);
            assert!(outcome.is_ok(), "{outcome:?}");
        });
    }
}
