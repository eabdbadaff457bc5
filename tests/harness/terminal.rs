//! A process at a terminal of its own, at which a test types.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use super::{eventually, within_shell};

/// A pseudo-terminal, and the process whose controlling terminal it is.
pub struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<String>>,
    process: Child,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Starts a command at a new terminal, with these arguments, none of which needs quoting.
    pub fn start(command: Command, arguments: &str) -> Terminal {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a terminal");
        let line = ioctl_tiocgptpeer(&keyboard, OpenptFlags::RDWR | OpenptFlags::NOCTTY);
        let line = File::from(line.expect("its other end"));
        let keyboard = File::from(keyboard);
        let other = || line.try_clone().expect("a file");
        let script = format!("exec setsid --ctty --wait \"$0\" {arguments}");
        let mut shell = within_shell(&script, command);
        let process = shell.stdin(other()).stdout(other()).stderr(other()).spawn();
        let screen = Arc::new(Mutex::new(String::new()));
        let (copy, mut source) = (screen.clone(), keyboard.try_clone().expect("a file"));
        let reader = thread::spawn(move || {
            let mut buffer = [0; 1024];
            // It fails once the process has ended.
            while let Ok(n @ 1..) = source.read(&mut buffer) {
                copy.lock().expect("a screen").push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        Terminal { keyboard, screen, process: process.expect("the command starts"), reader }
    }

    /// Waits until the terminal shows `prompt` last and no longer shows what is typed, and types a line.
    #[track_caller]
    pub fn answer(&mut self, prompt: &str, line: &str) {
        eventually(|| {
            let is_asked = self.screen.lock().expect("a screen").ends_with(prompt);
            let modes = tcgetattr(&self.keyboard).expect("the terminal's modes").local_modes;
            (is_asked && !modes.contains(LocalModes::ECHO)).then_some(())
        });
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("typed");
    }

    /// Waits for the end of the process. Returns its exit status and everything that the terminal showed.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = eventually(|| self.process.try_wait().expect("a child"));
        self.reader.join().expect("no panic");
        let screen = self.screen.lock().expect("a screen").replace('\r', "");
        (status.code(), screen)
    }
}
