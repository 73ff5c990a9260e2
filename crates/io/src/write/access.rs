//! Access lists as Linux has them in the attribute `system.posix_acl_access`: who else may do what with a file.
//!
//! A file that has one shows the list's mask where the mode has the group's bits. What the group may is in the
//! list. Nothing here reads or writes a file.
//!
//! | bytes | |
//! |---|---|
//! | 4 | the version, 2, little-endian |
//! | 8 each | an entry: what it is about (2), what is allowed (2), the number of a user or group (4) |

/// The attribute.
pub(super) const NAME: &std::ffi::CStr = c"system.posix_acl_access";

const VERSION: [u8; 4] = 2_u32.to_le_bytes();

// What entries are about: the group of the file, the most that a group or another user may, and everybody else.
const OWNER: u16 = 0x01;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// The mode of a file that has this one and this list, for one that cannot have the list: it allows the group what
/// the list does, and others no more than anybody whom the list names. A list that cannot be read allows nobody
/// anything but the owner.
pub(super) fn without_list(mode: u32, list: &[u8]) -> u32 {
    let (group, others) = allowed(list).unwrap_or((0, 0));
    mode & !0o077 | group << 3 | others & mode
}

/// What the group may, and the least of what everybody else may.
fn allowed(list: &[u8]) -> Option<(u32, u32)> {
    let (entries, []) = list.strip_prefix(&VERSION)?.as_chunks::<8>() else { return None };
    let entries = entries.iter().map(|&[about, on, allowed, ed, ..]| {
        (u16::from_le_bytes([about, on]), u32::from(u16::from_le_bytes([allowed, ed]) & 7))
    });
    let of = |about| entries.clone().find(|entry| entry.0 == about).map(|entry| entry.1);
    let mask = of(MASK).unwrap_or(7);
    let group = of(GROUP)? & mask;
    let named = entries.filter(|entry| ![OWNER, GROUP, MASK, OTHERS].contains(&entry.0));
    Some((group, named.fold(7, |least, entry| least & entry.1 & mask)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u16 = 0x02;

    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let mut list = VERSION.to_vec();
        for (about, allowed) in entries {
            list.extend(about.to_le_bytes().into_iter().chain(allowed.to_le_bytes()));
            list.extend([9, 0, 0, 0]);
        }
        list
    }

    #[test]
    fn the_groups_bits_are_the_lists_and_nobody_gets_more() {
        for (mode, entries, want) in [
            // The mask lets a user in, not the group.
            (0o660, &[(OWNER, 6), (USER, 6), (GROUP, 0), (MASK, 6), (OTHERS, 0)][..], 0o600),
            (0o664, &[(OWNER, 6), (USER, 6), (GROUP, 4), (MASK, 6), (OTHERS, 4)], 0o644),
            // The group has more than the mask lets it have.
            (0o640, &[(OWNER, 6), (USER, 6), (GROUP, 6), (MASK, 4), (OTHERS, 0)], 0o640),
            // A user who is kept out stays out.
            (0o644, &[(OWNER, 6), (USER, 0), (GROUP, 4), (MASK, 4), (OTHERS, 4)], 0o640),
            (0o4755, &[(OWNER, 7), (GROUP, 5), (OTHERS, 5)], 0o4755),
            (0o664, &[(OWNER, 6), (MASK, 6), (OTHERS, 4)], 0o600),
            (0o664, &[], 0o600),
        ] {
            assert_eq!(without_list(mode, &list(entries)), want, "{mode:o} {entries:?}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_allows_nothing() {
        let whole = list(&[(OWNER, 6), (GROUP, 4), (OTHERS, 4)]);
        assert_eq!(without_list(0o644, &whole), 0o644);
        for length in (0..whole.len()).filter(|length| *length != 20) {
            assert_eq!(without_list(0o644, &whole[..length]), 0o600, "{length}");
        }
        assert_eq!(without_list(0o644, b"\x03\0\0\0"), 0o600);
    }
}
