//! Settings of glibc's memory allocator, which it reads from the environment when the process starts.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// From this size a block is mapped by itself, and unmapped when it is freed. Else glibc raises the limit to the size
/// of the first such block that is freed, and from then on keeps the 16 MiB of each password hash for the next one, in
/// every heap in which one was ever computed: 500 MiB after a hundred sign-ins over a hundred connections. The second
/// limit, on the free memory at the end of each heap, is the one that glibc would derive from the first.
const MALLOC_VARIABLES: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "1048576"), ("MALLOC_TRIM_THRESHOLD_", "2097152")];

/// Sets the variables, unless one of them is set, and executes this program again in place of the running one, with the
/// same arguments and process id: only unsafe code could change the limits of a running process (`mallopt`). Returns if
/// they are set, and also if executing fails, because the process then only needs more memory.
pub fn apply_malloc_settings() {
    if MALLOC_VARIABLES.iter().any(|(name, _)| std::env::var_os(name).is_some()) {
        return;
    }
    let mut arguments = std::env::args_os();
    if let (Some(name), Ok(program)) = (arguments.next(), std::env::current_exe()) {
        let mut command = Command::new(program);
        // An error is all that this ever returns.
        let _ = command.arg0(name).args(arguments).envs(MALLOC_VARIABLES).exec();
    }
}
