//! Files as clients see them.

use std::net::IpAddr;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use super::media_type::listed;
use super::timestamp::Timestamp;
use crate::config::{Config, UploadTypes};

/// A stored file.
#[derive(Debug, Clone, Serialize)]
pub struct File {
    /// Also the name under which the content is stored on disk.
    pub id: Uuid,
    /// The owner.
    pub user_id: Uuid,
    /// The name that is shown. The owner may change it.
    pub filename: String,
    /// The name given at upload. Downloads are saved under it.
    pub original_filename: String,
    /// Media type without parameters, in lower case, spelt as in the list of accepted types.
    pub content_type: String,
    /// In bytes.
    pub file_size: i64,
    /// SHA-256 of the content in hexadecimal digits. Serialisation adds the prefix `sha256:`.
    #[serde(serialize_with = "with_algorithm")]
    pub file_hash: String,
    pub description: Option<String>,
    /// Where it lies, in the form of the column `files.folder`; `None` for others than the owner. Serialisation makes a
    /// path of it.
    #[serde(serialize_with = "as_path")]
    pub folder: Option<String>,
    pub upload_date: Timestamp,
    /// The same as `upload_date`, under the name that some clients know.
    pub uploaded_at: Timestamp,
    /// Last change of the name, the description, the folder or `is_public`.
    pub updated_at: Timestamp,
    /// Whether every signed-in user may read it, not only the owner.
    pub is_public: bool,
    /// The link by which a stranger sent it, if one did; `None` for others than the owner.
    pub received_by: Option<Uuid>,
    /// The version of this record: 1 at first, and one more after each change.
    #[serde(skip)]
    pub version: i32,
}

/// The entity tag of a version of a file's record (RFC 9110, 8.8.3). That of its content is another one.
pub fn version_tag(version: i32) -> String {
    format!("\"{version}\"")
}

/// The version that has this entity tag.
pub fn version_of_tag(tag: &str) -> Option<i32> {
    let version = tag.trim_matches('"').parse().ok()?;
    (version_tag(version) == tag).then_some(version)
}

/// What a client asks of the record that it changes.
#[derive(Debug, Default)]
pub struct VersionConditions {
    /// The versions of which it must have one; `None` stands for any.
    pub allowed: Option<Vec<i32>>,
    /// Those that it must not have.
    pub refused: Vec<i32>,
    /// It must not have changed after this time, to the second.
    pub unmodified_since: Option<OffsetDateTime>,
}

impl File {
    /// The file with the name that the list of types has for its type, if it is there. The list may have changed since.
    pub fn with_listed_type(mut self, types: &UploadTypes) -> File {
        if let Some(name) = listed(&self.content_type, types) {
            self.content_type = name;
        }
        self
    }
}

fn with_algorithm<S: Serializer>(hash: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("sha256:{hash}"))
}

fn as_path<S: Serializer>(folder: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    folder.as_deref().map(folder_path).serialize(serializer)
}

/// A folder as clients write it: `/`, or `/a/b`.
pub fn folder_path(folder: &str) -> String {
    format!("/{}", folder.strip_suffix('\x01').unwrap_or(folder).replace('\x01', "/"))
}

/// The quotas that the files of a user, and all files, must not exceed together with a new one. All are at most an
/// exbibyte.
pub struct FileQuotas {
    /// Bytes of the files of an owner without a quota of its own.
    pub user_bytes: u64,
    /// Number of the files of such an owner.
    pub user_files: u32,
    /// Bytes of all files.
    pub service_bytes: u64,
    /// Bytes of the files of all young accounts that registered themselves.
    pub young_bytes: u64,
}

impl FileQuotas {
    /// Those of the settings.
    pub fn of(config: &Config) -> FileQuotas {
        FileQuotas {
            user_bytes: config.user_storage_quota,
            user_files: config.user_file_quota,
            service_bytes: config.storage_quota,
            young_bytes: config.young_storage_quota(),
        }
    }
}

/// Totals of files. Months are calendar months, UTC.
#[derive(Serialize)]
pub struct FileStatistics {
    pub total: i64,
    /// In bytes.
    pub total_size: i64,
    pub uploads_this_month: i64,
    /// Bytes of deleted files that can still be restored.
    #[serde(skip)]
    pub deleted_size: i64,
}

/// A file whose content is stored and that is about to be recorded.
#[derive(Default)]
pub struct NewFile {
    pub id: Uuid,
    /// The owner.
    pub user: Uuid,
    /// In the form of the column `files.folder`.
    pub folder: String,
    /// The name the client sent.
    pub filename: String,
    /// The media type, in lower case.
    pub content_type: String,
    /// In bytes.
    pub size: u64,
    /// SHA-256 of the content, hexadecimal.
    pub hash: String,
    /// CRC-32 of the content.
    pub crc32: u32,
    /// Whether all of the content is UTF-8 without NUL.
    pub is_utf8: bool,
    pub description: Option<String>,
    /// The client's address and the id of its request, for the audit log.
    pub address: Option<IpAddr>,
    pub request_id: Option<Uuid>,
    /// The link by which a stranger sends it.
    pub link: Option<Uuid>,
    /// The idempotency key of the request.
    pub key: Option<String>,
    /// The upload in several requests that is complete by this.
    pub partial: Option<Uuid>,
}

impl NewFile {
    /// SHA-256 of what makes another upload with the same key the same one. No text but the last contains a NUL, so
    /// they cannot be split in another way.
    pub fn request_hash(&self) -> Vec<u8> {
        let description = self.description.as_deref().unwrap_or_default();
        let content_type = self.content_type.to_ascii_lowercase();
        let texts = [&*self.hash, &*content_type, &*self.folder, &*self.filename, description];
        Sha256::digest(texts.join("\0")).to_vec()
    }
}

/// The first upload with a key.
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "no upload has a key"))]
pub struct KeyedUpload {
    pub file: Uuid,
    /// [`NewFile::request_hash`] of the first upload.
    pub request_hash: Vec<u8>,
    /// In bytes.
    pub size: u64,
    pub created_at: Timestamp,
}
