"""What every loader has to give: which part of a tensor, and a checksum over all of them.

The checksum depends on each tensor's name and bytes, and not on the order of the tensors:

1. The word sum of a tensor is the sum of its bytes taken eight at a time as little-endian
   64-bit words, modulo 2^64. Where the last word is not whole, zeros follow its bytes.
2. The weight of a name is the 64-bit FNV-1a hash of its UTF-8 bytes, made odd: bit 0 is set.
3. The checksum is the sum, over the tensors, of word sum times weight, modulo 2^64.

It is there so that nobody wins by not reading, or by giving the bytes of another tensor. It
does not see words that changed places within a tensor.

The bytes of a slice are its own, in row-major order, not those of the tensor around it.
`benches/src/bin/weigh-load/answer.rs` is the same in Rust; both are tested with one example.
"""

import numpy

MASK = (1 << 64) - 1


class Checksum:
    """The checksum of the tensors added so far, with their count and bytes."""

    def __init__(self):
        self.value = 0
        self.tensors = 0
        self.bytes = 0

    def add(self, name, data):
        """Adds a tensor: `data` is its bytes, a one-dimensional array of uint8."""
        self.value = (self.value + word_sum(data) * weight(name)) & MASK
        self.tensors += 1
        self.bytes += data.size

    def shown(self):
        """As it stands in JSON: hexadecimal, for not every reader keeps 64 bits of a number."""
        return f"{self.value:016x}"


def word_sum(data):
    """The sum of the little-endian 64-bit words of `data`, zeros after its end."""
    whole = data.size // 8 * 8
    words = data[:whole].view("<u8")
    tail = int.from_bytes(data[whole:].tobytes(), "little")
    return (int(numpy.add.reduce(words, dtype=numpy.uint64)) + tail) & MASK


def weight(name):
    """The FNV-1a hash of a name, made odd so that no word sum is lost."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value | 1


def middle_eighth(length):
    """The indices `start` and `stop` that a slice takes of a dimension of this length."""
    return length * 7 // 16, length * 9 // 16
