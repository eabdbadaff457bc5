//! Properties that must hold for all bytes. They stand among the unit tests of what they are about, because that is
//! where everything can be reached. `cargo test` checks them for the inputs in `corpus/`. `scripts/fuzz` builds with
//! `--cfg fuzzing`, and has libFuzzer look for more inputs: those that reach code which none before has reached.

/// Checks a property, which panics if it does not hold, for each file in `corpus/NAME/`.
#[cfg(not(fuzzing))]
pub fn check(name: &str, property: impl Fn(&[u8])) {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let inputs = std::fs::read_dir(format!("{corpus}/{name}")).expect("a directory of inputs");
    let mut paths: Vec<_> = inputs.map(|entry| entry.expect("an entry").path()).collect();
    assert!(!paths.is_empty(), "no input of {name}");
    paths.sort();
    for path in paths {
        // Shown if the property does not hold.
        println!("{}", path.display());
        property(&std::fs::read(&path).expect("an input"));
    }
}

#[cfg(fuzzing)]
pub use fuzzing::check;

#[cfg(fuzzing)]
mod fuzzing {
    use std::ffi::{CString, c_char, c_int};
    use std::sync::{Mutex, OnceLock};
    use std::thread;
    use std::time::{Duration, Instant};

    // Links libFuzzer.
    use libfuzzer_sys as _;

    unsafe extern "C" {
        fn LLVMFuzzerRunDriver(
            count: *mut c_int,
            arguments: *mut *mut *mut c_char,
            test_one_input: extern "C" fn(*const u8, usize) -> c_int,
        ) -> c_int;
    }

    type Property = Box<dyn Fn(&[u8]) + Send + Sync>;
    static PROPERTY: OnceLock<Property> = OnceLock::new();

    /// When the input began that is tried.
    static BEGIN: Mutex<Option<Instant>> = Mutex::new(None);
    /// The longest time for one input. libFuzzer's own limit works only where it has the main thread.
    const MAX_TIME: Duration = Duration::from_secs(10);

    /// A panic cannot unwind out of it, so it ends the process, and libFuzzer writes the input to a file.
    extern "C" fn test_one_input(bytes: *const u8, count: usize) -> c_int {
        // SAFETY: libFuzzer passes so many bytes.
        let input = unsafe { std::slice::from_raw_parts(bytes, count) };
        *BEGIN.lock().expect("no panic") = Some(Instant::now());
        PROPERTY.get().expect("a property")(input);
        *BEGIN.lock().expect("no panic") = None;
        0
    }

    /// Has libFuzzer check the property if `CLOAKROOM_FUZZ` asks for it by its name, after which it has the command
    /// line of libFuzzer, with one blank between two words. Ends the process then.
    pub fn check(name: &str, property: impl Fn(&[u8]) + Send + Sync + 'static) {
        let wanted = std::env::var("CLOAKROOM_FUZZ").expect("CLOAKROOM_FUZZ");
        let Some(words) = wanted.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')) else {
            return;
        };
        assert!(PROPERTY.set(Box::new(property)).is_ok(), "two properties have the name {name}");
        thread::spawn(|| {
            let is_slow =
                || BEGIN.lock().is_ok_and(|at| at.is_some_and(|at| at.elapsed() > MAX_TIME));
            while !is_slow() {
                thread::sleep(Duration::from_secs(1));
            }
            eprintln!("An input takes more than {MAX_TIME:?}.");
            std::process::abort();
        });
        let words: Vec<_> = words.split(' ').map(|w| CString::new(w).expect("a word")).collect();
        let pointers = words.iter().map(|word| word.as_ptr().cast_mut());
        let mut pointers: Vec<_> = pointers.chain([std::ptr::null_mut()]).collect();
        let mut count = words.len().try_into().expect("few words");
        // SAFETY: the arguments are those of a C program, and live until the process ends.
        let status =
            unsafe { LLVMFuzzerRunDriver(&mut count, &mut pointers.as_mut_ptr(), test_one_input) };
        std::process::exit(status);
    }
}
