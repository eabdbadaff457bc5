//! The settings of a store in a build without the feature `s3`, which keeps contents in the data directory only: they
//! are known, and refused.

use super::reader::SettingsReader;
use super::words::Environment;

const NONE: &str = "nothing, because this build has no client of a store: the cargo feature s3 adds it, and the \
                    Debian package has it";

/// There are none.
#[derive(Clone)]
pub enum StoreSettings {}

/// Refuses a store.
pub fn read(r: &mut SettingsReader, _: Environment) -> Option<StoreSettings> {
    r.setting(&["CLOAKROOM_STORAGE_URL"]).optional_hidden(
        NONE,
        |_| None::<StoreSettings>,
        |_, _| String::new(),
    );
    r.setting(&["CLOAKROOM_STORAGE_ACCESS_KEY"]).secret("");
    r.setting(&["CLOAKROOM_STORAGE_SECRET_KEY"]).secret("");
    r.setting(&["CLOAKROOM_STORAGE_CA"]).read("", NONE, |_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_refused_and_the_fault_names_the_feature() {
        const URL: &str = "CLOAKROOM_STORAGE_URL";
        let variables = [(URL.to_owned(), "s3://files?endpoint=https://h&region=r".to_owned())];
        let mut reader = SettingsReader::new(variables.into());
        assert!(read(&mut reader, Environment::Development).is_none());
        let [(name, fault)] = &reader.faults[..] else { panic!("one fault") };
        assert!(*name == URL && fault.contains("the cargo feature s3 adds it"), "{fault}");
    }
}
