//! Arrays of numpy as inputs: their headers, and where their elements are.

use weigh_format::{Dtype, Findings};
use weigh_io::FileSource;
use weigh_pickle::Error as PickleError;
use weigh_pickle::container::inflate::Inflater;
use weigh_pickle::container::layout::{self, Contents};
use weigh_pickle::container::npy::{self, Element, Header};
use weigh_pickle::container::torch::ByteOrder;
use weigh_pickle::container::zip::{Entry, Method};
use weigh_pickle::dtype::TorchDtype;
use weigh_pickle::refusal::Refusal;
use weigh_pickle::transform::Transforms;

use crate::torch::convert::input::{self, Beside, Draft, Input, Opened, Unconverted};
use crate::torch::convert::{Complex, ConvertOptions};
use crate::torch::gather::{Blob, Bytes, Gathered, Make, Pattern};
use crate::torch::reading::{Fault, Reading};
use crate::{Error, work};

/// Whether the first member of an archive is an array.
pub(in crate::torch) fn begins_as_npz(source: &FileSource) -> Result<bool, Error> {
    let head = source.read_span(0..source.len().min(30))?;
    let Some([low, high]) = head.get(26..28) else { return Ok(false) };
    let end = 30 + u64::from(u16::from_le_bytes([*low, *high]));
    Ok(end <= source.len() && source.read_span(30..end)?.ends_with(b".npy"))
}

/// Reads the headers of all arrays of an archive.
pub(in crate::torch) fn read_npz(
    into: &mut Input,
    source: FileSource,
    options: &ConvertOptions,
) -> Result<(), Error> {
    let limits = input::limits(options);
    let mut reading = Reading::new(&source, limits);
    let layout = reading.ask(|spans| layout::open(spans, limits));
    let layout = layout.map_err(|fault| fault.of(&source))?;
    input::refuse_ambiguous(&source, &layout.findings, options.torch.ignore_crc)?;
    let Contents::Npz(archive) = &layout.contents else {
        let message = "not every member of the archive is an array of numpy";
        return Err(Error::torch(source.path(), PickleError::new("not-npz", message)));
    };
    let mut findings = Findings::new();
    for entry in archive.entries.iter().filter(|entry| !entry.is_folder()) {
        let failed = |error: PickleError| Error::torch(source.path(), error.member(&entry.name));
        let (header, head, bytes) = match entry.method {
            Method::Stored => {
                let span = entry.stored().ok_or_else(|| failed(no_bytes()))?;
                let array = reading.ask(|spans| npy::read(spans, span.clone()));
                let array = array.map_err(|fault| match fault {
                    Fault::Content(error) => failed(error),
                    fault => fault.of(&source),
                })?;
                array.findings.list().iter().for_each(|finding| findings.push(finding.clone()));
                let end = span.start.saturating_add(array.header.len).min(span.end);
                let head = source.read_span(span.start..end)?;
                let bytes = Bytes::Stored { source: into.opened.len(), start: span.start };
                (array.header, head, bytes)
            }
            _ => {
                let header = inflated_header(&source, entry)?;
                let span = entry.span.clone().ok_or_else(|| failed(no_bytes()))?;
                let (source, entry) = (into.opened.len(), Box::new(entry.clone()));
                (header, Vec::new(), Bytes::Deflated { source, span, entry })
            }
        };
        let name = entry.name.strip_suffix(".npy").unwrap_or(&entry.name);
        let blob = Blob {
            name: entry.name.clone(),
            len: entry.size,
            bytes,
            crc: entry.crc.filter(|_| !options.torch.ignore_crc),
            head,
        };
        add(into, &source, name, &header, blob, options)?;
    }
    into.opened.push(Opened::File(source));
    Ok(())
}

/// Reads the header of an array that is a file of its own.
pub(in crate::torch) fn read_npy(
    into: &mut Input,
    source: FileSource,
    options: &ConvertOptions,
) -> Result<(), Error> {
    let mut reading = Reading::new(&source, input::limits(options));
    let array = reading.ask(|spans| npy::read(spans, 0..spans.len()));
    let array = array.map_err(|fault| fault.of(&source))?;
    let blob = Blob {
        name: String::new(),
        len: source.len(),
        bytes: Bytes::Stored { source: into.opened.len(), start: 0 },
        crc: None,
        head: Vec::new(),
    };
    let stem = source.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    add(into, &source, &stem, &array.header, blob, options)?;
    into.opened.push(Opened::File(source));
    Ok(())
}

fn no_bytes() -> PickleError {
    PickleError::new("zip-no-bytes", "it has no bytes of its own in the file")
}

/// Adds an array.
fn add(
    into: &mut Input,
    source: &FileSource,
    name: &str,
    header: &Header,
    blob: Blob,
    options: &ConvertOptions,
) -> Result<(), Error> {
    let failed = |error: PickleError| Error::torch(source.path(), error.member(&blob.name));
    let mut shape = header.shape.clone();
    let (torch, dtype, swap) = match element(&header.element, options) {
        Ok(element) => element,
        Err(refusal)
            if is_no_number(&header.element) && !options.torch.all && !blob.name.is_empty() =>
        {
            into.beside_count = into.beside_count.saturating_add(1);
            into.beside.push(Beside {
                name: name.into(),
                why: refusal.to_string(),
                has_tensors: false,
                json: None,
            });
            return Ok(());
        }
        Err(refusal) => {
            into.unconverted.push(Unconverted {
                name: name.into(),
                code: refusal.code(),
                why: refusal.to_string(),
                help: refusal.help(),
                shape: Some(shape),
                bytes: None,
            });
            return Ok(());
        }
    };
    let element = torch.bytes();
    let elements = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
    };
    let end = elements
        .and_then(|elements| elements.checked_mul(element))
        .and_then(|bytes| header.len.checked_add(bytes))
        .filter(|end| *end <= blob.len);
    if let Some(end) = end.filter(|end| *end < blob.len) {
        // Arrays that were saved to one file one after the other, of which numpy gives one at a time.
        let message = format!(
            "the array ends at byte {end} of {}: {} bytes follow, maybe of other arrays",
            blob.len,
            blob.len.saturating_sub(end)
        );
        let error = PickleError::new("npy-trailing-bytes", message);
        let is_alone = blob.name.is_empty();
        return Err(if is_alone { Error::torch(source.path(), error) } else { failed(error) });
    }
    let Some(end) = end else {
        let message = format!("the elements do not end before byte {}", blob.len);
        return Err(failed(PickleError::new("npy-truncated", message)));
    };
    let pattern = if header.fortran_order {
        Pattern::fortran(header.len, element, &shape)
    } else {
        Pattern::span(header.len..end)
    };
    if torch.is_complex() && dtype != Dtype::C64 {
        shape.push(2);
    }
    let transforms = Transforms { swap, ..Transforms::default() };
    let file = into.opened.len();
    let blob = into.add_blob(blob);
    into.drafts.push(Draft {
        name: name.into(),
        dtype,
        shape,
        from: torch.name().into(),
        gathered: Gathered { blob, pattern, make: Make::of(torch, transforms) },
        file,
        part: None,
    });
    Ok(())
}

/// Whether elements are text, dates or objects, so that an array of them is no tensor.
fn is_no_number(element: &Element) -> bool {
    let is_text = |name: &str| {
        let plain = name.trim_start_matches(['<', '>', '=', '|']);
        plain.starts_with(['U', 'S', 'a', 'M', 'm'])
    };
    match element {
        Element::Object => true,
        Element::Other { name } => is_text(name),
        _ => false,
    }
}

/// The elements, what they are written as, and whether their bytes are the other way round.
fn element(
    element: &Element,
    options: &ConvertOptions,
) -> Result<(TorchDtype, Dtype, bool), Refusal> {
    match element {
        Element::Number { dtype, byte_order } => {
            let torch = TorchDtype::ALL.iter().find(|it| it.safetensors() == Ok(*dtype));
            let torch = torch.ok_or_else(|| Refusal::Numpy(dtype.name().into()))?;
            Ok((*torch, *dtype, *byte_order == ByteOrder::Big))
        }
        Element::Object => Err(Refusal::Objects),
        Element::Other { name } => match name.as_str() {
            "<c16" | ">c16" if options.complex == Complex::ViewReal => {
                Ok((TorchDtype::Complex128, Dtype::F64, name.starts_with('>')))
            }
            "<c16" | ">c16" => Err(Refusal::Complex(TorchDtype::Complex128)),
            _ => Err(Refusal::Numpy(name.clone())),
        },
        _ => Err(Refusal::Numpy("unknown".into())),
    }
}

/// The header of an array that is deflated.
fn inflated_header(source: &FileSource, entry: &Entry) -> Result<Header, Error> {
    let failed = |error: PickleError| Error::torch(source.path(), error.member(&entry.name));
    let mut span = entry.span.clone().ok_or_else(|| failed(no_bytes()))?;
    let mut inflater = Inflater::new(entry);
    let (mut head, mut wanted) = (Vec::new(), npy::PREFIX);
    let (mut raw, mut used) = (Vec::new(), 0);
    let mut piece = [0; 4096];
    loop {
        if work::length(&head) >= wanted {
            let len = npy::header_len(&head).map_err(failed)?;
            if work::length(&head) >= len {
                return npy::header(&head).map_err(failed);
            }
            wanted = len;
        }
        if used == raw.len() && !span.is_empty() {
            let end = span.end.min(span.start.saturating_add(4096));
            raw = source.read_span(span.start..end)?;
            (used, span.start) = (0, end);
        }
        let rest = raw.get(used..).unwrap_or_default();
        let step = inflater.step(rest, &mut piece).map_err(failed)?;
        if step.taken == 0 && step.given == 0 {
            let message = "the file ends in the header";
            return Err(failed(PickleError::new("npy-header", message)));
        }
        used += step.taken;
        head.extend_from_slice(piece.get(..step.given).unwrap_or_default());
    }
}
