//! Executes the program again with other environment variables: only unsafe code could change those of a running
//! process.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

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
