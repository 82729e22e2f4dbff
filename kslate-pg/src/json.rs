//! `json` and `jsonb` as PostgreSQL has them: no value is ever parsed into Rust and written back, so no digit is lost.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::{Datum, FromDatum, IntoDatum};
use pgrx::nullable::Nullable;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{direct_function_call, direct_function_call_as_datum, pg_sys};

use crate::error::{Code, Failure, Outcome};
use crate::shape;

/// How deep a value or document may nest.
pub const MAX_DEPTH: usize = 100;
/// How many bytes the jsonb text of a value may have.
pub const MAX_BYTES: usize = 1 << 20;

const HEADER: usize = 4;

/// A `jsonb` datum, copied whole, with its length word.
#[derive(Clone, Debug)]
pub struct Jsonb {
    /// Eight-byte words, since PostgreSQL reads the datum aligned.
    words: Vec<u64>,
    bytes: usize,
}

impl Jsonb {
    /// Parses JSON text with PostgreSQL's own input function; what it refuses is an ERROR of PostgreSQL.
    pub fn parse(text: &str) -> Outcome<Jsonb> {
        let text =
            CString::new(text).map_err(|_| Failure::malformed("a value contains \\u0000"))?;
        // SAFETY: jsonb_in takes one cstring and returns a jsonb.
        let datum = unsafe {
            direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(text.as_ptr().into())])
        };
        // SAFETY: the datum is what jsonb_in returned.
        unsafe { datum.and_then(|datum| Jsonb::from_datum(datum, false)) }
            .ok_or_else(|| Failure::malformed("a value is not JSON"))
    }

    /// The jsonb text, as `value::text` prints it.
    pub fn text(&self) -> String {
        let datum = pg_sys::Datum::from(self.words.as_ptr());
        // SAFETY: the words are a whole, aligned jsonb datum.
        let text = unsafe { direct_function_call::<&CStr>(pg_sys::jsonb_out, &[Some(datum)]) };
        text.map(|text| text.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Is it a JSON object?
    pub fn is_object(&self) -> bool {
        shape::is_object(self.container())
    }

    /// What is behind the length word.
    fn container(&self) -> &[u8] {
        // SAFETY: the words hold as many bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), self.bytes) };
        bytes.get(HEADER..).unwrap_or_default()
    }

    /// How many bytes its text has, where they are more than `most`.
    pub fn longer_than(&self, most: usize) -> Option<usize> {
        if shape::fits(self.container(), MAX_DEPTH, most) {
            return None;
        }
        Some(self.text().len()).filter(|bytes| *bytes > most)
    }

    /// Is it this string?
    pub fn is_string(&self, text: &str) -> bool {
        shape::is_string(self.container(), text)
    }

    /// Is it an object with this key?
    pub fn has_key(&self, key: &str) -> bool {
        self.is_object() && shape::has_key(self.container(), key)
    }

    /// Refuses what is nested too deep to be read again by every client; values may be `within` so many levels of a request.
    pub fn check_depth(&self, what: &str, within: usize) -> Outcome<()> {
        if shape::is_deeper(self.container(), MAX_DEPTH + within) {
            return Err(Failure::malformed(format!(
                "{what} is nested deeper than {MAX_DEPTH} levels: flatten it"
            )));
        }
        Ok(())
    }

    /// Refuses what may not be stored as a field's value.
    pub fn check(&self) -> Outcome<()> {
        self.check_depth("the value", 0)?;
        let Some(bytes) = self.longer_than(MAX_BYTES) else {
            return Ok(());
        };
        Err(Failure::new(
            Code::PayloadTooLarge,
            format!("the value has {bytes} bytes as jsonb text, {MAX_BYTES} are allowed: store it elsewhere and write a reference"),
        ))
    }
}

impl FromDatum for Jsonb {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Jsonb> {
        if is_null || datum.is_null() {
            return None;
        }
        // SAFETY: the caller gives a jsonb datum; detoasted, its length word tells how many bytes may be read.
        unsafe {
            let varlena = pg_sys::pg_detoast_datum(datum.cast_mut_ptr());
            let bytes = pgrx::varsize(varlena);
            let mut words = vec![0u64; bytes.div_ceil(8)];
            std::ptr::copy_nonoverlapping(varlena.cast::<u8>(), words.as_mut_ptr().cast(), bytes);
            Some(Jsonb { words, bytes })
        }
    }
}

impl IntoDatum for Jsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        (&self).into_datum()
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

impl IntoDatum for &Jsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        // SAFETY: palloc gives that many bytes, or raises an ERROR.
        unsafe {
            let copy = pg_sys::palloc(self.bytes).cast::<u8>();
            std::ptr::copy_nonoverlapping(self.words.as_ptr().cast(), copy, self.bytes);
            Some(pg_sys::Datum::from(copy))
        }
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: unboxing reads the argument as the jsonb that ARGUMENT_SQL declares.
unsafe impl<'fcx> ArgAbi<'fcx> for Jsonb {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        let empty = Jsonb {
            words: Vec::new(),
            bytes: 0,
        };
        unsafe { arg.unbox_arg_using_from_datum() }.unwrap_or(empty)
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        unsafe { arg.unbox_arg_using_from_datum() }.into()
    }
}

// SAFETY: the SQL type named is the one that `type_oid` gives.
unsafe impl SqlTranslatable for Jsonb {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Jsonb);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}

/// JSON text of type `json`: keeps the order of its keys.
#[derive(Clone, Debug)]
pub struct Json(pub Cow<'static, str>);

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json(Cow::Owned(text))
    }
}

impl IntoDatum for Json {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        self.0.as_ref().into_datum()
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONOID
    }
}

// SAFETY: the SQL type named is the one that `type_oid` gives.
unsafe impl SqlTranslatable for Json {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Json);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("json"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("json")));
}

// SAFETY: the datum is of the type that RETURN_SQL declares.
unsafe impl BoxRet for Jsonb {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}

// SAFETY: the datum is of the type that RETURN_SQL declares.
unsafe impl BoxRet for Json {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}
