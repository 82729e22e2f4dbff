//! The only clock is the database's.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::{Datum, FromDatum, IntoDatum};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Days from 0000-03-01 (where the proleptic Gregorian cycle starts most simply) to PostgreSQL's epoch, 2000-01-01.
const EPOCH_DAYS: i64 = 730_425;

/// Whole seconds that tests put the clock forward, so that they need not wait for a lease to run out.
static CLOCK_OFFSET: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Defines `kslate.clock_offset`. Only a superuser may set it: whoever moves the clock ends every lease.
pub fn define_clock_offset() {
    GucRegistry::define_int_guc(
        c"kslate.clock_offset",
        c"For tests only: how far the clock of the kslate functions is put forward.",
        c"Leases that others hold run out by it. See docs/operations.md.",
        &CLOCK_OFFSET,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_S,
    );
}

/// A `timestamptz`: microseconds since 2000-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// `clock_timestamp()`. Read it once, after the last row lock is held; that one value decides, is stored and answered.
    pub fn now() -> Time {
        // SAFETY: reads the system clock, nothing else.
        let now = Time(unsafe { pg_sys::GetCurrentTimestamp() });
        now.plus_seconds(i64::from(CLOCK_OFFSET.get()))
    }

    /// This time and so many whole seconds more.
    pub fn plus_seconds(self, seconds: i64) -> Time {
        Time(self.0.saturating_add(seconds.saturating_mul(SECOND)))
    }

    /// Whole seconds from `now` to this time, rounded up, at least 1: what a Retry-After says.
    pub fn seconds_after(self, now: Time) -> i64 {
        let gap = self.0.saturating_sub(now.0).max(1);
        (gap / SECOND + i64::from(gap % SECOND != 0)).max(1)
    }

    /// RFC 3339 in UTC with 0 to 6 digits of fraction, as PostgreSQL prints a timestamptz in JSON.
    pub fn iso(self) -> String {
        if self.0 == i64::MAX {
            return "infinity".to_owned();
        }
        if self.0 == i64::MIN {
            return "-infinity".to_owned();
        }
        let (day, rest) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, date) = civil(day.saturating_add(EPOCH_DAYS));
        let (seconds, micros) = (rest / SECOND, rest % SECOND);
        let mut text = format!(
            "{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        );
        if micros != 0 {
            text.push_str(format!(".{micros:06}").trim_end_matches('0'));
        }
        text.push_str("+00:00");
        text
    }

    /// Reads what [`Time::iso`] wrote.
    fn parse(text: &str) -> Option<Time> {
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
        let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?).checked_sub(EPOCH_DAYS)?;
        let seconds = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
        let fraction = text.get(19..)?.strip_suffix("+00:00")?;
        let micros = match fraction.strip_prefix('.') {
            Some(digits) => format!("{digits:0<6}").parse::<i64>().ok()?,
            None => 0,
        };
        Some(Time(days.checked_mul(DAY)? + seconds * SECOND + micros))
    }
}

/// Year, month and day of a day number that counts from 0000-03-01.
fn civil(day: i64) -> (i64, i64, i64) {
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// The inverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * shifted + 2) / 5 + day - 1
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.iso())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = String::deserialize(deserializer)?;
        Time::parse(&text).ok_or_else(|| serde::de::Error::custom("not a time of ours"))
    }
}

impl FromDatum for Time {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Time> {
        (!is_null).then(|| Time(datum.value() as i64))
    }
}

impl IntoDatum for Time {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(pg_sys::Datum::from(self.0))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TIMESTAMPTZOID
    }
}

// SAFETY: the SQL type named is the one that `type_oid` gives.
unsafe impl SqlTranslatable for Time {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Time);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> =
        Ok(SqlMappingRef::literal("timestamptz"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("timestamptz")));
}

// SAFETY: the datum is of the type that RETURN_SQL declares.
unsafe impl BoxRet for Time {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}
