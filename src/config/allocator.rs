//! Settings of glibc's memory allocator, which it reads from the environment when the process starts.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::available_parallelism;

/// Where glibc reads its settings. An operator who sets this variable keeps all of their own.
const TUNABLES_VARIABLE: &str = "GLIBC_TUNABLES";
/// From `mmap_threshold` a block is mapped by itself, and unmapped when it is freed. By default glibc raises this limit
/// to the size of the first such block that is freed, and from then on keeps the 16 MiB of each password hash in the
/// heap of the thread that computed it. `trim_threshold` is the free memory that the end of a heap may have. With
/// `hugetlb` the kernel may give a large block huge pages, which saves most of the 4,096 page faults of a hash.
///
/// The others keep the memory small that connections leave behind. Each thread keeps blocks that it has freed, by
/// default up to 1032 bytes each and 7 of each size; with `tcache_max` only those of up to 128 bytes, as most blocks of
/// a request are. glibc also keeps the stacks of threads that have ended, by default 40 MiB in all, here 4 MiB.
const TUNABLES: &str = "glibc.malloc.mmap_threshold=1048576:glibc.malloc.trim_threshold=131072:glibc.malloc.hugetlb=1:\
                        glibc.malloc.tcache_max=128:glibc.pthread.stack_cache_size=4194304";
/// Heaps for each core, which the threads share. By default there are eight, each with free memory of its own; these
/// are enough, because most threads wait for their client or for the database.
const HEAPS_PER_CORE: usize = 2;
/// Set for the executed program, so that it does not execute itself again. `GLIBC_TUNABLES` cannot serve for that,
/// because glibc removes it from the environment of a program that has capabilities of its own (`setcap`).
const MARKER: &str = "CLOAKROOM_ALLOCATOR_SET";

/// Executes this program again with the settings: only unsafe code could change those of a running process (`mallopt`).
/// Must be called while there is one thread and nothing is open. Returns in the executed program, and if the operator
/// has settings of their own or executing fails: then the process only needs more memory.
pub fn apply_allocator_settings() {
    let is_set = |name| std::env::var_os(name).is_some();
    if !cfg!(target_env = "gnu") || is_set(MARKER) || is_set(TUNABLES_VARIABLE) {
        return;
    }
    let heaps = available_parallelism().map_or(1, NonZero::get) * HEAPS_PER_CORE;
    let tunables = format!("{TUNABLES}:glibc.malloc.arena_max={heaps}");
    let variables = [(TUNABLES_VARIABLE, &*tunables), (MARKER, "1")];
    let _ = execute_again(variables.map(|(name, value)| (name.into(), value.into())));
}

/// Executes this program in place of the running one, with the same arguments and process id, and with these variables
/// besides those of its environment, or in their place. Must be called while there is one thread and nothing is open.
/// Returns only if it fails.
pub fn execute_again(variables: impl IntoIterator<Item = (OsString, OsString)>) -> io::Error {
    let run = || -> io::Result<Infallible> {
        let mut arguments = std::env::args_os();
        let name = arguments.next().unwrap_or_default();
        let mut command = Command::new(std::env::current_exe()?);
        Err(command.arg0(name).args(arguments).envs(variables).exec())
    };
    match run() {
        Err(error) => error,
    }
}
