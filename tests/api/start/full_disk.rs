//! A start with a full data directory, which is a small file system of its own. Mounting it needs the rights of root,
//! or a system that lets users have namespaces.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::harness::*;

/// A small file system in the place of a data directory, for the processes in a namespace. It ends with the shell that
/// has mounted it.
struct SmallDisk {
    shell: Child,
    data: Arc<Directory>,
}

impl SmallDisk {
    /// Copies what the directory holds to the file system, which has room for 4 MiB and a hundred files, and fills it
    /// with that many bytes and names.
    fn filled(data: &Arc<Directory>) -> SmallDisk {
        let script = format!(
            "cd {0} && cp -a . ../kept-{1} && mount -t tmpfs -o size=4m,nr_inodes=100,mode=700 tmpfs {0} && cd {0} &&
             cp -a ../kept-{1}/. . && rm -r ../kept-{1} && touch mounted && exec sleep infinity",
            data.path().display(),
            unique_name()
        );
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "bash", "-euc", &script]);
        let shell = command.stdin(Stdio::null()).spawn().expect("unshare runs");
        let disk = SmallDisk { shell, data: data.clone() };
        wait_until(|| disk.path("mounted").exists());
        disk.fill();
        disk
    }

    /// A path in the file system, as processes outside of the namespace reach it.
    fn path(&self, relative: &str) -> PathBuf {
        let path = self.data.join(relative);
        PathBuf::from(format!("/proc/{}/root{}", self.shell.id(), path.display()))
    }

    /// Takes all room.
    fn fill(&self) {
        let bytes = vec![b'x'; 4096];
        let mut file = fs::File::create(self.path("growth")).expect("a file");
        while std::io::Write::write_all(&mut file, &bytes).is_ok() {}
        let name = |n| self.path(&format!("growth-{n}"));
        assert!((0..100).any(|n| fs::File::create(name(n)).is_err()), "there is a limit");
    }

    /// The binary in the namespace.
    fn command(&self, database: &Database, settings: &[(&str, &str)]) -> Command {
        let service = command(&database.url, &self.data, settings);
        let mut entering = Command::new("nsenter");
        let target = self.shell.id().to_string();
        entering.args(["--target", &target, "--user", "--mount", "--preserve-credentials"]);
        entering.arg(format!("--wd={}", self.data.path().display()));
        entering.arg(service.get_program()).env_clear().stdin(Stdio::null());
        for (name, value) in service.get_envs() {
            entering.envs(value.map(|value| (name, value)));
        }
        entering
    }

    fn serve(&self, database: &Arc<Database>, settings: &[(&str, &str)]) -> Server {
        Server::spawn(self.command(database, settings), database, &self.data)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_start_that_is_not_the_first_serves_degraded_and_its_sweep_makes_room() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_JWT_SECRET", "")], ["ann"]);
    let [kept, deleted] = ["a.txt", "b.txt"].map(|name| api.new_file(&ann, name, name));
    // Two megabytes that were moved to the trash a hundred days ago.
    let day: String = api.database.value("SELECT (current_date - 100)::text");
    let trash = api.data.join("trash").join(day);
    DirBuilder::new().mode(0o700).create(&trash).expect("a directory");
    fs::write(trash.join(uuid(1)), vec![b'x'; 2 << 20]).expect("a content");
    let (database, data, status) = api.end(Signal::TERM);
    assert_eq!(status, Some(0));
    let disk = SmallDisk::filled(&data);
    let degraded = json!({"status": "degraded", "reasons": ["DATA_DIRECTORY_REFUSES_CONTENTS"]});
    let upload = |api: &Server| api.upload(&ann, "c.txt", vec![b'x'; 1 << 20]);

    let api =
        disk.serve(&database, &[("CLOAKROOM_JWT_SECRET", ""), ("CLOAKROOM_TRASH_DAYS", "365")]);
    assert_eq!(api.readyz().expect(200).json(), degraded);
    api.logged("is full: No space left on device");
    // The secret and the id are those of before.
    assert_eq!(api.download(&ann, &kept).expect(200).bytes, b"a.txt");
    api.sign_in("ann");
    upload(&api).refused(507, "Storage quota exceeded");
    api.delete_file(&ann, &deleted).expect(204);
    api.delete_for_good(&ann, &kept).expect(204);
    wait_until(|| !disk.path(&format!("files/{kept}")).exists());
    disk.fill();
    let (database, _, status) = api.end(Signal::TERM);
    assert_eq!(status, Some(0));

    let api =
        disk.serve(&database, &[("CLOAKROOM_JWT_SECRET", ""), ("CLOAKROOM_TRASH_DAYS", "10")]);
    wait_until(|| api.readyz().expect(200).json() == json!({"status": "ok"}));
    upload(&api).expect(201);
    if has_extras() {
        api.post(&format!("/uploads/{deleted}/restore"), &ann, json!({})).expect(200);
    }
}

#[test]
fn a_first_start_on_a_full_disk_fails_and_leaves_nothing() {
    let (database, data) = (Database::create_migrated(), Arc::new(Directory::create()));
    for name in ["files", "tmp", "trash"] {
        DirBuilder::new().mode(0o700).create(data.join(name)).expect("a directory");
    }
    let disk = SmallDisk::filled(&data);
    fs::remove_file(disk.path("growth-0")).expect("a name is free, and no room");
    let before = entries(disk.path("")).len();
    for settings in [&[("CLOAKROOM_JWT_SECRET", "")][..], &[]] {
        let mut service = disk.command(&database, settings);
        let output = service.arg("serve").output().expect("it runs").exits(1);
        output.reports("No space left on device");
        assert_eq!(entries(disk.path("")).len(), before);
    }
}
