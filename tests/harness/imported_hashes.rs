//! Password hashes that other programs made, all of [`PASSWORD`](super::PASSWORD) unless their names say otherwise.

/// By Python's `bcrypt` 4.0.1.
pub const BCRYPT_2A: &str = "$2a$04$uw8Lapf4hBqf4fDIcLwS7eXmjF/rLWSpB1hDZvGr.1Gm7wKn6Ceyy";
pub const BCRYPT_2B: &str = "$2b$04$gkY9uau.VlTjS52KpkCwzuCTUp2p0WdO3aifsRd6iUUTKHmAd8SxG";
pub const BCRYPT_14: &str = "$2b$14$/M8S6K4KT/ZWAkMn2Vc4fOLv4No1pXOmrCtTzqex0ofRJ.iPGzHLq";
/// Of `0123456789`, eight times, of which the first 72 characters count.
pub const BCRYPT_LONG: &str = "$2b$04$QisEzoAJbGqeVSXFzVWmfOrke4oVCokMcysAUslqW6Zh6ClkaYYSO";
/// Of `cafe\u{301} au lait`.
pub const BCRYPT_DECOMPOSED: &str = "$2b$04$HRmMOuPgfvCA4xCbeiqABuAcztwqILYdCcJlt./tx5tSypxNdLaL2";
/// Of `caf\u{e9} au lait`.
pub const BCRYPT_COMPOSED: &str = "$2b$04$/H99DFc7Kg9AQ5773/iMEue7tuPwEh/EhHudooQb4KIaI46XOoFJ.";
/// By Python's `passlib` 1.7.4, as PHP writes them.
pub const BCRYPT_2Y: &str = "$2y$05$EnDJxY3ihKX2yW9i1uQ5xO6OhakK.ZZIAfLjo2BrBN/c3T6/vtNX.";
/// By Python's `argon2-cffi` 25.1.0: the cheapest, one with the longest salt and output, and one with the shortest and
/// the most passes.
pub const ARGON2ID: &str =
    "$argon2id$v=19$m=8,t=1,p=1$qoUhld6BhOBHVM49NtJKsw$JlnWkz5onY90yGkLB7Louij2mS7gjoQ3KzueDhrVDkA";
pub const ARGON2ID_LONG: &str = "$argon2id$v=19$m=64,t=2,p=4$hS+IhmttaXzarhrYhkgrwLVwMvGSydG9xUmUHPtUHtsuhei05TCHJOo\
     zMhJ98FkatToOPPsG0L92FD6HIhmNzQ$zsKkJ+sIbZsc3gGCDDUXa2PY+z65qlZmqXNSh8DnXVXBzf3LYl7seRlXposd6LmDZAUp5sX72XSeIFDAcK\
     kMrg";
pub const ARGON2ID_SHORT: &str = "$argon2id$v=19$m=32,t=10,p=1$31EKHXvQtUo$+ji5rOxGmzKQ+Wt2ZvsZ5w";
/// By its defaults, which take 64 MiB.
pub const ARGON2ID_64_MIB: &str = "$argon2id$v=19$m=65536,t=3,p=4$FaJnEr8bzQkhtfR1O5wEIg$U/G8Re9hIGhmLucUlnMEygsfe4GQ/\
     d65k4kO8NIFleY";
/// By `passlib`: as a hash of this program with the settings of tests, a cheaper one, and the dearest that is taken.
pub const SCRYPT: &str =
    "$scrypt$ln=4,r=8,p=1$xXiv9Z5TqhVCSOm9l3JO6Q$YuOlf3hURqevJ/4ERNqwE3XwdyCsiAHlLPcA6kfnU3w";
pub const SCRYPT_CHEAPER: &str =
    "$scrypt$ln=3,r=8,p=1$hfCeE6I0phTCWEsJodQaYw$UDp7mTVb6zooUi5Ul/a5QQkZ/WdwDeY28Usv9ZJbtN4";
pub const SCRYPT_DEARER: &str =
    "$scrypt$ln=4,r=8,p=4$qrVWyrn33hsDIKR07j1nzA$PHNyRRat0KxLrwtOf7B2+jKktqSBSMn9CxDukyuQeJY";

/// Those of the usual password that this program does not take for its own. With [`ROOMY_SCRYPT`] each takes one turn
/// of the queue.
pub const IMPORTED_HASHES: [&str; 8] = [
    BCRYPT_2A,
    BCRYPT_2B,
    BCRYPT_2Y,
    ARGON2ID,
    ARGON2ID_LONG,
    ARGON2ID_SHORT,
    SCRYPT_DEARER,
    BCRYPT_14,
];
/// Hashes of this program that take 64 KiB, and their beginning.
pub const ROOMY_SCRYPT: (&str, &str) = ("CLOAKROOM_SCRYPT", "6,8,1");
pub const ROOMY_HASH: &str = "$scrypt$ln=6,r=8,p=1$";
