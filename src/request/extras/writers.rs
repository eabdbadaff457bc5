//! Who writes the bytes of an upload that comes in several requests: in this process the newest of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use crate::body_memory::Room;
use crate::semaphore::lock;

/// The writer of each upload.
#[derive(Default)]
pub struct Writers(Mutex<HashMap<Uuid, Arc<Writer>>>);

/// A request that writes, and the connection on which its body comes.
struct Writer {
    must_end: AtomicBool,
    room: Option<Arc<Room>>,
}

/// The right to write, which lasts until another request takes it, or this is dropped.
pub struct Turn<'a> {
    all: &'a Writers,
    upload: Uuid,
    writer: Arc<Writer>,
}

impl Writers {
    /// Asks the writer of an upload to end, if there is one, and takes its place.
    pub fn begin(&self, upload: Uuid, room: Option<Arc<Room>>) -> Turn<'_> {
        let writer = Arc::new(Writer { must_end: AtomicBool::new(false), room });
        self.ask_to_end(lock(&self.0).insert(upload, writer.clone()));
        Turn { all: self, upload, writer }
    }

    /// Asks the writer of an upload to end, because there will be no such upload any more.
    pub fn end(&self, upload: Uuid) {
        self.ask_to_end(lock(&self.0).get(&upload).cloned());
    }

    /// It waits for its client no longer, and is answered at once.
    fn ask_to_end(&self, writer: Option<Arc<Writer>>) {
        let Some(writer) = writer else { return };
        writer.must_end.store(true, Ordering::Relaxed);
        if let Some(room) = &writer.room {
            room.stop_reading();
        }
    }
}

impl Turn<'_> {
    pub fn is_over(&self) -> bool {
        self.writer.must_end.load(Ordering::Relaxed)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut writers = lock(&self.all.0);
        if writers.get(&self.upload).is_some_and(|writer| Arc::ptr_eq(writer, &self.writer)) {
            writers.remove(&self.upload);
        }
    }
}
