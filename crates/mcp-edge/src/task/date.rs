//! Moments as clients read them (TASK-09).

use crate::platform::Timestamp;

/// RFC 3339 in UTC with milliseconds, as in `2026-08-01T09:00:00.000Z`.
///
/// The one thing of a calendar that the core needs, and no crate has just that.
pub(crate) fn rfc_3339(moment: Timestamp) -> String {
    let millis = moment.as_millis();
    let (days, rest) = (millis / DAY, millis % DAY);
    let (year, month, day) = civil(days);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

const DAY: u64 = 86_400_000;

/// Year, month and day of a number of days since 1970. Counts from the March of a year 0, so that the
/// leap day is the last of its year; 146,097 days are 400 years.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01 to 1970-01-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + (month <= 2) as u64, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> String {
        rfc_3339(Timestamp::from_millis(millis))
    }

    #[test]
    fn known_moments() {
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(951_868_799_999), "2000-02-29T23:59:59.999Z");
        assert_eq!(at(1_785_196_800_000), "2026-07-28T00:00:00.000Z");
        assert_eq!(at(1_709_164_800_123), "2024-02-29T00:00:00.123Z");
        assert_eq!(at(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn each_day_follows_the_one_before() {
        const MONTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut expected = (1970, 1, 1);
        for day in 0..150_000 {
            assert_eq!(civil(day), expected);
            let (year, month, day) = &mut expected;
            let leap = (*year % 4 == 0 && *year % 100 != 0) || *year % 400 == 0;
            let february = u64::from(leap && *month == 2);
            *day += 1;
            if *day > MONTHS[usize::try_from(*month).unwrap() - 1] + february {
                (*day, *month) = (1, *month + 1);
            }
            if *month > 12 {
                (*month, *year) = (1, *year + 1);
            }
        }
    }
}
