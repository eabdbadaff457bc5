//! The limits that the system puts on this process. Those of a service are set by its unit and may be others.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::config::{Config, HttpServer};
use crate::server::limits::{FILES_PER_CONNECTION, connections_within};
use crate::tools::findings::{Findings, Level};

/// Threads beside those of connections: the background, the main one, exports, and those that libraries start.
const OTHER_THREADS: u64 = 32;

/// Compares the limits on open files and on threads with the connections that the settings allow.
pub fn judge(findings: &mut Findings, config: &Config) {
    let files = getrlimit(Resource::Nofile);
    let raised = if files.current == files.maximum {
        String::new()
    } else {
        format!(", which `serve` raises to {}", shown(files.maximum))
    };
    let connections = connections_within(config, files.maximum);
    findings.judge(
        connections >= config.max_connections,
        Level::Warning,
        format_args!(
            "limits: {} open files{raised}: room for {connections} connections",
            shown(files.current)
        ),
        &format!(
            "CLOAKROOM_MAX_CONNECTIONS is {}, and a connection needs {FILES_PER_CONNECTION} files: raise LimitNOFILE= \
             in the unit (`ulimit -Hn` in a shell), or lower the setting.",
            config.max_connections
        ),
    );
    let needed = OTHER_THREADS
        + match config.http_server {
            HttpServer::Builtin => connections as u64,
            HttpServer::Rouille => config.workers as u64,
        };
    let threads = max_threads();
    findings.judge(
        threads.is_none_or(|threads| threads >= needed),
        Level::Warning,
        format_args!("limits: {} threads, {needed} are needed at most", shown(threads)),
        "Raise TasksMax= in the unit (`ulimit -u` in a shell), or lower CLOAKROOM_MAX_CONNECTIONS.",
    );
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or("any number of".to_owned(), |limit| limit.to_string())
}

/// How many threads this process may have: the least of its user's limit and those of its control groups. All other
/// processes of the user, or of the group, count too.
fn max_threads() -> Option<u64> {
    let of_user = getrlimit(Resource::Nproc).current;
    // In the only hierarchy of cgroup v2 the line is `0::/path` (cgroups(7)).
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let with_parents = Path::new(group).ancestors().map(|path| root.join(path).join("pids.max"));
    // The file holds a number or `max`; the root group has none.
    let of_groups =
        with_parents.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    of_groups.chain(of_user).min()
}
