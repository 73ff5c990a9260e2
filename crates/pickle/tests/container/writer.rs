//! A writer of zip archives, byte by byte, of honest ones as torch writes them and of odd ones.

/// A member, and how its records lie.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) local_name: Option<String>,
    pub(crate) content: Vec<u8>,
    pub(crate) raw: Option<Vec<u8>>,
    pub(crate) method: u16,
    pub(crate) local_method: Option<u16>,
    pub(crate) flags: u16,
    pub(crate) local_flags: Option<u16>,
    pub(crate) crc: u32,
    pub(crate) local_crc: Option<u32>,
    pub(crate) size: Option<u32>,
    pub(crate) local_size: Option<u32>,
    pub(crate) extra: Vec<u8>,
    pub(crate) local_extra: Vec<u8>,
    pub(crate) comment: Vec<u8>,
    pub(crate) descriptor: Option<Vec<u8>>,
    pub(crate) header: Option<u32>,
    pub(crate) before: Vec<u8>,
}

pub(crate) fn member(name: &str, content: &[u8]) -> Member {
    Member {
        name: name.to_string(),
        local_name: None,
        content: content.to_vec(),
        raw: None,
        method: 0,
        local_method: None,
        flags: 0,
        local_flags: None,
        crc: crc32fast::hash(content),
        local_crc: None,
        size: None,
        local_size: None,
        extra: Vec::new(),
        local_extra: Vec::new(),
        comment: Vec::new(),
        descriptor: None,
        header: None,
        before: Vec::new(),
    }
}

/// A member whose checksum and sizes follow its bytes, as torch writes it.
pub(crate) fn streamed(name: &str, content: &[u8]) -> Member {
    let mut member = member(name, content);
    member.flags = 0x808;
    member.local_crc = Some(0);
    member.local_size = Some(0);
    let mut record = b"PK\x07\x08".to_vec();
    record.extend(member.crc.to_le_bytes());
    record.extend((content.len() as u32).to_le_bytes());
    record.extend((content.len() as u32).to_le_bytes());
    member.descriptor = Some(record);
    member
}

/// A deflated member.
pub(crate) fn deflated(name: &str, content: &[u8]) -> Member {
    let mut member = member(name, content);
    member.method = 8;
    member.raw = Some(miniz_oxide::deflate::compress_to_vec(content, 6));
    member
}

/// An archive, and what is around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    pub(crate) before: Vec<u8>,
    /// Whether offsets count from the start of the file and not of the archive.
    pub(crate) absolute: bool,
    pub(crate) before_directory: Vec<u8>,
    pub(crate) after_directory: Vec<u8>,
    pub(crate) count: Option<u16>,
    pub(crate) wide: bool,
    pub(crate) wide_count: Option<u64>,
    pub(crate) saturated: bool,
    pub(crate) comment: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

impl Writer {
    pub(crate) fn write(&self, members: &[Member]) -> Vec<u8> {
        let mut file = self.before.clone();
        let base = if self.absolute { 0 } else { file.len() };
        let mut directory = Vec::new();
        for member in members {
            file.extend(&member.before);
            let offset = (file.len() - base) as u32;
            let raw = member.raw.as_ref().unwrap_or(&member.content);
            let size = member.size.unwrap_or(member.content.len() as u32);
            let compressed = if member.method == 0 { size } else { raw.len() as u32 };
            let compressed = if member.raw.is_some() { raw.len() as u32 } else { compressed };
            let local_name = member.local_name.as_ref().unwrap_or(&member.name);
            file.extend(b"PK\x03\x04\0\0");
            file.extend(member.local_flags.unwrap_or(member.flags).to_le_bytes());
            file.extend(member.local_method.unwrap_or(member.method).to_le_bytes());
            file.extend([0; 4]);
            file.extend(member.local_crc.unwrap_or(member.crc).to_le_bytes());
            file.extend(member.local_size.unwrap_or(compressed).to_le_bytes());
            file.extend(member.local_size.unwrap_or(size).to_le_bytes());
            file.extend((local_name.len() as u16).to_le_bytes());
            file.extend((member.local_extra.len() as u16).to_le_bytes());
            file.extend(local_name.as_bytes());
            file.extend(&member.local_extra);
            file.extend(raw);
            file.extend(member.descriptor.iter().flatten());
            directory.extend(b"PK\x01\x02\0\0\0\0");
            directory.extend(member.flags.to_le_bytes());
            directory.extend(member.method.to_le_bytes());
            directory.extend([0; 4]);
            directory.extend(member.crc.to_le_bytes());
            directory.extend(compressed.to_le_bytes());
            directory.extend(size.to_le_bytes());
            directory.extend((member.name.len() as u16).to_le_bytes());
            directory.extend((member.extra.len() as u16).to_le_bytes());
            directory.extend((member.comment.len() as u16).to_le_bytes());
            directory.extend([0; 8]);
            directory.extend(member.header.unwrap_or(offset).to_le_bytes());
            directory.extend(member.name.as_bytes());
            directory.extend(&member.extra);
            directory.extend(&member.comment);
        }
        file.extend(&self.before_directory);
        let offset = (file.len() - base) as u64;
        let size = directory.len() as u64;
        let count = members.len() as u64;
        file.extend(directory);
        file.extend(&self.after_directory);
        if self.wide {
            let at = (file.len() - base) as u64;
            let count = self.wide_count.unwrap_or(count);
            file.extend(b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0");
            file.extend([0; 8]);
            for number in [count, count, size, offset] {
                file.extend(number.to_le_bytes());
            }
            file.extend(b"PK\x06\x07\0\0\0\0");
            file.extend(at.to_le_bytes());
            file.extend(1_u32.to_le_bytes());
        }
        let full = self.saturated;
        let count = self.count.unwrap_or(if full { u16::MAX } else { count as u16 });
        file.extend(b"PK\x05\x06\0\0\0\0");
        file.extend(count.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend((if full { u32::MAX } else { size as u32 }).to_le_bytes());
        file.extend((if full { u32::MAX } else { offset as u32 }).to_le_bytes());
        file.extend((self.comment.len() as u16).to_le_bytes());
        file.extend(&self.comment);
        file.extend(&self.after);
        file
    }
}
