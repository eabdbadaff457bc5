//! A real nginx, which `scripts/test` installs.

use std::fmt::Write as _;
use std::fs::File;
use std::process::{Child, Command, Stdio};

use super::{Directory, OutputText, wait_until};

/// A running nginx. It is killed when this is dropped.
pub struct NginxProcess {
    process: Child,
    /// Holds its configuration, its log and whatever it writes.
    pub directory: Directory,
}

/// The command, which may be in a directory that is not in every user's `PATH`.
fn nginx() -> Command {
    let mut command = Command::new("nginx");
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin")).stdin(Stdio::null());
    command
}

impl NginxProcess {
    /// Starts one with these directives in its `http` block and waits until `is_ready`.
    pub fn start(directory: Directory, http: &str, is_ready: impl Fn() -> bool) -> NginxProcess {
        let path = directory.path().display();
        let mut config = format!(
            "daemon off;\nmaster_process off;\npid {path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{http}\n\
             client_body_temp_path {path}/body;\nproxy_temp_path {path}/proxy;\n"
        );
        let built = nginx().arg("-V").output().expect("nginx, which scripts/test installs").err();
        for module in ["fastcgi", "scgi", "uwsgi"] {
            if !built.contains(&format!("--without-http_{module}_module")) {
                writeln!(config, "{module}_temp_path {path}/{module};").expect("text");
            }
        }
        let main = directory.join("nginx.conf");
        std::fs::write(&main, config + "}\n").expect("a file");
        let log = File::create(directory.join("log")).expect("a file");
        let mut command = nginx();
        command.args(["-p", &path.to_string(), "-e", "stderr", "-c"]).arg(main).stderr(log);
        let mut nginx = NginxProcess { process: command.spawn().expect("nginx"), directory };
        wait_until(|| {
            if let Some(status) = nginx.process.try_wait().expect("a child") {
                let log = std::fs::read_to_string(nginx.directory.join("log"));
                panic!("nginx ended with {status}: {log:?}");
            }
            is_ready()
        });
        nginx
    }
}

impl Drop for NginxProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
