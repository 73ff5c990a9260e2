//! Where a file is to be written, and what it is called until it is there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use crate::{Error, ErrorKind};

/// A path that a file can be written to: a name in a folder, no link.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The path as it was given, links followed.
    pub(super) path: PathBuf,
    /// The same from the root: the folder that another is counted from may change.
    pub(super) place: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) name: OsString,
    /// The file that is there.
    pub(super) there: Option<Metadata>,
}

impl Target {
    /// Follows links to the end, be there a file or not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::IsFolder`] for what is a folder or is spelled like one, [`ErrorKind::NotAFile`] for pipes,
    /// sockets and devices, and what the system reports, as for links in a circle.
    pub(super) fn find(path: &Path) -> Result<Self, Error> {
        let mut at = path.to_path_buf();
        for _ in 0..=MOST_LINKS {
            check_spelling(path, &at)?;
            let there = match fs::symlink_metadata(&at) {
                Ok(there) => Some(there),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(Error::system(path, error)),
            };
            match there {
                Some(there) if there.is_symlink() => {
                    let link = fs::read_link(&at).map_err(|error| Error::system(path, error))?;
                    at = folder_of(&at).join(link);
                }
                Some(there) if there.is_dir() => return Err(Error::new(path, ErrorKind::IsFolder)),
                Some(there) if !there.is_file() => {
                    return Err(Error::new(path, ErrorKind::NotAFile));
                }
                there => return Ok(Self { there, ..Self::at(at)? }),
            }
        }
        let error = std::io::Error::other("too many links, or links in a circle");
        Err(Error::new(path, ErrorKind::System(error)))
    }

    /// Just this path, whatever is there.
    pub(super) fn at(path: PathBuf) -> Result<Self, Error> {
        let place = std::path::absolute(&path).map_err(|error| Error::system(&path, error))?;
        let name = place.file_name().unwrap_or_default().to_os_string();
        Ok(Self { folder: folder_of(&place).to_path_buf(), name, path, place, there: None })
    }

    /// Whether there is anything by now.
    pub(super) fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.place).is_ok()
    }

    /// A path beside it that is nobody else's, `.NAME.weigh-XXXXXXXX.tmp`.
    pub(super) fn temporary(&self) -> PathBuf {
        self.beside(shortened(&self.name, MOST_STEM), &format!(".weigh-{}.tmp", Token::new()))
    }

    /// Whether a name is one that [`Target::temporary`] may give.
    pub(super) fn is_temporary(&self, name: &OsStr) -> bool {
        let stem = shortened(&self.name, MOST_STEM);
        let stem_of = |name| Some(Token::split(name, ".tmp")?.0);
        stem_of(name).is_some_and(|it| it == stem.as_encoded_bytes())
    }

    /// The path of what is there when it is set aside, `.NAME.weigh-XXXXXXXX.old`.
    ///
    /// Where that would be too long for a name, the hash of the whole name takes the place of its end.
    pub(super) fn aside(&self, token: &Token) -> PathBuf {
        const SHORT: usize = 120;
        let suffix = format!(".weigh-{token}.old");
        if self.name.len() <= SHORT {
            return self.beside(self.name.clone(), &suffix);
        }
        self.beside(shortened(&self.name, MOST_STEM), &format!("-{:016x}{suffix}", self.hash()))
    }

    fn hash(&self) -> u64 {
        super::journal::checksum(self.name.as_encoded_bytes())
    }

    /// The path of its journal, `.NAME.weigh-journal`.
    ///
    /// Where that would be too long for a name, the hash of the whole name takes the place of its end.
    pub(super) fn journal(&self) -> PathBuf {
        const SUFFIX: &str = ".weigh-journal";
        if self.name.len() + SUFFIX.len() < MOST_NAME {
            return self.beside(self.name.clone(), SUFFIX);
        }
        self.beside(shortened(&self.name, MOST_STEM), &format!("-{:016x}{SUFFIX}", self.hash()))
    }

    fn beside(&self, stem: OsString, suffix: &str) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(stem);
        name.push(suffix);
        self.folder.join(name)
    }
}

/// What tells the files of one run from those of others: eight digits.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Token(u32);

impl Token {
    /// One that nobody can foresee.
    pub(super) fn new() -> Self {
        let random = RandomState::new().hash_one(0) & u64::from(u32::MAX);
        Self(u32::try_from(random).unwrap_or_default())
    }

    /// That of a name that [`Target::aside`] has given.
    pub(super) fn of_aside(name: &OsStr) -> Option<Self> {
        Some(Self::split(name, ".old")?.1)
    }

    /// Takes a name apart, `.STEM.weigh-XXXXXXXX` and this end.
    fn split<'a>(name: &'a OsStr, end: &str) -> Option<(&'a [u8], Self)> {
        let name = name.as_encoded_bytes().strip_prefix(b".")?.strip_suffix(end.as_bytes())?;
        let (stem, digits) = name.split_last_chunk::<8>()?;
        let digits = str::from_utf8(digits).ok()?;
        let token = Self(u32::from_str_radix(digits, 16).ok()?);
        (token.to_string() == digits).then_some((stem.strip_suffix(b".weigh-")?, token))
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Links that are followed one after another, as many as Linux does.
const MOST_LINKS: usize = 40;

/// Bytes that a name may have nearly everywhere.
const MOST_NAME: usize = 255;

/// Bytes of a target's name that its temporary name has: some file systems allow no more than 143 in all.
const MOST_STEM: usize = 100;

/// The beginning of a name. Cut between characters: some file systems take no names but in UTF-8.
fn shortened(name: &OsStr, most: usize) -> OsString {
    if name.len() <= most {
        return name.to_os_string();
    }
    let name = name.to_string_lossy();
    name[..name.floor_char_boundary(most)].into()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Refuses what can only be a folder: the standard library forgets a `/` or a `/.` at the end.
fn check_spelling(given: &Path, path: &Path) -> Result<(), Error> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        return Err(Error::new(given, ErrorKind::Missing));
    }
    let is_separator = |byte: &u8| std::path::is_separator(char::from(*byte));
    let last = bytes.rsplit(is_separator).next().unwrap_or_default();
    if matches!(last, b"" | b"." | b"..") {
        return Err(Error::new(given, ErrorKind::IsFolder));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Target {
        Target::at(Path::new("/folder").join(name)).unwrap()
    }

    fn length(path: &Path) -> usize {
        path.file_name().unwrap().len()
    }

    #[test]
    fn names_beside_it_fit_whatever_its_length() {
        for length_of_name in [1, 100, 101, 143, 239, 240, 241, 255] {
            let target = named(&"ü".repeat(length_of_name / 2 + 1)[..length_of_name & !1]);
            let target = if length_of_name == 1 { named("x") } else { target };
            assert!(length(&target.journal()) <= MOST_NAME, "{length_of_name}");
            assert!(length(&target.temporary()) <= 143, "{length_of_name}");
            assert!(length(&target.aside(&Token::new())) <= 143, "{length_of_name}");
            assert_eq!(target.journal().parent(), Some(Path::new("/folder")));
        }
    }

    #[test]
    fn every_name_has_a_journal_of_its_own_and_many_temporary_names() {
        let (long, other) = ("x".repeat(254) + "a", "x".repeat(254) + "b");
        assert_ne!(named(&long).journal(), named(&other).journal());
        assert_eq!(named(&long).journal(), named(&long).journal());
        assert_eq!(
            named("m.safetensors").journal(),
            Path::new("/folder/.m.safetensors.weigh-journal")
        );
        let target = named("m");
        assert_ne!(target.temporary(), target.temporary());
        let name = target.temporary().file_name().unwrap().to_string_lossy().into_owned();
        let random = name.strip_prefix(".m.weigh-").and_then(|rest| rest.strip_suffix(".tmp"));
        assert_eq!(random.map(str::len), Some(8), "{name}");
    }
    #[test]
    fn names_of_its_own_are_told_from_others() {
        let long = "x".repeat(121);
        for name in ["m", "m.safetensors", "ü", &long[..120], &long] {
            let (target, token) = (named(name), Token::new());
            let temporary = target.temporary();
            assert!(target.is_temporary(temporary.file_name().unwrap()), "{name}");
            let aside = target.aside(&token);
            assert_eq!(Token::of_aside(aside.file_name().unwrap()), Some(token), "{name}");
        }
        for other in [
            "m",
            ".m.weigh-0123abcd.old",
            ".m.weigh-0123abc.tmp",
            ".m.weigh-0123abcde.tmp",
            ".m.weigh-0123ABCD.tmp",
            ".m.weigh-+123abcd.tmp",
            ".m.weigh-0123abcg.tmp",
            ".mm.weigh-0123abcd.tmp",
            "m.weigh-0123abcd.tmp",
            ".m.weigh-0123abcd.tmpx",
            ".m.weigh-journal",
            ".weigh-0123abcd.tmp",
        ] {
            assert!(!named("m").is_temporary(OsStr::new(other)), "{other}");
        }
        assert!(named("m").is_temporary(OsStr::new(".m.weigh-0123abcd.tmp")));
    }
}
