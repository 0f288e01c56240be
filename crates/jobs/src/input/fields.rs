//! Names and texts out of a line of JSON, by the path of a field. It must not know what they stand for.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use super::{InputSample, path_of};
use kvfair_core::op::readable;

/// What a field holds.
#[derive(Debug)]
pub struct Wanted {
    /// What a line is: "a profile".
    pub line: &'static str,
    /// What is taken: "a page name".
    pub one: &'static str,
    /// What the field is to hold: "a list of page names". Nothing where it holds one alone.
    pub list: Option<&'static str>,
}

/// Gives `take` each name in the field of that path, as text. Objects on the way are gone into, and so is every object
/// of a list; a whole number is its decimal text. The fields beside it are passed over.
pub fn each_in(
    line: &str,
    path: &[String],
    wanted: &'static Wanted,
    mut take: impl FnMut(&[u8]),
) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_str(line);
    let walk = Walk { wanted, name: "", path, place: Place::Line, in_list: false, take: &mut take };
    walk.deserialize(&mut json).and_then(|()| json.end()).map_err(|error| {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = text.strip_suffix(&place).unwrap_or(&text);
        let kind = if error.is_data() { wanted.line } else { "JSON" };
        format!("not {kind}: {what}, at column {}", error.column().max(1))
    })
}

/// Reads straight to whoever takes it: a derived reader would allocate a list and its names for every line.
struct Walk<'a, F> {
    wanted: &'static Wanted,
    /// The field that it is in.
    name: &'a str,
    /// What is left of the path.
    path: &'a [String],
    place: Place,
    in_list: bool,
    take: &'a mut F,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Line,
    Field,
    /// Of a list.
    Element,
}

impl<'de, F: FnMut(&[u8])> DeserializeSeed<'de> for Walk<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, any: D) -> Result<(), D::Error> {
        any.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&[u8])> Visitor<'de> for Walk<'_, F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.path.first(), self.wanted.list) {
            (Some(field), _) if self.place == Place::Field => {
                write!(out, "an object, or a list of them, with \"{field}\" as \"{}\"", self.name)
            }
            (Some(field), _) => write!(out, "an object with \"{field}\""),
            (None, Some(list)) if self.place == Place::Field && !self.in_list => {
                write!(out, "{list} as \"{}\"", self.name)
            }
            (None, None) if self.place == Place::Field => write!(out, "{} as \"{}\"", self.wanted.one, self.name),
            (None, _) => out.write_str(self.wanted.one),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Some((field, path)) = self.path.split_first() else {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        };
        let Walk { wanted, in_list, take, .. } = self;
        let mut seen = false;
        while let Some(is_it) = fields.next_key_seed(IsField(field))? {
            match (is_it, seen) {
                (false, _) => drop(fields.next_value::<IgnoredAny>()?),
                (true, true) => return Err(A::Error::custom(format_args!("\"{field}\" twice"))),
                (true, false) => {
                    let take = &mut *take;
                    fields.next_value_seed(Walk { wanted, name: field, path, place: Place::Field, in_list, take })?;
                }
            }
            seen |= is_it;
        }
        if seen { Ok(()) } else { Err(A::Error::custom(format_args!("no \"{field}\""))) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.place != Place::Field || self.wanted.list.is_none() {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        let Walk { wanted, name, path, take, .. } = self;
        let mut more = true;
        while more {
            let (place, take) = (Place::Element, &mut *take);
            more = list.next_element_seed(Walk { wanted, name, path, place, in_list: true, take })?.is_some();
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.path.is_empty() && (self.in_list || self.wanted.list.is_none()) {
            true => (self.take)(text.as_bytes()),
            false => return Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.visit_str(itoa::Buffer::new().format(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.visit_str(itoa::Buffer::new().format(number))
    }
}

struct IsField<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for IsField<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for IsField<'_> {
    type Value = bool;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a field's name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// An object of JSON.
type Object = serde_json::Map<String, serde_json::Value>;

/// Looks into the first lines for the field: most of them must have it. `otherwise` is what to do with lines that have
/// no such field under any name.
pub fn must_be_in(
    sample: &InputSample<'_>,
    path: &[String],
    wanted: &'static Wanted,
    expected: &str,
    otherwise: fn(&Object) -> Option<String>,
) -> Result<(), String> {
    let lines = sample.lines();
    let cut = usize::from(!sample.whole && lines.len() == 1);
    let read = |(number, line): &(u64, &[u8])| {
        let text = str::from_utf8(line).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1));
        let read = text.and_then(|text| each_in(text, path, wanted, |_| ()));
        read.err().map(|what| format!("line {number} is {what}"))
    };
    let bad: Vec<String> = lines[cut..].iter().filter_map(read).collect();
    if bad.len() * 2 <= lines.len() {
        return Ok(());
    }
    let object = lines.iter().find_map(|(_, line)| Some((*line, serde_json::from_slice::<Object>(line).ok()?)));
    let hint = match object {
        Some((line, object)) => match names_in(line, &object, wanted).join(", ") {
            none if none.is_empty() => otherwise(&object),
            names => Some(format!("--field NAME, one of {names}")),
        },
        // One value over many lines.
        None if lines[0].1.first() == Some(&b'{') => Some("jq -c . FILE | kvfair run ... --input -".to_string()),
        None => None,
    };
    let what = format!("{} of its first {} lines cannot be used: {}", bad.len(), lines.len(), bad[0]);
    Err(sample.fault(&what, expected, &hint.unwrap_or_default()))
}

/// The fields of a line that hold what is wanted, and what is in objects as `list.name`.
fn names_in(line: &[u8], object: &Object, wanted: &'static Wanted) -> Vec<String> {
    let paths = object.iter().flat_map(|(name, value)| {
        let inner = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        match inner.as_object() {
            Some(object) => object.keys().map(|key| format!("{name}.{key}")).collect(),
            None => vec![name.clone()],
        }
    });
    let text = String::from_utf8_lossy(line);
    let can_be = |name: &String| each_in(&text, &path_of(name), wanted, |_| ()).is_ok();
    paths.filter(can_be).take(NAMES).map(|name| readable(name.as_bytes(), NAME_BYTES)).collect()
}

/// So many fields are told, and so much of each name.
const NAMES: usize = 12;
const NAME_BYTES: usize = 60;
