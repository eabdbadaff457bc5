//! The memory limit of the control group of this process (cgroups(7), both versions), from which some defaults follow.

use std::fs;
use std::path::Path;

/// The lowest memory limit of the groups that hold this process, in bytes; `None` if there is none.
pub fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    lowest_limit(&groups, Path::new("/sys/fs/cgroup"))
}

/// The same for a process whose groups are these lines, each `NUMBER:CONTROLLERS:PATH`. In version 2 there are no
/// controllers. The limit of each group above holds too; a container may see its own group as the root alone.
fn lowest_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("/"));
        let (below, file) = match controllers.split(',').find(|name| ["", "memory"].contains(name))
        {
            Some("memory") => ("memory", "memory.limit_in_bytes"),
            Some(_) => ("", "memory.max"),
            None => return Vec::new(),
        };
        let groups = Path::new(path).ancestors().filter_map(|group| group.strip_prefix("/").ok());
        let read = |group| fs::read_to_string(root.join(below).join(group).join(file)).ok();
        // A group without a limit has `max`, or in version 1 a number that no machine has.
        groups.filter_map(read).filter_map(|text| text.trim().parse().ok()).collect()
    });
    limits.filter(|limit| *limit < 1 << 60).min()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_the_groups_above_holds_in_both_versions() {
        let root = std::env::temp_dir().join(format!("cloakroom-cgroups-{}", std::process::id()));
        for (file, text) in [
            ("a/b/memory.max", "max\n"),
            ("a/memory.max", "67108864\n"),
            ("c/memory.max", "max\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/a/memory.limit_in_bytes", "268435456\n"),
            ("memory/a/b/memory.limit_in_bytes", "536870912\n"),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (groups, expected) in [
            ("0::/a/b\n", Some(64 << 20)),
            ("0::/c\n", None),
            ("0::/\n", None),
            ("3:cpu,memory:/a/b\n2:pids:/a\n0::/\n", Some(256 << 20)),
            ("3:memory:/unknown\n0::/unknown\n", None),
            ("3:memory:/a\n0::/a\n", Some(64 << 20)),
            ("", None),
        ] {
            assert_eq!(lowest_limit(groups, &root), expected, "{groups:?}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}
