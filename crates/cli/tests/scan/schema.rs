//! Documents against their schemas: as much of JSON Schema as these use.

use serde_json::Value;

use crate::program::repository;

/// Panics where a document is not as the schema of this name has it.
pub(crate) fn check(name: &str, document: &Value) {
    let schema = repository("docs/schemas").join(name);
    let root: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    value(&root, &root, document, "$");
}

fn value(root: &Value, schema: &Value, document: &Value, path: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let schema = root.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        return value(root, schema, document, path);
    }
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "type" => {
                let types = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
                assert!(types.iter().any(|name| is(document, name)), "{path}: {document}");
            }
            "const" => assert_eq!(document, wanted, "{path}"),
            "enum" => assert!(wanted.as_array().unwrap().contains(document), "{path}: {document}"),
            "minimum" => assert!(document.is_null() || document.as_u64().is_some(), "{path}"),
            "required" => {
                for key in wanted.as_array().unwrap() {
                    assert!(document.get(key.as_str().unwrap()).is_some(), "{path}: no {key}");
                }
            }
            "properties" => {
                for (key, inner) in document.as_object().unwrap() {
                    let known = wanted.get(key);
                    let known =
                        known.unwrap_or_else(|| panic!("{path}.{key} is not in the schema"));
                    value(root, known, inner, &format!("{path}.{key}"));
                }
            }
            "items" => {
                for inner in document.as_array().unwrap() {
                    value(root, wanted, inner, &format!("{path}[]"));
                }
            }
            "anyOf" => {
                let choice = usize::from(!document.is_null());
                value(root, &wanted[choice], document, path);
            }
            "minItems" | "maxItems" => {
                assert_eq!(document.as_array().unwrap().len() as u64, wanted.as_u64().unwrap());
            }
            "additionalProperties" | "description" | "title" | "$schema" | "$defs" => {}
            other => panic!("{other} is not known here"),
        }
    }
}

fn is(document: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => document.is_object(),
        "array" => document.is_array(),
        "string" => document.is_string(),
        "boolean" => document.is_boolean(),
        "integer" => document.is_u64(),
        "null" => document.is_null(),
        other => panic!("{other} is not known here"),
    }
}
