//! Times, as RFC 3339 writes them.

use std::ops::Range;

/// A moment: seconds since 1970, and nanoseconds.
pub(super) type Moment = (i64, u32);

/// Reads an RFC 3339 time, the form of ISO 8601 that names a moment.
pub(super) fn parse(text: &str) -> Option<Moment> {
    let (date_time, rest) = text.split_at_checked(DATE_TIME.len())?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => ("0", rest),
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())),
    };
    if !fits(date_time, DATE_TIME) || fraction.is_empty() {
        return None;
    }
    let number = |range: Range<usize>| date_time.get(range)?.parse::<u32>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // A leap second is the 61st of its minute.
    let exists =
        (1..=days_of(year, month)?).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let of_day = hour * 3600 + minute * 60 + second;
    let seconds = days_since_1970(year, month, day) * 86_400 + i64::from(of_day);
    let nanos = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    exists.then_some((seconds - offset(zone)?, nanos))
}

/// How many seconds a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("Z") {
        return Some(0);
    }
    let (sign, time) = match zone.split_at_checked(1)? {
        ("+", time) => (1, time),
        ("-", time) => (-1, time),
        _ => return None,
    };
    let (hours, minutes) = fits(time, b"00:00").then(|| time.split_once(':'))??;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Whether a text has this shape, in which a zero stands for any digit.
fn fits(text: &str, shape: &[u8]) -> bool {
    let fits = |(byte, shape): (u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte.eq_ignore_ascii_case(shape),
    };
    text.len() == shape.len() && text.bytes().zip(shape).all(fits)
}

fn days_of(year: u32, month: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if is_leap { 29 } else { 28 }),
        _ => None,
    }
}

/// Counts in years that begin in March, so that a leap day is the last of its year.
fn days_since_1970(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month < 3);
    let days_before_month = (153 * ((i64::from(month) + 9) % 12) + 2) / 5;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + days_before_month + i64::from(day) - 1 - 719_468
}

const DATE_TIME: &[u8] = b"0000-00-00T00:00:00";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_any_zone() {
        for (text, moment) in [
            ("1970-01-01T00:00:00Z", (0, 0)),
            ("2026-07-28T00:00:00Z", (1_785_196_800, 0)),
            ("2026-07-28t00:00:00.25z", (1_785_196_800, 250_000_000)),
            ("2026-07-28T02:00:00.0000000019+02:00", (1_785_196_800, 1)),
            ("2026-07-27T18:30:00-05:30", (1_785_196_800, 0)),
            ("2024-02-29T23:59:59Z", (1_709_251_199, 0)),
            ("2000-03-01T00:00:00Z", (951_868_800, 0)),
            ("2016-12-31T23:59:60Z", (1_483_228_800, 0)),
            ("0000-01-01T00:00:00Z", (-62_167_219_200, 0)),
        ] {
            assert_eq!(parse(text), Some(moment), "{text}");
        }
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            "2026-07-28",
            "2026-07-28T00:00:00",
            "2026-07-28 00:00:00Z",
            "2026-07-28T00:00Z",
            "20260728T000000Z",
            "2026-07-28T00:00:00.Z",
            "2026-07-28T00:00:00,5Z",
            "2026-07-28T00:00:00+0200",
            "2026-07-28T00:00:00+02:60",
            "2026-07-28T00:00:00+é:00",
            "2026-07-28T00:00:00ZZ",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-07-00T00:00:00Z",
            "2026-07-28T24:00:00Z",
            "2026-07-28T00:00:61Z",
            "+026-07-28T00:00:00Z",
            "2026-07-28T00:00:é0Z",
            "1785196800",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
