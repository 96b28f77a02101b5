//! Reads a flat struct from strings: the variables of a template, the arguments of a prompt.

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, Error as _, IntoDeserializer, Visitor,
        value::{Error, MapDeserializer},
    },
    forward_to_deserialize_any,
};

/// Reads `T` from named strings. Numbers and booleans are read from their usual text.
///
/// # Errors
/// The first member that is missing or not of its type.
pub(crate) fn from_strings<T: DeserializeOwned>(
    values: impl IntoIterator<Item = (String, String)>,
) -> Result<T, Error> {
    let members = values.into_iter().map(|(name, value)| (name, Text(value)));
    T::deserialize(MapDeserializer::new(members))
}

struct Text(String);

impl IntoDeserializer<'_> for Text {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Methods that parse the text first.
macro_rules! parsed {
    ($($method:ident $visit:ident $type:ty,)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(error) => Err(Error::custom(format_args!("`{}`: {error}", self.0))),
            }
        }
    )+};
}

impl<'de> Deserializer<'de> for Text {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    parsed! {
        deserialize_bool visit_bool bool,
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_f32 visit_f32 f32,
        deserialize_f64 visit_f64 f64,
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Style {
        Plain,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Flat {
        name: String,
        count: u8,
        sure: Option<bool>,
        style: Style,
        missing: Option<f64>,
    }

    fn read(values: &[(&str, &str)]) -> Result<Flat, Error> {
        from_strings(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn strings_become_numbers_booleans_and_unit_enums() {
        let values = [("name", "7"), ("count", "7"), ("sure", "true"), ("style", "plain")];
        let flat = read(&values).unwrap();
        let (name, sure) = ("7".to_owned(), Some(true));
        assert_eq!(flat, Flat { name, count: 7, sure, style: Style::Plain, missing: None });
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(read(&[("name", "x"), ("count", "300"), ("style", "plain")]).is_err());
        assert!(read(&[("name", "x"), ("count", "1"), ("style", "fancy")]).is_err());
        assert!(read(&[("name", "x"), ("style", "plain")]).is_err());
    }
}
