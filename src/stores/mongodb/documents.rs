//! What `mongodb` says: keys and fields as names that BSON takes, records as documents, commands. Knows no connection.

use mongodb::bson::raw::{CString, RawBinaryRef, RawBsonRef, cstr};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Bson, Document, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use crate::model::op::{Fault, Keys, readable};

/// The one collection, of documents `{_id: key, v: value}` (bytes), `{_id: key, v: number}` (a counter) and
/// `{_id: key, t: {field: number, ...}}` (a tally).
pub const RECORDS: &str = "kvfair_records";

/// What a document may hold in bytes (16 MiB) without what surrounds key and value in a command.
/// <https://www.mongodb.com/docs/manual/reference/limits/>
pub const RECORD_BYTES: usize = (16 << 20) - 1024;

/// At most so many bytes of documents in one command, which is a document itself.
const COMMAND_BYTES: usize = 12 << 20;

/// At most so many writes in one command. The server takes 100,000.
const COMMAND_WRITES: usize = 10_000;

/// A key as an `_id`: a string of one character a byte, so that any bytes will do and strings have the order of the
/// bytes. Most keys are ASCII and stay as they are. (Binary `_id`s are ordered by their length first, and
/// FerretDB finds only strings by its index.)
pub fn id(key: &[u8]) -> String {
    key.iter().map(|&byte| char::from(byte)).collect()
}

/// The bytes of an `_id`, at the end of `out`.
pub fn key_of(id: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    for character in id.chars() {
        let byte =
            u8::try_from(character).map_err(|_| Fault::Garbled(format!("mongodb: an _id that is not ours: {id}")))?;
        out.push(byte);
    }
    Ok(())
}

/// The key of a record, at the end of `out`.
pub fn key_in(record: &RawDocument, out: &mut Vec<u8>) -> Result<(), Fault> {
    let id =
        record.get_str("_id").map_err(|error| Fault::Garbled(format!("mongodb: a record without our _id: {error}")))?;
    key_of(id, out)
}

/// The value of a record, at the end of `out`; a counter's in decimal.
pub fn put_value(store: &str, record: &RawDocument, out: &mut Vec<u8>) -> Result<(), Fault> {
    let value = record.get("v").map_err(|error| Fault::Garbled(format!("{store}: {error}")))?;
    match value {
        Some(RawBsonRef::Binary(value)) => out.extend_from_slice(value.bytes),
        Some(value) => {
            let number =
                number_of(value).ok_or_else(|| Fault::Garbled(format!("{store}: a value that is not ours")))?;
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        None => return Err(Fault::Refused(format!("{store}: the record is a tally, not a value"))),
    }
    Ok(())
}

/// The counter in a record.
pub fn number_in(record: &RawDocument) -> Option<i64> {
    record.get("v").ok().flatten().and_then(number_of)
}

pub fn number_of(value: RawBsonRef<'_>) -> Option<i64> {
    value.as_i64().or_else(|| value.as_i32().map(i64::from))
}

/// A number in an answer, of whatever type the server took.
pub fn number(document: &Document, name: &str) -> Option<i64> {
    match document.get(name)? {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) => Some(*number as i64),
        _ => None,
    }
}

/// The words of an error within an answer.
pub fn words(error: &Document) -> String {
    error.get_str("errmsg").map_or_else(|_| readable(error.to_string().as_bytes(), 200), str::to_string)
}

/// A tally's field as a name: a dot would mean a field within, a dollar sign an operator, and the end of a name is a
/// zero. Those and the percent sign are written as % and two hexadecimal digits; no field at all is a lone
/// percent sign.
fn name_of(field: &[u8], out: &mut String) {
    if field.is_empty() {
        out.push('%');
    }
    for &byte in field {
        match byte {
            b'.' | b'$' | b'%' | 0 => out.push_str(&format!("%{byte:02x}")),
            byte => out.push(char::from(byte)),
        }
    }
}

/// The field that a name was made of.
pub fn field_of(name: &str, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    if name == "%" {
        return Ok(());
    }
    let strange = || Fault::Garbled(format!("mongodb: a field that is not ours: {name}"));
    let mut rest = name.chars();
    while let Some(character) = rest.next() {
        let byte = match character {
            '%' => {
                let digits = rest.as_str().get(..2).ok_or_else(strange)?;
                rest.nth(1);
                u8::from_str_radix(digits, 16).map_err(|_| strange())?
            }
            other => u8::try_from(other).map_err(|_| strange())?,
        };
        out.push(byte);
    }
    Ok(())
}

pub fn binary(value: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef { subtype: BinarySubtype::Generic, bytes: value }
}

/// A whole record.
pub fn record(key: &[u8], value: &[u8]) -> RawDocumentBuf {
    let mut record = rawdoc! { "_id": id(key) };
    record.append(cstr!("v"), binary(value));
    record
}

/// Puts a record in place of whatever there was.
pub fn replace(key: &[u8], value: &[u8]) -> RawDocumentBuf {
    rawdoc! { "q": { "_id": id(key) }, "u": record(key, value), "upsert": true }
}

/// Puts a record in place of one that still has the old value.
/// <https://www.mongodb.com/docs/manual/core/write-operations-atomicity/>
pub fn replace_if(key: &[u8], old: &[u8], value: &[u8]) -> RawDocumentBuf {
    rawdoc! { "q": record(key, old), "u": record(key, value) }
}

/// What a tally does to one record: adds to each of its fields.
pub fn additions(fields: Keys<'_>, by: i64) -> Result<RawDocumentBuf, Fault> {
    let mut additions = RawDocumentBuf::new();
    for field in fields.iter() {
        let mut path = "t.".to_string();
        name_of(field, &mut path);
        additions.append(CString::try_from(path).map_err(Fault::refused)?, by);
    }
    Ok(rawdoc! { "$inc": additions })
}

pub fn add(key: &[u8], by: i64) -> RawDocumentBuf {
    rawdoc! { "q": { "_id": id(key) }, "u": { "$inc": { "v": by } }, "upsert": true }
}

pub fn tally(record: &[u8], additions: &RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! { "q": { "_id": id(record) }, "u": additions.clone(), "upsert": true }
}

/// The writes of one command: as many as it takes.
#[derive(Default)]
pub struct Writes {
    list: RawArrayBuf,
    count: usize,
    bytes: usize,
}

impl Writes {
    pub fn of(write: RawDocumentBuf) -> Writes {
        let mut writes = Writes::default();
        writes.push(write);
        writes
    }

    pub fn push(&mut self, write: RawDocumentBuf) {
        self.bytes += write.as_bytes().len();
        self.count += 1;
        self.list.push(write);
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a write would make the command longer than the server takes.
    pub fn is_full_for(&self, write: &RawDocumentBuf) -> bool {
        !self.is_empty() && (self.count >= COMMAND_WRITES || self.bytes + write.as_bytes().len() > COMMAND_BYTES)
    }

    pub fn into_list(self) -> RawArrayBuf {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_a_key_and_keep_their_order() {
        let keys: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"b", b"\x80", b"\xff\xff"];
        for pair in keys.windows(2) {
            assert!(id(pair[0]) < id(pair[1]), "{pair:?}");
        }
        for key in keys {
            let mut back = Vec::new();
            key_of(&id(key), &mut back).unwrap();
            assert_eq!(back, key);
        }
        assert!(key_of("\u{100}", &mut Vec::new()).is_err());
    }

    #[test]
    fn any_bytes_are_a_field() {
        for field in [&b""[..], b"a", b"a.b", b"$set", b"%", b"%24", b"\0", "\u{e4}%".as_bytes(), b"\xff.%"] {
            let (mut name, mut back) = (String::new(), Vec::new());
            name_of(field, &mut name);
            assert!(!name.contains(['.', '$', '\0']) && !name.is_empty(), "{name}");
            field_of(&name, &mut back).unwrap();
            assert_eq!(back, field, "{name}");
        }
        for name in ["%2", "%zz", "a%", "\u{20ac}", "%\u{e4}"] {
            assert!(field_of(name, &mut Vec::new()).is_err(), "{name}");
        }
    }
}
