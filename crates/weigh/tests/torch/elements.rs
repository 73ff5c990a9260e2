//! What is made of elements on the way, and checksums.

use weigh::format::Dtype;
use weigh::torch::{Complex, ConvertOptions};

use crate::made::{Made, Place, integer, text};

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn what_torch_put_off_is_done() {
    let mut made = Made::default();
    let complex = made.storage("ComplexFloatStorage", 8, floats(&[1.0, 2.0, 3.0, -4.0]));
    made.view_with("conj", complex, 0, &[2], &[1], &["conj"]);
    made.view_with("neg", complex, 0, &[2], &[1], &["neg"]);
    made.view_with("both", complex, 0, &[2], &[1], &["conj", "neg"]);
    made.view("plain", complex, 0, &[2], &[1]);
    let real = made.storage("FloatStorage", 4, floats(&[1.0, -0.0, 2.5, 8.0]));
    made.view_with("real", real, 0, &[2, 2], &[1, 2], &["neg"]);
    let bytes = made.storage("BoolStorage", 1, vec![0, 1, 2, 255]);
    made.view("bool", bytes, 0, &[2, 2], &[2, 1]);
    made.view("turned", bytes, 0, &[2, 2], &[1, 2]);
    for file in [made.zip(), made.legacy()] {
        let got = Place::new().converted(&file, &ConvertOptions::default()).unwrap();
        for (name, want) in [
            ("conj", floats(&[1.0, -2.0, 3.0, 4.0])),
            ("neg", floats(&[-1.0, -2.0, -3.0, 4.0])),
            ("both", floats(&[-1.0, 2.0, -3.0, -4.0])),
            ("plain", floats(&[1.0, 2.0, 3.0, -4.0])),
            ("real", floats(&[-1.0, -2.5, 0.0, -8.0])),
            ("bool", vec![0, 1, 1, 1]),
            ("turned", vec![0, 1, 1, 1]),
        ] {
            assert_eq!(got[name].2, want, "{name}");
        }
    }
}

#[test]
fn numbers_of_another_byte_order_are_turned() {
    for (class, unit, element, dtype) in [
        ("ByteStorage", 1, 1, Dtype::U8),
        ("BFloat16Storage", 2, 2, Dtype::BF16),
        ("IntStorage", 4, 4, Dtype::I32),
        ("ComplexFloatStorage", 4, 8, Dtype::C64),
        ("DoubleStorage", 8, 8, Dtype::F64),
    ] {
        let bytes: Vec<u8> = (0..48).collect();
        for deflated in [false, true] {
            let mut made = Made { big_endian: true, deflated, ..Made::default() };
            let of = made.storage(class, element, bytes.clone());
            made.view("w", of, 0, &[48 / element], &[1]);
            let got = Place::new().converted(&made.zip(), &ConvertOptions::default()).unwrap();
            let want: Vec<u8> =
                bytes.chunks(unit).flat_map(|it| it.iter().rev()).copied().collect();
            assert_eq!(got["w"], (dtype, vec![48 / element], want), "{class}");
        }
    }
}

#[test]
fn complex_numbers_that_safetensors_has_not_are_refused_or_pairs() {
    let bytes: Vec<u8> = [1.0_f64, 2.0, 3.0, 4.0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let mut made = Made::default();
    let of = made.storage("ComplexDoubleStorage", 16, bytes.clone());
    made.view("z", of, 0, &[2], &[1]);
    let place = Place::new();
    let error = place.converted(&made.zip(), &ConvertOptions::default()).unwrap_err();
    assert_eq!(error.code(), "complex");
    let options = ConvertOptions { complex: Complex::ViewReal, ..ConvertOptions::default() };
    let got = place.converted(&made.zip(), &options).unwrap();
    assert_eq!(got["z"], (Dtype::F64, vec![2, 2], bytes));
}

#[test]
fn bytes_that_do_not_have_their_checksum_are_refused_unless_they_are_wanted() {
    for (shape, strides) in [(&[25][..], &[1][..]), (&[5, 5], &[1, 5]), (&[3], &[1])] {
        for deflated in [false, true] {
            let mut made = Made { deflated, ..Made::default() };
            let of = made.storage("FloatStorage", 4, vec![7; 100]);
            made.view("w", of, 0, shape, strides);
            let whole = made.zip();
            let crc = crc32fast::hash(&[7; 100]).to_le_bytes();
            let mut damaged = whole.clone();
            for at in 0..whole.len() - 4 {
                if whole[at..at + 4] == crc {
                    damaged[at] ^= 1;
                }
            }
            let place = Place::new();
            let mut options = ConvertOptions::default();
            assert!(place.converted(&whole, &options).is_ok());
            let error = place.converted(&damaged, &options).unwrap_err();
            assert_eq!(error.code(), "zip-crc", "{shape:?} {deflated}");
            assert_eq!(place.names(), ["in.pt"]);
            options.torch.ignore_crc = true;
            assert!(place.converted(&damaged, &options).is_ok());
        }
    }
}

#[test]
fn bytes_that_torch_left_out_are_named_as_such() {
    let mut made = Made::default();
    let of = made.storage("FloatStorage", 4, vec![0; 100]);
    made.view("w", of, 0, &[25], &[1]);
    let mut file = made.zip();
    let crc = crc32fast::hash(&[0; 100]).to_le_bytes();
    for at in 0..file.len() - 4 {
        if file[at..at + 4] == crc {
            file[at..at + 4].fill(0);
        }
    }
    let (place, mut options) = (Place::new(), ConvertOptions::default());
    let error = place.converted(&file, &options).unwrap_err();
    assert_eq!(error.code(), "skipped-data");
    assert!(error.to_string().contains("skip_data"), "{error}");
    options.torch.ignore_crc = true;
    assert_eq!(place.converted(&file, &options).unwrap()["w"].2, [0; 100]);
}

#[test]
fn what_is_no_tensor_goes_to_json_on_request() {
    let mut made = Made::default();
    let of = made.storage("ByteStorage", 1, vec![1]);
    made.view("w", of, 0, &[1], &[1]);
    made.value("epoch", integer(3)).value("name", text("a\"b"));
    let place = Place::new();
    let mut options =
        ConvertOptions { values: Some(place.path("values.json")), ..ConvertOptions::default() };
    options.torch.values = true;
    place.converted(&made.zip(), &options).unwrap();
    let json = std::fs::read_to_string(place.path("values.json")).unwrap();
    assert_eq!(json, "{\n  \"epoch\": 3,\n  \"name\": \"a\\\"b\"\n}\n");
}
