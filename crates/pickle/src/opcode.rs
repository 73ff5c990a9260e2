//! The opcodes of pickle, protocols 0 to 5: a table, and nothing of what they do.

/// What follows an opcode.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "pickle has no others, and protocol 5 is its last")]
pub enum ArgumentKind {
    /// Nothing.
    None,
    /// One byte: a protocol, a memo index, an extension code, a small integer.
    Byte,
    /// An unsigned integer of two bytes.
    Half,
    /// An unsigned integer of four bytes.
    Word,
    /// A signed integer of four bytes.
    SignedWord,
    /// An unsigned integer of eight bytes: the length of a frame.
    Frame,
    /// A float of eight bytes, the highest first.
    Float,
    /// A length of one byte and that many bytes.
    Counted1,
    /// A length of four bytes, unsigned, and that many bytes.
    Counted4,
    /// A length of four bytes, signed, and that many bytes.
    CountedSigned4,
    /// A length of eight bytes and that many bytes.
    Counted8,
    /// A line of text, to a newline.
    Line,
    /// Two lines: a module and a name.
    TwoLines,
}

macro_rules! opcodes {
    ($($name:ident = $byte:literal $text:literal $argument:ident $protocol:literal;)*) => {
        /// An opcode.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[expect(clippy::exhaustive_enums, reason = "pickle has no others, and protocol 5 is its last")]
        pub enum Opcode {
            $(
                #[doc = concat!("`", $text, "`, of protocol ", stringify!($protocol), ".")]
                $name,
            )*
        }

        impl Opcode {
            /// All of them, by protocol.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The opcode of this byte.
            #[inline]
            #[must_use]
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its byte.
            #[must_use]
            pub const fn byte(self) -> u8 {
                match self { $(Self::$name => $byte,)* }
            }

            /// Its name, as Python's `pickletools` has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What follows it.
            #[inline]
            #[must_use]
            pub const fn argument(self) -> ArgumentKind {
                match self { $(Self::$name => ArgumentKind::$argument,)* }
            }

            /// The protocol that brought it.
            #[inline]
            #[must_use]
            pub const fn protocol(self) -> u8 {
                match self { $(Self::$name => $protocol,)* }
            }
        }
    };
}

opcodes! {
    Mark = b'(' "MARK" None 0;
    Stop = b'.' "STOP" None 0;
    Pop = b'0' "POP" None 0;
    Dup = b'2' "DUP" None 0;
    Float = b'F' "FLOAT" Line 0;
    Int = b'I' "INT" Line 0;
    Long = b'L' "LONG" Line 0;
    None = b'N' "NONE" None 0;
    PersId = b'P' "PERSID" Line 0;
    Reduce = b'R' "REDUCE" None 0;
    String = b'S' "STRING" Line 0;
    Unicode = b'V' "UNICODE" Line 0;
    Append = b'a' "APPEND" None 0;
    Build = b'b' "BUILD" None 0;
    Global = b'c' "GLOBAL" TwoLines 0;
    Dict = b'd' "DICT" None 0;
    Get = b'g' "GET" Line 0;
    Inst = b'i' "INST" TwoLines 0;
    List = b'l' "LIST" None 0;
    Put = b'p' "PUT" Line 0;
    SetItem = b's' "SETITEM" None 0;
    Tuple = b't' "TUPLE" None 0;
    PopMark = b'1' "POP_MARK" None 1;
    BinInt = b'J' "BININT" SignedWord 1;
    BinInt1 = b'K' "BININT1" Byte 1;
    BinInt2 = b'M' "BININT2" Half 1;
    BinPersId = b'Q' "BINPERSID" None 1;
    BinString = b'T' "BINSTRING" CountedSigned4 1;
    ShortBinString = b'U' "SHORT_BINSTRING" Counted1 1;
    BinUnicode = b'X' "BINUNICODE" Counted4 1;
    Appends = b'e' "APPENDS" None 1;
    BinFloat = b'G' "BINFLOAT" Float 1;
    BinGet = b'h' "BINGET" Byte 1;
    LongBinGet = b'j' "LONG_BINGET" Word 1;
    EmptyList = b']' "EMPTY_LIST" None 1;
    EmptyTuple = b')' "EMPTY_TUPLE" None 1;
    EmptyDict = b'}' "EMPTY_DICT" None 1;
    Obj = b'o' "OBJ" None 1;
    BinPut = b'q' "BINPUT" Byte 1;
    LongBinPut = b'r' "LONG_BINPUT" Word 1;
    SetItems = b'u' "SETITEMS" None 1;
    Proto = 0x80 "PROTO" Byte 2;
    NewObj = 0x81 "NEWOBJ" None 2;
    Ext1 = 0x82 "EXT1" Byte 2;
    Ext2 = 0x83 "EXT2" Half 2;
    Ext4 = 0x84 "EXT4" SignedWord 2;
    Tuple1 = 0x85 "TUPLE1" None 2;
    Tuple2 = 0x86 "TUPLE2" None 2;
    Tuple3 = 0x87 "TUPLE3" None 2;
    NewTrue = 0x88 "NEWTRUE" None 2;
    NewFalse = 0x89 "NEWFALSE" None 2;
    Long1 = 0x8a "LONG1" Counted1 2;
    Long4 = 0x8b "LONG4" CountedSigned4 2;
    BinBytes = b'B' "BINBYTES" Counted4 3;
    ShortBinBytes = b'C' "SHORT_BINBYTES" Counted1 3;
    ShortBinUnicode = 0x8c "SHORT_BINUNICODE" Counted1 4;
    BinUnicode8 = 0x8d "BINUNICODE8" Counted8 4;
    BinBytes8 = 0x8e "BINBYTES8" Counted8 4;
    EmptySet = 0x8f "EMPTY_SET" None 4;
    AddItems = 0x90 "ADDITEMS" None 4;
    FrozenSet = 0x91 "FROZENSET" None 4;
    NewObjEx = 0x92 "NEWOBJ_EX" None 4;
    StackGlobal = 0x93 "STACK_GLOBAL" None 4;
    Memoize = 0x94 "MEMOIZE" None 4;
    Frame = 0x95 "FRAME" Frame 4;
    ByteArray8 = 0x96 "BYTEARRAY8" Counted8 5;
    NextBuffer = 0x97 "NEXT_BUFFER" None 5;
    ReadOnlyBuffer = 0x98 "READONLY_BUFFER" None 5;
}

/// The last protocol.
pub const LAST_PROTOCOL: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_68_opcodes_each_of_its_own_byte_and_name() {
        let bytes: BTreeSet<_> = Opcode::ALL.iter().map(|opcode| opcode.byte()).collect();
        let names: BTreeSet<_> = Opcode::ALL.iter().map(|opcode| opcode.name()).collect();
        assert_eq!((Opcode::ALL.len(), bytes.len(), names.len()), (68, 68, 68));
        let known = (0..=u8::MAX).filter_map(Opcode::from_byte);
        assert_eq!(known.count(), 68);
        for opcode in Opcode::ALL {
            assert_eq!(Opcode::from_byte(opcode.byte()), Some(*opcode));
            assert!(opcode.protocol() <= LAST_PROTOCOL);
        }
    }

    #[test]
    fn each_protocol_brought_as_many_as_python_says() {
        let of =
            |protocol| Opcode::ALL.iter().filter(|opcode| opcode.protocol() == protocol).count();
        assert_eq!([of(0), of(1), of(2), of(3), of(4), of(5)], [22, 19, 12, 2, 10, 3]);
    }
}
