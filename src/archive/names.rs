//! The names of files in an archive: harmless to whoever unpacks it, and no two alike, on file systems with and without
//! regard to case.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use uuid::Uuid;

use super::statements::Entry;
use crate::model::filename::shortened;
use crate::model::text::folded;

/// The longest name that file systems take, in bytes of UTF-8.
const MAX_NAME: usize = 255;

/// The path of a file in an archive.
pub fn path(entry: &Entry) -> String {
    let folders = entry.place.split_terminator('\x01');
    folders.chain([&*entry.filename]).map(harmless).collect::<Vec<_>>().join("/")
}

/// The name, in which nothing leads to another folder, and which Windows takes for no other name and no device ("Naming
/// Files, Paths, and Namespaces" in its documentation).
fn harmless(name: &str) -> String {
    let is_refused = |c: char| c.is_control() || "<>:\"|?*\\/".contains(c);
    // An empty name would make a path begin at the root.
    let name = if name.is_empty() { "_".to_owned() } else { name.replace(is_refused, "_") };
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_port = |digit: &str| matches!(digit, "¹" | "²" | "³") || digit.parse::<u8>().is_ok();
    let is_device = match &*stem {
        "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" => true,
        _ => match stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) {
            Some(digit) => digit.chars().count() == 1 && is_port(digit),
            None => false,
        },
    };
    ended(&shortened(&if is_device { format!("_{name}") } else { name }, MAX_NAME, str::len))
}

/// The name with `_` in place of a dot or a blank at its end, which Windows drops.
fn ended(name: &str) -> String {
    let end = name.strip_suffix(['.', ' ']);
    end.map_or_else(|| name.to_owned(), |beginning| format!("{beginning}_"))
}

/// The path with ` (number)` before the extension of its name, which is shortened if it must be.
pub fn numbered(path: &str, number: u32) -> String {
    let (folders, name) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
    let number = format!(" ({number})");
    let name = shortened(name, MAX_NAME - number.len(), str::len);
    let dot = name.rfind('.').filter(|dot| *dot > 0).unwrap_or(name.len());
    let (stem, extension) = name.split_at(dot);
    ended(&format!("{folders}{stem}{number}{extension}"))
}

/// What is the same of two paths that some file systems take for one. Two others are nearly never the same, and then
/// one has a number that it does not need.
fn key(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    folded(path).hash(&mut hasher);
    hasher.finish()
}

/// Which paths of an archive are alike: 24 bytes a file, and 8 for each folder.
#[derive(Default)]
pub struct Paths {
    /// In the order of the archive.
    files: Vec<(u64, Uuid)>,
    folders: HashSet<u64>,
    /// The folder of the last file.
    last: String,
}

impl Paths {
    pub fn add(&mut self, path: &str, id: Uuid) {
        self.files.push((key(path), id));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if folder != self.last {
            let ends = folder.match_indices('/').map(|(end, _)| end).chain([folder.len()]);
            self.folders.extend(ends.map(|end| key(&folder[..end])));
            self.last = folder.to_owned();
        }
    }

    /// The numbers of those files whose path another one has, or a folder.
    pub fn numbers(self) -> Numbers {
        let mut places: Vec<usize> = (0..self.files.len()).collect();
        places.sort_unstable_by_key(|place| self.files[*place]);
        let mut wanted = HashMap::new();
        for group in places.chunk_by(|a, b| self.files[*a].0 == self.files[*b].0) {
            // The first one keeps its name, unless a folder has it.
            let kept = usize::from(!self.folders.contains(&self.files[group[0]].0));
            let others = group.iter().skip(kept).zip(0..);
            wanted.extend(others.map(|(place, rank)| (*place, rank)));
        }
        let mut used = self.folders;
        used.extend(self.files.iter().map(|(key, _)| key));
        Numbers { wanted, used, next: HashMap::new(), given: HashMap::new() }
    }
}

/// The numbers that files get.
pub struct Numbers {
    /// Of files by their places in the archive: how many of those with the same path get a number before them.
    wanted: HashMap<usize, usize>,
    /// The keys of all paths.
    used: HashSet<u64>,
    /// The number to try next of each number of digits, by the key of the path with the first of these numbers: paths
    /// that are shortened for one more digit may be alike from there on, and then no number is tried twice.
    next: HashMap<u64, u32>,
    /// Those of each path, by its key.
    given: HashMap<u64, Vec<u32>>,
}

impl Numbers {
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The number of the file at this place with this path; `None` if it needs none. The numbers of one path are the
    /// next ones that are free, in the order of the ids.
    pub fn of(&mut self, place: usize, path: &str) -> Option<u32> {
        let rank = *self.wanted.get(&place)?;
        let key = key(path);
        while self.given.get(&key).is_none_or(|given| given.len() <= rank) {
            let free = self.next_free(path)?;
            self.given.entry(key).or_default().push(free);
        }
        self.given[&key].get(rank).copied()
    }

    /// Takes the next number with which the path is like no other one.
    fn next_free(&mut self, path: &str) -> Option<u32> {
        for digits in 0..u32::MAX.ilog10() {
            let first = 10_u32.pow(digits).max(2);
            let next = self.next.entry(key(&numbered(path, first))).or_insert(first);
            while *next < 10_u32.pow(digits + 1) {
                let number = *next;
                *next += 1;
                if self.used.insert(key(&numbered(path, number))) {
                    return Some(number);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless_everywhere() {
        let long = "é".repeat(200);
        for (name, expected) in [
            ("a.txt", "a.txt"),
            ("", "_"),
            ("..", "._"),
            (".", "_"),
            ("a..b", "a..b"),
            (".hidden", ".hidden"),
            ("a\\b/c", "a_b_c"),
            ("<>:\"|?*", "_______"),
            ("a\u{7f}\tb", "a__b"),
            ("end.", "end_"),
            ("end...", "end.._"),
            ("blank ", "blank_"),
            ("CON", "_CON"),
            ("nul.txt", "_nul.txt"),
            ("Aux .tar.gz", "_Aux .tar.gz"),
            ("com1", "_com1"),
            ("LPT¹.x", "_LPT¹.x"),
            ("COM0", "_COM0"),
            ("COM10", "COM10"),
            ("COM+", "COM+"),
            ("conin$", "_conin$"),
            ("console", "console"),
            (&format!("con.{}", "x".repeat(251)), &format!("_co.{}", "x".repeat(251))),
            (&format!("{} {}", "x".repeat(254), "y".repeat(9)), &format!("{}_", "x".repeat(254))),
            (&format!("{long}.txt"), &format!("{}.txt", "é".repeat(125))),
        ] {
            assert_eq!(harmless(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_number_stands_before_the_extension_and_leaves_the_name_short_enough() {
        let long = "x".repeat(300);
        for (path, number, expected) in [
            ("a/b.txt", 2, "a/b (2).txt"),
            ("a.b/c", 11, "a.b/c (11)"),
            (".hidden", 3, ".hidden (3)"),
            ("a.tar.gz", 2, "a.tar (2).gz"),
            (&format!("{}  xx", "x".repeat(250)), 2, &format!("{} (2)", "x".repeat(250) + " ")),
            (&format!("r.{}  hhh", "h".repeat(248)), 2, &format!("r (2).{}_", "h".repeat(248))),
            (&format!("f/{long}.txt"), 2, &format!("f/{} (2).txt", "x".repeat(247))),
        ] {
            assert_eq!(numbered(path, number), expected);
        }
    }

    /// The paths with their numbers, whose ids are in their order.
    fn resolved(paths: &[&str]) -> Vec<String> {
        let mut all = Paths::default();
        for (path, id) in paths.iter().zip(1..) {
            all.add(path, Uuid::from_u128(id));
        }
        let mut numbers = all.numbers();
        let resolved = paths.iter().enumerate().map(|(place, path)| {
            let number = numbers.of(place, path);
            number.map_or(String::from(*path), |number| numbered(path, number))
        });
        resolved.collect()
    }

    #[test]
    fn no_two_paths_are_alike() {
        for (given, expected) in [
            (&["a.txt", "A.txt", "a.TXT"][..], &["a.txt", "A (2).txt", "a (3).TXT"][..]),
            (&["a", "a (2)", "a"], &["a", "a (2)", "a (3)"]),
            (&["a", "a/b", "a/c/d", "A/C"], &["a (2)", "a/b", "a/c/d", "A/C (2)"]),
            (&["ΑΣ", "ασ", "ας"], &["ΑΣ", "ασ (2)", "ας (3)"]),
            (&["e\u{301}", "\u{e9}"], &["e\u{301}", "\u{e9} (2)"]),
            (&["x/a", "y/a", "a"], &["x/a", "y/a", "a"]),
        ] {
            assert_eq!(resolved(given), expected);
        }
        let long = "x".repeat(250);
        let ends = ["aaaa", "aaab", "AAAA", "AAAB"].map(|end| format!("{long}{end}"));
        let found = resolved(&ends.each_ref().map(|path| &**path));
        let expected = [&*ends[0], &*ends[1]].map(String::from);
        assert_eq!(found[..2], expected);
        assert_eq!(found[2..], [2, 3].map(|n| format!("{long}A ({n})")));
    }

    /// Long paths become alike when a number takes the place of their ends, which all of them would count through anew.
    #[test]
    fn hardly_any_number_is_tried_twice() {
        let mut all = Paths::default();
        let ends = (0..5_000_u32).map(|n| char::from_u32(0x3400 + n).unwrap_or_default());
        let paths: Vec<String> =
            ends.flat_map(|end| vec![format!("{}{end}", "x".repeat(248)); 2]).collect();
        for (path, id) in paths.iter().zip(1..) {
            all.add(path, Uuid::from_u128(id));
        }
        let mut numbers = all.numbers();
        let given = paths.iter().enumerate().filter_map(|(place, path)| numbers.of(place, path));
        assert_eq!(given.count(), 5_000);
        assert_eq!(numbers.used.len(), 10_000);
        let tried: u64 = numbers.next.values().map(|next| u64::from(*next)).sum();
        assert!(tried < 100_000, "{tried}");
    }
}
